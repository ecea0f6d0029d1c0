#include "strategy/mesh/pipeline_options.h"

#include "config/run.h"
#include "core/text.h"
#include "strategy/parts/balance.h"

#include <algorithm>
#include <numeric>

namespace mgt::strategy {
namespace {

constexpr int64_t kMostDrawn = 64;  // pieces
constexpr int64_t kChunks = 2;      // of a stage, where the config does not say

const config::Section& section_of(const config::Config& config) { return config.section("strategy"); }

std::string too_many_parts(const config::Config& config, const model::Model& model, int64_t stages, int64_t chunks) {
  const auto blocks = static_cast<int64_t>(model.blocks.size());
  const int64_t most_stages = std::max<int64_t>(1, blocks / chunks), most_chunks = blocks / stages;
  const std::string have = concat(" for the ", counted(blocks, "block"), " of ", model.name, "; ");
  const std::string fewer = concat("use at most ", counted(most_stages, "stage"));
  if (chunks == 1) return concat(counted(stages, "stage"), have, fewer);
  const std::string whence = section_of(config).has("chunks") ? "" : ", its default,";
  const std::string cure =
      most_chunks == 0 ? "" : concat("lower strategy.chunks from ", chunks, whence, " to ", most_chunks, ", or ");
  return concat(counted(stages, "stage"), " of ", counted(chunks, "chunk"), " are ", stages * chunks, " parts", have,
                cure, fewer);
}

// Where the number of pieces comes from; of what follows from a batch and its micro_batch, the batch.
std::string key_of_pieces(const config::Config& config) {
  if (config::run_of(config).invariant) return "virtual_shards";
  if (section_of(config).has("microbatches")) return "strategy.microbatches";
  return config.top().has("accumulate") ? "accumulate" : "batch_size";
}

}  // namespace

std::vector<config::Option> pipeline_options() {
  return {
      config::integer(
          "microbatches", {},
          concat("pieces of a batch that are on their way through the stages; the same as accumulate; absent: ",
                 kPiecesInPipeline, " with more than one stage, else 1"),
          {.at_least = 1, .at_most = 1e9}, {1, 3}),
      config::text("schedule", "1f1b",
                   "order of the pieces; gpipe: all forward, then all backward; 1f1b: in turn, with fewer activations "
                   "held; interleaved: 1f1b over several chunks a stage, with less idle time",
                   {"gpipe", "1f1b", "interleaved"}),
      config::integer("chunks", {},
                      concat("parts of the model on each stage, with schedule: interleaved; absent: ", kChunks),
                      {.at_least = 1, .at_most = 1024}),
      {.key = "split",
       .kind = config::Kind::integers,
       .fallback = {},
       .help = "blocks in each part of the model; absent: balanced by multiply-adds",
       .bounds = {.at_least = 1}}};
}

void check_pipeline(const config::Config& config) {
  const std::string& schedule = section_of(config).text("schedule");
  if (!section_of(config).has("chunks") || schedule == "interleaved") return;
  config.error_at("strategy.chunks",
                  concat("goes with schedule: interleaved, and this is ", schedule, "; leave it out"));
}

Pipeline pipeline_of(const config::Config& config, int64_t stages) {
  const std::string& schedule = section_of(config).text("schedule");
  if (schedule == "gpipe") return {.order = Order::gpipe, .stages = stages};
  if (schedule == "1f1b" || stages == 1) return {.order = Order::one_forward_one_backward, .stages = stages};
  const bool given = section_of(config).has("chunks");
  return {
      .order = Order::interleaved, .stages = stages, .chunks = given ? section_of(config).integer("chunks") : kChunks};
}

std::vector<Range> cut_of(const config::Config& config) {
  const config::Section& section = section_of(config);
  return section.has("split") ? ranges_of(section.integers("split")) : std::vector<Range>();
}

void check_parts(const config::Config& config, const model::Model& model, int64_t stages, const std::string& key) {
  const auto blocks = static_cast<int64_t>(model.blocks.size());
  const int64_t chunks = pipeline_of(config, stages).chunks, parts = stages * chunks;
  if (parts > blocks) config.error_at(key, too_many_parts(config, model, stages, chunks));
  if (!section_of(config).has("split")) return;
  const std::vector<int64_t>& counts = section_of(config).integers("split");
  if (static_cast<int64_t>(counts.size()) != parts ||
      std::accumulate(counts.begin(), counts.end(), int64_t{0}) != blocks) {
    config.error_at("strategy.split", concat("[", join(counts), "] must be ", counted(parts, "number"), " of blocks, ",
                                             blocks, " in all"));
  }
}

std::string drawn_schedule(const config::Config& config, int64_t stages, int64_t pieces) {
  if (pieces > kMostDrawn) {
    const std::string key = key_of_pieces(config);
    config.error_at(key, concat(pieces, " pieces are too wide to draw; draw at most ", kMostDrawn, ", with --set ", key,
                                "=8, which shows the same order"));
  }
  const Pipeline pipeline = pipeline_of(config, stages);
  const auto timeline = simulate(pipeline, pieces);
  const bool several = pipeline.chunks > 1;
  const double p = static_cast<double>(stages), vm = static_cast<double>(pipeline.chunks * pieces);
  return concat(section_of(config).text("schedule"), ", ", counted(stages, "stage"),
                several ? concat(" of ", counted(pipeline.chunks, "chunk")) : "", ", ", counted(pieces, "piece"),
                "; a number is a piece's forward, one with dashes its backward, a dot idle time",
                several ? ", a letter the chunk" : "", "\n", drawn(timeline),
                "idle: ", brief(100 * idle_share(timeline)),
                " % if a backward takes two forwards and sending no time; ",
                several ? "(p - 1) / (v m + p - 1), reached where p divides m, is " : "(p - 1) / (m + p - 1) is ",
                brief(100 * (p - 1) / (vm + p - 1)), " %\n");
}

}  // namespace mgt::strategy
