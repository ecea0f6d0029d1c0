#include "strategy/parts/virtual_shards.h"

#include "config/run.h"
#include "core/error.h"

#include "torch_pch.h"

namespace mgt::strategy {
namespace {

// `plus` along a binary tree over a power of two of parts.
template <typename Value, typename Plus>
Value along_tree(std::span<const Value> parts, const Plus& plus) {
  if (parts.size() == 1) return parts.front();
  const std::size_t half = parts.size() / 2;
  return plus(along_tree(parts.first(half), plus), along_tree(parts.subspan(half), plus));
}

// In memory of its own, so that the place of a shard in a rank's batch cannot show in the result.
data::Batch own_copy(const data::Batch& batch, Range rows) {
  const data::Batch part = data::slice(batch, rows.begin, rows.end, batch.inputs.device());
  return {part.inputs.clone(), part.targets.clone()};
}

}  // namespace

VirtualShards::VirtualShards(int64_t shards, int64_t owners, int64_t owner)
    : shards_(shards), own_(split(shards, owners, owner)) {
  require(shards % owners == 0, "the number of owners divides the number of virtual shards");
}

Range VirtualShards::rows(int64_t rows) const {
  return {split(rows, shards_, own_.begin).begin, split(rows, shards_, own_.end - 1).end};
}

double VirtualShards::sum(const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients,
                          const ShardGradient& compute) const {
  return subtree(own_, own, rows, gradients, compute);
}

double VirtualShards::subtree(Range shards, const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients,
                              const ShardGradient& compute) const {
  if (shards.size() == 1) {
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& gradient : gradients) gradient.zero_();
    }
    const Range part = split(rows, shards_, shards.begin);
    const int64_t first = this->rows(rows).begin;
    return compute(shards.begin, own_copy(own, {part.begin - first, part.end - first}));
  }
  const int64_t middle = shards.begin + shards.size() / 2;
  double loss = subtree({shards.begin, middle}, own, rows, gradients, compute);
  std::vector<at::Tensor> left;
  for (const at::Tensor& gradient : gradients) left.push_back(gradient.clone());
  loss += subtree({middle, shards.end}, own, rows, gradients, compute);
  const at::NoGradGuard no_grad;
  for (std::size_t index = 0; index < gradients.size(); ++index) gradients[index].add_(left[index]);
  return loss;
}

at::Tensor tree_sum(std::span<const at::Tensor> parts) {
  return along_tree(parts, [](const at::Tensor& left, const at::Tensor& right) { return left + right; });
}

double tree_sum(std::span<const double> parts) { return along_tree(parts, std::plus<>()); }

double sum_over_ranks(comm::Communicator& communicator, std::span<at::Tensor> gradients, double loss) {
  const at::NoGradGuard no_grad;
  const int64_t size = communicator.size();
  const auto gathered = [&](const at::Tensor& part) {
    at::Tensor all = at::empty({size * part.numel()}, part.options());
    communicator.all_gather(part, all).wait();
    return all.view({size, -1}).unbind(0);
  };
  for (at::Tensor& part : gradients) part.copy_(tree_sum(gathered(part)));
  const at::Tensor losses = at::full({1}, loss, gradients.front().options().dtype(at::kDouble));
  return tree_sum(gathered(losses)).item<double>();
}

std::optional<VirtualShards> virtual_shards_of(const config::Config& config, int64_t owners, int64_t owner) {
  const config::Run run = config::run_of(config);
  if (!run.invariant) return std::nullopt;
  return VirtualShards(run.virtual_shards, owners, owner);
}

}  // namespace mgt::strategy
