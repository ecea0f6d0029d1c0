#include "strategy/mesh/shared_unit.h"

#include "core/error.h"
#include "optim/entry.h"

#include "torch_pch.h"

namespace mgt::strategy {
namespace {

int64_t bytes_of(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

}  // namespace

SharedUnit::SharedUnit(const Context& context, const Sharing& sharing, model::Replica& replica, int64_t index,
                       bool whole_gradients, bool owns_whole)
    : communicator_(context.communicator),
      sharing_(sharing),
      replica_(replica),
      index_(index),
      whole_gradients_(whole_gradients || !sharing.shares_gradients()),
      owns_whole_(owns_whole),
      clip_(optim::clip_of(context.config)),
      size_(replica.unit(index).numel()) {
  const int64_t owners = sharing.shares_optimizer() ? communicator_.size() : 1;
  owned_ = split(size_, owners, owners > 1 ? communicator_.rank() : 0);
  require(owned_.size() * owners == size_, "a unit that is shared out is a multiple of the ranks");
  own_ = overlaps(slots(), owned_, owns_whole);
  padding_ = size_;
  for (const model::Slot& slot : slots()) padding_ -= slot.range.size();

  const at::NoGradGuard no_grad;
  replica_.hold(index);
  replica_.initialize(index, context.seed);
  gathered_ = replica_.unit(index).variable_data();
  communicator_.broadcast(gathered_, 0).wait();
  own_parameters_ = gathered_.narrow(0, owned_.begin, owned_.size());
  if (sharing_.shares_parameters()) own_parameters_ = own_parameters_.clone();
  release();
  make_gradient_memory();
  const bool no_decay = optim::no_decay(context.config);
  if (sharing_.offload) host_parameters_ = own_parameters_.cpu();
  optimizer_ =
      optim::make(context.config, subject_of(sharing_.offload ? host_parameters_ : own_parameters_, own_, no_decay));
}

std::span<const model::Slot> SharedUnit::slots() const {
  const Range range = replica_.layout().units[static_cast<std::size_t>(index_)];
  return std::span(replica_.slots())
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

// Gradients that stay whole are added to in place by backward where they may lie in their bucket at once.
void SharedUnit::make_gradient_memory() {
  if (!whole_gradients_) {
    own_gradients_ = at::zeros_like(own_parameters_);
    return;
  }
  gradients_ = sharing_.contiguous_gradients ? replica_.make_gradients(index_) : at::zeros_like(gathered_);
  own_gradients_ = gradients_.narrow(0, owned_.begin, owned_.size());
}

void SharedUnit::begin_step() {
  has_own_ = false;
  if (gradients_.defined()) gradients_.zero_();
}

void SharedUnit::begin_piece(bool reduces) {
  reduces_ = reduces;
  missing_ = static_cast<int64_t>(slots().size());
}

bool SharedUnit::collect(int64_t slot) {
  if (!whole_gradients_ && sharing_.contiguous_gradients) move_to_bucket(slot);
  return --missing_ == 0;
}

// Takes the gradient that backward has made for a slot away from it.
void SharedUnit::move_to_bucket(int64_t slot) {
  const at::NoGradGuard no_grad;
  if (!gradients_.defined()) gradients_ = at::zeros({size_}, own_gradients_.options());
  const auto place = static_cast<std::size_t>(slot);
  at::Tensor& gradient = replica_.parameter_views()[place].mutable_grad();
  if (!gradient.defined()) return;
  const model::Slot& made = replica_.slots()[place];
  gradients_.narrow(0, made.range.begin, made.range.size()).copy_(gradient.view({-1}));
  gradient.reset();
}

void SharedUnit::start_reduction() {
  if (!reduces_) return;
  reduces_ = false;
  if (!sharing_.contiguous_gradients || !gradients_.defined()) {
    const Range range = replica_.layout().units[static_cast<std::size_t>(index_)];
    for (int64_t slot = range.begin; slot < range.end; ++slot) move_to_bucket(slot);
    if (!gradients_.defined()) gradients_ = at::zeros({size_}, own_gradients_.options());
  }
  if (!sharing_.shares_optimizer() || !sharing_.reduce_scatter) {
    reductions_.push_back(communicator_.all_reduce(gradients_));
    return;
  }
  reduced_ = whole_gradients_ || !has_own_ ? own_gradients_ : at::empty_like(own_gradients_);
  reductions_.push_back(communicator_.reduce_scatter(gradients_, reduced_));
}

void SharedUnit::finish_reduction() {
  if (reductions_.empty()) return;
  wait_for(reductions_);
  if (!whole_gradients_) keep_own_part();
}

void SharedUnit::keep_own_part() {
  const at::NoGradGuard no_grad;
  if (!sharing_.reduce_scatter) reduced_ = gradients_.narrow(0, owned_.begin, owned_.size());
  if (has_own_)
    own_gradients_.add_(reduced_);
  else if (!reduced_.is_same(own_gradients_))
    own_gradients_.copy_(reduced_);
  has_own_ = true;
  gradients_.reset();
  reduced_.reset();
}

void SharedUnit::start_gather() {
  if (!sharing_.shares_parameters() || replica_.holds(index_)) return;
  replica_.hold(index_);
  gather_into(gathered_);
}

void SharedUnit::finish_gather() { wait_for(gathers_); }

void SharedUnit::release() {
  if (sharing_.shares_parameters()) replica_.release(index_);
}

void SharedUnit::gather_into(const at::Tensor& target) {
  at::Tensor whole = target;
  if (sharing_.all_gather) {
    gathers_.push_back(communicator_.all_gather(own_parameters_, whole));
    return;
  }
  for (int64_t owner = 0; owner < communicator_.size(); ++owner) {
    const Range part = split(size_, communicator_.size(), owner);
    at::Tensor slice = whole.narrow(0, part.begin, part.size());
    if (owner == communicator_.rank() && sharing_.shares_parameters()) slice.copy_(own_parameters_);
    gathers_.push_back(communicator_.broadcast(slice, owner));
  }
}

void SharedUnit::update(double lr, double global_norm, int64_t done) {
  const at::NoGradGuard no_grad;
  if (!sharing_.offload) {
    optim::clip(own_gradients_, clip_, global_norm);
    optimizer_->step(own_parameters_, own_gradients_, lr, done);
    return;
  }
  at::Tensor gradients = own_gradients_.cpu();
  optim::clip(gradients, clip_, global_norm);
  optimizer_->step(host_parameters_, gradients, lr, done);
  own_parameters_.copy_(host_parameters_);
}

void SharedUnit::start_sharing_update() {
  const at::NoGradGuard no_grad;
  if (sharing_.shares_optimizer() && !sharing_.shares_parameters()) gather_into(gathered_);
}

void SharedUnit::wait_for(std::vector<comm::Work>& works) {
  for (comm::Work& work : works) work.wait();
  works.clear();
}

void SharedUnit::state_loaded() {
  const at::NoGradGuard no_grad;
  if (!sharing_.shares_parameters()) communicator_.broadcast(gathered_, 0).wait();
  if (!sharing_.shares_optimizer()) {
    for (const optim::StateTensor& state : optimizer_->state()) {
      at::Tensor flat = state.flat;
      communicator_.broadcast(flat, 0).wait();
    }
  }
  if (sharing_.offload) host_parameters_.copy_(own_parameters_);
}

std::vector<model::StateSlice> SharedUnit::state() {
  const bool first = communicator_.rank() == 0;
  const bool shared = sharing_.shares_parameters();
  std::vector<model::StateSlice> slices;
  for (const Overlap& overlap : shared ? own_ : everything()) {
    slices.push_back(slice_of(overlap.slot->name, model::StateKind::parameter, shared ? own_parameters_ : gathered_,
                              overlap, shared || first));
  }
  for (model::StateSlice& slice : optimizer_slices(*optimizer_, own_, sharing_.shares_optimizer() || first)) {
    slices.push_back(std::move(slice));
  }
  return slices;
}

int64_t SharedUnit::parameter_bytes() const {
  return bytes_of(sharing_.shares_parameters() ? own_parameters_ : gathered_);
}

int64_t SharedUnit::gathered_bytes() const {
  return sharing_.shares_parameters() ? static_cast<int64_t>(gathered_.storage().nbytes()) : 0;
}

int64_t SharedUnit::bucket_bytes() const { return whole_gradients_ ? 0 : bytes_of(gradients_); }

int64_t SharedUnit::gradient_bytes() const { return bytes_of(whole_gradients_ ? gradients_ : own_gradients_); }

int64_t SharedUnit::optimizer_bytes() const {
  int64_t bytes = 0;
  for (const optim::StateTensor& state : optimizer_->state()) bytes += bytes_of(state.flat);
  return bytes;
}

}  // namespace mgt::strategy
