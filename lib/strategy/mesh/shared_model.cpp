#include "strategy/mesh/shared_model.h"

#include "strategy/mesh/units.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <algorithm>
#include <cmath>

namespace mgt::strategy {
namespace {

constexpr std::size_t kReductionsAtOnce = 2;  // where buckets are freed: one that is full and one that travels

class ReadyHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ReadyHook(std::function<void()> ready) : ready_(std::move(ready)) {}
  void operator()(const at::Tensor&) override { ready_(); }

 private:
  std::function<void()> ready_;
};

std::optional<model::Box> box_of(const model::Slot& slot) {
  if (slot.global.empty()) return std::nullopt;
  return model::Box{.offset = slot.offset, .extent = slot.shape};
}

}  // namespace

Resident& Resident::operator+=(const Resident& other) {
  parameters += other.parameters;
  gradients += other.gradients;
  optimizer += other.optimizer;
  padding += other.padding;
  gathered_peak += other.gathered_peak;
  buckets_peak += other.buckets_peak;
  return *this;
}

SharedModel::SharedModel(const Context& context, const Sharing& sharing, Range blocks, comm::Communicator* slices)
    : communicator_(context.communicator),
      sharing_(sharing),
      whole_gradients_(virtual_shards_of(context.config, 1, 0).has_value()),
      replica_(context.model, blocks,
               shared_layout(context.model, blocks, context.dtype, sharing, context.communicator.size()), context.dtype,
               context.devices.front()),
      unit_of_block_(context.model.blocks.size()),
      slices_(slices),
      statistics_([this](at::Tensor& tensor) { communicator_.all_reduce(tensor).wait(); }),
      sum_of_slices_([this](at::Tensor& tensor) { slices_->all_reduce(tensor).wait(); }) {
  if (whole_gradients_) sharing_.contiguous_gradients = true;
  for (std::size_t index = 0; index < replica_.layout().units.size(); ++index) {
    units_.emplace_back(context, sharing_, replica_, static_cast<int64_t>(index), whole_gradients_,
                        !slices || slices->rank() == 0);
  }
  for (std::size_t slot = 0; slot < replica_.slots().size(); ++slot) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        replica_.parameter_views()[slot],
        std::make_unique<ReadyHook>([this, slot] { collected(static_cast<int64_t>(slot)); }));
    const model::Slot& made = replica_.slots()[slot];
    if (sharing_.shares_parameters()) unit_of_block_[static_cast<std::size_t>(made.block)] = made.unit;
  }
}

void SharedModel::begin_step() {
  for (SharedUnit& unit : units_) unit.begin_step();
}

void SharedModel::begin_backward(bool last) {
  finish_reductions();  // of the piece before, whose buckets this one fills anew
  const bool reduces = !whole_gradients_ && (last || sharing_.shares_gradients());
  for (SharedUnit& unit : units_) unit.begin_piece(reduces);
}

void SharedModel::end_backward() {
  for (int64_t index = units() - 1; index >= 0; --index) {  // what no hook has seen to
    leave(index);
    reduce(index);
  }
  if (!whole_gradients_) return;
  std::vector<at::Tensor> gradients = whole_gradients();
  tree_.add(gradients);
}

void SharedModel::finish_gradients() {
  if (!whole_gradients_) return finish_reductions();
  std::vector<at::Tensor> gradients = whole_gradients();
  tree_.take(gradients);
  tree_sum_over_ranks(communicator_, gradients);
}

std::vector<at::Tensor> SharedModel::whole_gradients() const {
  std::vector<at::Tensor> gradients;
  for (const SharedUnit& unit : units_) gradients.push_back(unit.whole_gradients());
  return gradients;
}

void SharedModel::finish_reductions() {
  for (const int64_t index : reducing_) unit(index).finish_reduction();
  reducing_.clear();
}

model::ForwardContext SharedModel::training(bool follows_statistics) const {
  return {.training = true,
          .follows_statistics = follows_statistics,
          .statistics = joins_others() ? &statistics_ : nullptr,
          .slices = slices_ ? &sum_of_slices_ : nullptr};
}

model::ForwardContext SharedModel::evaluating() const {
  return {.training = false, .slices = slices_ ? &sum_of_slices_ : nullptr};
}

at::Tensor SharedModel::forward(const at::Tensor& input, const model::ForwardContext& context) {
  if (!sharing_.shares_parameters()) return replica_.forward(input, context);
  at::Tensor value = input;
  for (int64_t block = replica_.blocks().begin; block < replica_.blocks().end; ++block) {
    const std::optional<int64_t> index = unit_of_block_[static_cast<std::size_t>(block)];
    if (index) enter(*index, 1);
    value = replica_.forward_block(block, value, context);
    if (!index) continue;
    leave(*index);
    if (!value.requires_grad()) continue;
    value.register_hook([this, index](const at::Tensor& gradient) {  // runs before the block's backward
      enter(*index, -1);
      return gradient;
    });
  }
  return value;
}

