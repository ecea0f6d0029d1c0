#include "launch/batch_plan.h"

#include "core/text.h"
#include "strategy/parts/microbatches.h"

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

}  // namespace

BatchPlan batch_plan(const config::Config& config, int64_t data_ranks) {
  const auto batch_size = given(config, "batch_size"), micro_batch = given(config, "micro_batch");
  auto accumulate = given(config, "accumulate");
  // A pipeline's microbatches are its accumulation; what the user has written himself comes first.
  const std::string microbatches = "strategy.microbatches";
  const bool in_pipeline = config.section("strategy").has("microbatches");
  const bool chosen = in_pipeline && config.at(microbatches).origin.source != config::Origin::Source::fallback;
  const int64_t pieces = in_pipeline ? config.section("strategy").integer("microbatches") : 1;
  if (chosen && accumulate && *accumulate != pieces) {
    config.error_at("accumulate",
                    concat(*accumulate, " is not ", microbatches, " ", pieces, "; leave one of them out"));
  }
  const bool is_asked = accumulate || micro_batch || chosen;
  if (in_pipeline && !accumulate && (chosen || !micro_batch)) accumulate = pieces;
  BatchPlan plan{
      .batch_size = config.top().integer("batch_size"), .accumulate = accumulate.value_or(1), .is_asked = is_asked};
  if (!batch_size && micro_batch && accumulate) plan.batch_size = *micro_batch * *accumulate * data_ranks;
  const int64_t rows = divided_up(plan.batch_size, data_ranks);
  if (micro_batch && !accumulate) plan.accumulate = divided_up(rows, *micro_batch);
  plan.pieces = std::min(plan.accumulate, rows);
  plan.micro_batch = divided_up(rows, plan.pieces);
  if (micro_batch && accumulate && plan.micro_batch != *micro_batch) {
    config.error_at("micro_batch",
                    concat(*micro_batch, " rows x accumulate ", *accumulate, " x ", counted(data_ranks, "data rank"),
                           " is not batch_size ", plan.batch_size, "; leave one of the three out, and it follows"));
  }
  return plan;
}

}  // namespace mgt::launch
