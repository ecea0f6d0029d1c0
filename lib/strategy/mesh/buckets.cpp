#include "strategy/mesh/buckets.h"

#include "torch_pch.h"

namespace mgt::strategy {
namespace {

class ReadyHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit ReadyHook(std::function<void()> ready) : ready_(std::move(ready)) {}
  void operator()(const at::Tensor&) override { ready_(); }

 private:
  std::function<void()> ready_;
};

}  // namespace

std::vector<Range> cut_buckets(const model::Replica& replica, int64_t bucket_bytes) {
  const auto item_size = static_cast<int64_t>(replica.gradients().element_size());
  std::vector<Range> buckets;
  int64_t end = replica.gradients().numel();
  for (auto slot = replica.slots().rbegin(); slot != replica.slots().rend(); ++slot) {
    const bool last = std::next(slot) == replica.slots().rend();
    if ((end - slot->range.begin) * item_size < bucket_bytes && !last) continue;
    buckets.push_back({slot->range.begin, end});
    end = slot->range.begin;
  }
  return buckets;
}

Buckets::Buckets(model::Replica& replica, comm::Communicator& communicator, std::vector<Range> ranges, bool overlap)
    : replica_(replica), communicator_(communicator), overlap_(overlap), ranges_(std::move(ranges)) {
  parameters_in_.resize(ranges_.size());
  for (const Range& range : ranges_) views_.push_back(replica_.gradients().narrow(0, range.begin, range.size()));
  for (std::size_t index = 0; index < replica_.slots().size(); ++index) {
    std::size_t bucket = 0;
    while (replica_.slots()[index].range.begin < ranges_[bucket].begin) ++bucket;
    ++parameters_in_[bucket];
    torch::autograd::impl::set_post_acc_grad_hooks(
        replica_.parameter_views()[index], std::make_unique<ReadyHook>([this, bucket] { parameter_ready(bucket); }));
  }
  missing_ = parameters_in_;
}

void Buckets::begin() {
  reducing_ = true;
  missing_ = parameters_in_;
  started_.clear();
}

void Buckets::parameter_ready(std::size_t bucket) {
  if (!reducing_ || !overlap_) return;
  --missing_[bucket];
  while (started_.size() < ranges_.size() && missing_[started_.size()] == 0) {
    start_next();
    ++started_in_backward_;
  }
}

void Buckets::start_next() { started_.push_back(communicator_.all_reduce(views_[started_.size()])); }

void Buckets::finish() {
  while (started_.size() < ranges_.size()) start_next();
  for (comm::Work& work : started_) work.wait();
  started_.clear();
  reducing_ = false;
}

}  // namespace mgt::strategy