// The unit's parameters are there when this returns, and with `overlap` those of the next are on their way.
void SharedModel::enter(int64_t index, int64_t direction) {
  const int64_t next = index + direction;
  unit(index).start_gather();
  if (sharing_.overlap && 0 <= next && next < units()) unit(next).start_gather();
  unit(index).finish_gather();
  note_memory();
}

void SharedModel::leave(int64_t index) { unit(index).release(); }

void SharedModel::collected(int64_t slot) {
  const int64_t index = replica_.slots()[static_cast<std::size_t>(slot)].unit;
  if (!unit(index).collect(slot)) return;
  leave(index);
  if (whole_gradients_) return;
  // Collectives must come in one order on all ranks: by unit, from the last to the first.
  if (!sharing_.overlap && !sharing_.shares_gradients()) return;
  for (int64_t later = units() - 1; later >= index; --later) {
    if (!unit(later).is_complete()) return;
    if (unit(later).wants_reduction()) ++reductions_in_backward_;
    reduce(later);
  }
}

void SharedModel::reduce(int64_t index) {
  if (!unit(index).wants_reduction()) return;
  unit(index).start_reduction();
  reducing_.push_back(index);
  note_memory();
  const std::size_t most = !sharing_.shares_gradients() ? units_.size() : sharing_.overlap ? kReductionsAtOnce : 0;
  while (reducing_.size() > most) {
    unit(reducing_.front()).finish_reduction();
    reducing_.erase(reducing_.begin());
  }
}

void SharedModel::pass_forward() {
  for (int64_t index = 0; sharing_.shares_parameters() && index < units(); ++index) {
    enter(index, 1);
    leave(index);
  }
}

void SharedModel::pass_backward() {
  for (int64_t index = units() - 1; sharing_.shares_parameters() && index >= 0; --index) {
    enter(index, -1);
    leave(index);
    reduce(index);
  }
}

at::Tensor SharedModel::gradient_norms() const {
  std::vector<at::Tensor> parts;
  const auto add = [&parts](const Overlap& overlap, const at::Tensor& memory) {
    if (overlap.owns_whole || !overlap.slot->global.empty()) parts.push_back(part_of(memory, overlap));
  };
  for (const SharedUnit& unit : units_) {
    if (has_whole_gradients()) {
      for (const Overlap& overlap : unit.everything()) add(overlap, unit.whole_gradients());
    } else {
      for (const Overlap& overlap : unit.own()) add(overlap, unit.own_gradients());
    }
  }
  return optim::norms(parts);
}

void SharedModel::update(double lr, double global_norm, int64_t done) {
  for (SharedUnit& unit : units_) {
    unit.update(lr, global_norm, done);
    unit.start_sharing_update();
    if (!sharing_.overlap) unit.finish_sharing_update();
  }
  for (SharedUnit& unit : units_) unit.finish_sharing_update();
}

std::vector<NamedTensor> SharedModel::parameters() {
  std::vector<NamedTensor> parameters;
  if (!sharing_.shares_optimizer()) {
    for (std::size_t index = 0; index < replica_.slots().size(); ++index) {
      const model::Slot& slot = replica_.slots()[index];
      parameters.push_back({slot.name, replica_.parameter_views()[index], std::nullopt, box_of(slot)});
    }
    return parameters;
  }
  for (const SharedUnit& unit : units_) {
    for (const Overlap& overlap : unit.own()) {
      at::Tensor part = part_of(unit.own_parameters(), overlap).detach();
      part.mutable_grad() = part_of(unit.own_gradients(), overlap);
      const auto flat = overlap.is_whole() ? std::nullopt : std::optional(overlap.of_tensor);
      parameters.push_back({overlap.slot->name, part, flat, box_of(*overlap.slot)});
    }
  }
  return parameters;
}

std::vector<model::StateSlice> SharedModel::state() {
  std::vector<model::StateSlice> slices = replica_.buffer_state(
      /*primary=*/communicator_.rank() == 0, /*owns_whole=*/!slices_ || slices_->rank() == 0);
  for (SharedUnit& unit : units_) {
    for (model::StateSlice& slice : unit.state()) slices.push_back(std::move(slice));
  }
  return slices;
}

void SharedModel::state_loaded() {
  for (SharedUnit& unit : units_) unit.state_loaded();
}

void SharedModel::note_memory() {
  int64_t gathered = 0, buckets = 0;
  for (const SharedUnit& unit : units_) {
    gathered += unit.gathered_bytes();
    buckets += unit.bucket_bytes();
  }
  gathered_peak_ = std::max(gathered_peak_, gathered);
  buckets_peak_ = std::max(buckets_peak_, buckets);
}

Resident SharedModel::resident() const {
  Resident bytes{.gathered_peak = gathered_peak_, .buckets_peak = buckets_peak_};
  const auto item_size = static_cast<int64_t>(c10::elementSize(replica_.dtype()));
  for (const SharedUnit& unit : units_) {
    bytes.parameters += unit.parameter_bytes();
    bytes.gradients += unit.gradient_bytes();
    bytes.optimizer += unit.optimizer_bytes();
    bytes.padding += unit.padding() * item_size;
  }
  return bytes;
}

}  // namespace mgt::strategy
