#include "launch/batch_plan.h"

#include "core/text.h"
#include "strategy/entry.h"

#include <algorithm>
#include <optional>

namespace mgt::launch {
namespace {

using strategy::divided_up;

std::optional<int64_t> given(const config::Config& config, const std::string& key) {
  const config::Section& top = config.top();
  const bool chosen = top.has(key) && top.origin(key).source != config::Origin::Source::fallback;
  return chosen ? std::optional(top.integer(key)) : std::nullopt;
}

// A pipeline's microbatches are its accumulation.
std::optional<int64_t> microbatches_of(const config::Config& config) {
  const config::Section& section = config.section("strategy");
  return section.has("microbatches") ? std::optional(section.integer("microbatches")) : std::nullopt;
}

int64_t stages_of(const config::Config& config, int64_t devices) {
  const strategy::Entry& entry = strategy::entry_of(config);
  return entry.stages ? entry.stages(config, devices) : 1;
}

}  // namespace

BatchPlan batch_plan(const config::Config& config, int64_t devices) {
  const int64_t data_ranks = strategy::data_ranks(config, devices);
  const auto batch_size = given(config, "batch_size"), micro_batch = given(config, "micro_batch");
  auto accumulate = given(config, "accumulate");
  const auto microbatches = microbatches_of(config);
  if (microbatches && accumulate && *accumulate != *microbatches) {
    config.error_at("accumulate",
                    concat(*accumulate, " is not strategy.microbatches ", *microbatches, "; leave one of them out"));
  }
  if (!accumulate) accumulate = microbatches;
  const bool is_asked = accumulate || micro_batch;
  if (!is_asked) accumulate = stages_of(config, devices) > 1 ? strategy::kPiecesInPipeline : 1;
  BatchPlan plan{
      .batch_size = config.top().integer("batch_size"), .accumulate = accumulate.value_or(1), .is_asked = is_asked};
  if (!batch_size && micro_batch && accumulate) plan.batch_size = *micro_batch * *accumulate * data_ranks;
  const int64_t rows = divided_up(plan.batch_size, data_ranks);
  if (micro_batch && !accumulate) plan.accumulate = divided_up(rows, *micro_batch);
  plan.pieces = std::min(plan.accumulate, rows);
  plan.micro_batch = divided_up(rows, plan.pieces);
  if (micro_batch && accumulate && plan.micro_batch != *micro_batch) {
    config.error_at("micro_batch", concat(counted(*micro_batch, "row"), " x accumulate ", *accumulate, " x ",
                                          counted(data_ranks, "data rank"), " is not batch_size ", plan.batch_size,
                                          "; leave one of the three out, and it follows"));
  }
  return plan;
}

}  // namespace mgt::launch
