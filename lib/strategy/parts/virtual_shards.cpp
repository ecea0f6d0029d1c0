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

}  // namespace

VirtualShards::VirtualShards(int64_t shards, int64_t owners, int64_t owner)
    : shards_(shards), own_(split(shards, owners, owner)) {
  require(shards % owners == 0, "the number of owners divides the number of virtual shards");
}

Range VirtualShards::rows(int64_t rows) const {
  return {split(rows, shards_, own_.begin).begin, split(rows, shards_, own_.end - 1).end};
}

data::Batch VirtualShards::rows_of(int64_t shard, const data::Batch& own, int64_t rows) const {
  const Range part = split(rows, shards_, shard);
  const int64_t first = this->rows(rows).begin;
  const data::Batch view = data::slice(own, part.begin - first, part.end - first, own.inputs.device());
  return {view.inputs.clone(), view.targets.clone()};
}

double VirtualShards::sum(const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients,
                          const ShardGradient& compute) const {
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& gradient : gradients) gradient.zero_();
  }
  TreeSum tree;
  std::vector<double> losses;
  for (int64_t shard = own_.begin; shard < own_.end; ++shard) {
    losses.push_back(compute(shard, rows_of(shard, own, rows)));
    tree.add(gradients);
  }
  tree.take(gradients);
  return tree_sum(losses);
}

void TreeSum::add(std::span<at::Tensor> gradients) {
  const at::NoGradGuard no_grad;
  Subtree sum{.shards = 1};
  for (; !left_.empty() && left_.back().shards == sum.shards; left_.pop_back()) {
    for (std::size_t index = 0; index < gradients.size(); ++index) gradients[index].add_(left_.back().gradients[index]);
    sum.shards *= 2;
  }
  for (at::Tensor& gradient : gradients) {
    sum.gradients.push_back(gradient.clone());
    gradient.zero_();
  }
  left_.push_back(std::move(sum));
}

void TreeSum::take(std::span<at::Tensor> gradients) {
  require(left_.size() == 1, "a power of two of shards is added up");
  const at::NoGradGuard no_grad;
  for (std::size_t index = 0; index < gradients.size(); ++index) gradients[index].copy_(left_[0].gradients[index]);
  left_.clear();
}

at::Tensor tree_sum(std::span<const at::Tensor> parts) {
  return along_tree(parts, [](const at::Tensor& left, const at::Tensor& right) { return left + right; });
}

double tree_sum(std::span<const double> parts) { return along_tree(parts, std::plus<>()); }

void tree_sum_over_ranks(comm::Communicator& communicator, std::span<at::Tensor> parts) {
  const at::NoGradGuard no_grad;
  const int64_t size = communicator.size();
  for (at::Tensor& part : parts) {
    at::Tensor all = at::empty({size * part.numel()}, part.options());
    communicator.all_gather(part, all).wait();
    part.copy_(tree_sum(all.view({size, -1}).unbind(0)));
  }
}

std::optional<VirtualShards> virtual_shards_of(const config::Config& config, int64_t owners, int64_t owner) {
  const config::Run run = config::run_of(config);
  if (!run.invariant) return std::nullopt;
  return VirtualShards(run.virtual_shards, owners, owner);
}

}  // namespace mgt::strategy
