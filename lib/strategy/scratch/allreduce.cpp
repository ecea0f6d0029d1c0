#include "strategy/scratch/allreduce.h"

#include "core/error.h"
#include "core/split.h"

#include "torch_pch.h"

#include <numeric>

namespace mgt::strategy::scratch {
namespace {

// The devices' vectors, and the two things that one device can do with another's.
class Devices {
 public:
  explicit Devices(std::vector<at::Tensor>& data) : data_(data) {
    traffic.bytes_sent.resize(data.size());
    traffic.bytes_received.resize(data.size());
  }

  int64_t size() const { return static_cast<int64_t>(data_.size()); }

  // data[to] += data[from], or a part of it. The data must be copied to the device before it can be added there.
  void add(int64_t from, int64_t to) { add(from, to, everything()); }
  void add(int64_t from, int64_t to, const Range& part) {
    at::Tensor target = piece(to, part);
    target.add_(piece(from, part).to(target.device()));
    count(from, to, target);
  }

  // data[to] = data[from], or a part of it, written into the memory that data[to] has.
  void copy(int64_t from, int64_t to) { copy(from, to, everything()); }
  void copy(int64_t from, int64_t to, const Range& part) {
    at::Tensor target = piece(to, part);
    target.copy_(piece(from, part));
    count(from, to, target);
  }

  // Part `index` of k of each vector.
  Range chunk(int64_t index) const { return split(data_[0].numel(), size(), (index + 2 * size()) % size()); }

  Traffic traffic;

 private:
  Range everything() const { return {0, data_[0].numel()}; }

  at::Tensor piece(int64_t device, const Range& part) const {
    return data_[static_cast<std::size_t>(device)].view({-1}).narrow(0, part.begin, part.size());
  }

  void count(int64_t from, int64_t to, const at::Tensor& moved) {
    const int64_t bytes = moved.numel() * static_cast<int64_t>(moved.element_size());
    traffic.bytes_sent[static_cast<std::size_t>(from)] += bytes;
    traffic.bytes_received[static_cast<std::size_t>(to)] += bytes;
  }

  std::vector<at::Tensor>& data_;
};

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  bytes_sent.resize(other.bytes_sent.size());
  bytes_received.resize(other.bytes_received.size());
  for (std::size_t device = 0; device < other.bytes_sent.size(); ++device) {
    bytes_sent[device] += other.bytes_sent[device];
    bytes_received[device] += other.bytes_received[device];
  }
  rounds += other.rounds;
  return *this;
}

int64_t Traffic::total_bytes() const { return std::accumulate(bytes_sent.begin(), bytes_sent.end(), int64_t{0}); }

// Add all to device 0, one after another; then copy the sum back to all.
Traffic allreduce_naive(std::vector<at::Tensor>& data) {
  const at::NoGradGuard no_grad;
  Devices devices(data);
  for (int64_t i = 1; i < devices.size(); ++i) devices.add(i, 0);
  for (int64_t i = 1; i < devices.size(); ++i) devices.copy(0, i);
  devices.traffic.rounds = 2 * (devices.size() - 1);
  return devices.traffic;
}

// In round r the devices that are odd multiples of 2^r give their sums to the neighbour 2^r below; device 0 ends with
// the total, which goes the same way back.
Traffic allreduce_tree(std::vector<at::Tensor>& data) {
  const at::NoGradGuard no_grad;
  Devices devices(data);
  int64_t distance = 1;
  for (; distance < devices.size(); distance *= 2) {
    for (int64_t i = 0; i + distance < devices.size(); i += 2 * distance) devices.add(i + distance, i);
    ++devices.traffic.rounds;
  }
  for (distance /= 2; distance >= 1; distance /= 2) {
    for (int64_t i = 0; i + distance < devices.size(); i += 2 * distance) devices.copy(i, i + distance);
    ++devices.traffic.rounds;
  }
  return devices.traffic;
}

// Each vector is cut into k chunks. For k-1 rounds every device adds one chunk of its own to its right neighbour's, so
// that each chunk collects all devices' values on its way round; for k-1 more rounds the finished chunks go round.
Traffic allreduce_ring(std::vector<at::Tensor>& data) {
  const at::NoGradGuard no_grad;
  Devices devices(data);
  const int64_t k = devices.size();
  for (int64_t round = 0; round < k - 1; ++round) {
    for (int64_t i = 0; i < k; ++i) devices.add(i, (i + 1) % k, devices.chunk(i - round));
    ++devices.traffic.rounds;
  }
  for (int64_t round = 0; round < k - 1; ++round) {
    for (int64_t i = 0; i < k; ++i) devices.copy(i, (i + 1) % k, devices.chunk(i + 1 - round));
    ++devices.traffic.rounds;
  }
  return devices.traffic;
}

AllReduce allreduce_named(const std::string& name) {
  if (name == "naive") return allreduce_naive;
  if (name == "tree") return allreduce_tree;
  require(name == "ring", "an all-reduce is naive, tree or ring");
  return allreduce_ring;
}

}  // namespace mgt::strategy::scratch
