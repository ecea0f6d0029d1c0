#include "strategy/mesh/pieces.h"

#include "torch_pch.h"

#include <numeric>

namespace mgt::strategy {

Pieces::Pieces(const Context& context, int64_t data_ranks, int64_t data_rank)
    : data_ranks_(data_ranks),
      data_rank_(data_rank),
      micro_batch_(context.micro_batch),
      virtual_shards_(virtual_shards_of(context.config, data_ranks, data_rank)) {}

Range Pieces::rows(int64_t samples) const {
  return along_tree() ? virtual_shards_->rows(samples) : split(samples, data_ranks_, data_rank_);
}

int64_t Pieces::count(int64_t samples) const {
  return along_tree() ? virtual_shards_->own().size() : pieces_of(samples, data_ranks_, micro_batch_);
}

data::Batch Pieces::piece(const data::Batch& own, int64_t samples, int64_t index) const {
  if (along_tree()) return virtual_shards_->rows_of(virtual_shards_->own().begin + index, own, samples);
  return piece_of(own, count(samples), index);
}

double Pieces::sum(std::span<const double> losses) const {
  return along_tree() ? tree_sum(losses) : std::accumulate(losses.begin(), losses.end(), 0.0);
}

}  // namespace mgt::strategy
