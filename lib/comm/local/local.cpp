#include "comm/local/local.h"

#include "comm/collectives/own_collectives.h"
#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace mgt::comm {

// Who meets: all ranks (from = to = -1), or a sender and a receiver; and the how-manieth meeting of that kind it is.
struct Place {
  Lane lane;
  int64_t from;
  int64_t to;
  int64_t number;
  auto operator<=>(const Place&) const = default;
};

// One operation of several ranks: each leaves its part, the last one carries it out.
struct Meeting {
  std::vector<std::optional<Operation>> parts;  // by rank; of send and recv: sender, receiver
  std::size_t arrived = 0;
  bool done = false;
};

namespace {

void check_alike(const Operation& first, const Operation& other) {
  if (first.kind == other.kind && first.input.sizes() == other.input.sizes() && first.peer == other.peer &&
      first.input.scalar_type() == other.input.scalar_type()) {
    return;
  }
  throw CommError(concat("ranks disagree in collective #", first.number, ": ", name_of(first.kind), " of ",
                         first.input.sizes(), " ", first.input.scalar_type(), " against ", name_of(other.kind), " of ",
                         other.input.sizes(), " ", other.input.scalar_type()));
}

void sum_to_all(std::vector<std::optional<Operation>>& parts) {
  at::Tensor& sum = parts[0]->output;
  for (std::size_t rank = 1; rank < parts.size(); ++rank) sum.add_(parts[rank]->input.to(sum.device()));
  for (std::size_t rank = 1; rank < parts.size(); ++rank) parts[rank]->output.copy_(sum);
}

void sum_to_each(std::vector<std::optional<Operation>>& parts) {
  const auto size = static_cast<int64_t>(parts.size());
  for (int64_t rank = 0; rank < size; ++rank) {
    at::Tensor sum = parts[0]->input.view({size, -1})[rank].clone();
    for (std::size_t other = 1; other < parts.size(); ++other)
      sum.add_(parts[other]->input.view({size, -1})[rank].to(sum.device()));
    parts[static_cast<std::size_t>(rank)]->output.view({-1}).copy_(sum);
  }
}

void gather_to_all(std::vector<std::optional<Operation>>& parts) {
  const auto size = static_cast<int64_t>(parts.size());
  for (auto& target : parts) {
    for (int64_t rank = 0; rank < size; ++rank) {
      target->output.view({size, -1})[rank].copy_(parts[static_cast<std::size_t>(rank)]->input.view({-1}));
    }
  }
}

void carry_out(std::vector<std::optional<Operation>>& parts) {
  const at::NoGradGuard no_grad;
  const auto kind = parts[0]->kind;
  if (kind == Collective::send) {  // parts: sender, receiver
    require(parts[0]->input.sizes() == parts[1]->output.sizes(), "send and recv of different shapes");
    parts[1]->output.copy_(parts[0]->input);
    return;
  }
  for (const auto& part : parts) check_alike(*parts[0], *part);
  switch (kind) {
    case Collective::all_reduce:
      return sum_to_all(parts);
    case Collective::reduce_scatter:
      return sum_to_each(parts);
    case Collective::all_gather:
      return gather_to_all(parts);
    case Collective::broadcast: {
      const at::Tensor& source = parts[static_cast<std::size_t>(parts[0]->peer)]->input;
      for (auto& part : parts) {
        if (!part->output.is_same(source)) part->output.copy_(source);
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace

class Hub {
 public:
  Hub(int64_t size, double timeout_s) : size_(size), timeout_s_(timeout_s) {}

  int64_t size() const { return size_; }

  // Leaves `operation` at its place; `part` is the position among the `parties` that meet there.
  void arrive(const Place& place, const Operation& operation, std::size_t part, std::size_t parties) {
    std::unique_lock lock(mutex_);
    throw_if_aborted();
    Meeting& meeting = meetings_[place];
    meeting.parts.resize(parties);
    meeting.parts[part] = operation;
    if (++meeting.arrived < parties) return;
    // Outside the lock: all parts are there, nobody else touches them before `done`.
    lock.unlock();
    try {
      carry_out(meeting.parts);
    } catch (const std::exception& error) {
      abort(error.what());
      throw;
    }
    lock.lock();
    meeting.parts.clear();  // a rank frees its memory when it has left, however late the others leave
    meeting.done = true;
    arrived_.notify_all();
  }

  void leave(const Place& place, int64_t rank, const Operation& operation) {
    std::unique_lock lock(mutex_);
    Meeting& meeting = meetings_.at(place);
    const auto limit = std::chrono::duration<double>(timeout_s_);
    const bool in_time = arrived_.wait_for(lock, limit, [&] { return meeting.done || aborted_.has_value(); });
    if (!meeting.done) throw_if_aborted();
    if (!in_time) {
      aborted_ = late(place, meeting, rank, operation);
      arrived_.notify_all();
      throw CommError(*aborted_);
    }
    if (--meeting.arrived == 0) meetings_.erase(place);
  }

  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = reason;
    arrived_.notify_all();
    for (const auto& [key, part] : parts_) part->abort(reason);
  }

  // The hub of the ranks that chose `color` in the split `number`, made by the first to ask.
  std::shared_ptr<Hub> part(int64_t number, int64_t color, int64_t size) {
    const std::lock_guard lock(mutex_);
    throw_if_aborted();
    std::shared_ptr<Hub>& hub = parts_[{number, color}];
    if (!hub) hub = std::make_shared<Hub>(size, timeout_s_);
    return hub;
  }

 private:
  static int64_t rank_of(const Place& place, std::size_t part) {
    if (place.from < 0) return static_cast<int64_t>(part);
    return part == 0 ? place.from : place.to;
  }

  void throw_if_aborted() const {
    if (aborted_) throw CommError(*aborted_);
  }

  std::string late(const Place& place, const Meeting& meeting, int64_t rank, const Operation& operation) const {
    std::vector<int64_t> missing;
    for (std::size_t part = 0; part < meeting.parts.size(); ++part) {
      if (!meeting.parts[part]) missing.push_back(rank_of(place, part));
    }
    return concat("rank ", rank, " waited ", timeout_s_, " s in ", name_of(operation.kind), " #", operation.number,
                  " for rank ", join(missing), "; raise comm.timeout if it was only slow");
  }

  int64_t size_;
  double timeout_s_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Place, Meeting> meetings_;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<Hub>> parts_;  // by split and color
  std::optional<std::string> aborted_;
};

namespace {

class LocalPending final : public Pending {
 public:
  LocalPending(std::shared_ptr<Hub> hub, Place place, int64_t rank, Operation operation)
      : hub_(std::move(hub)), place_(place), rank_(rank), operation_(std::move(operation)) {}
  void wait() override { hub_->leave(place_, rank_, operation_); }

 private:
  std::shared_ptr<Hub> hub_;
  Place place_;
  int64_t rank_;
  Operation operation_;
};

// One rank's way into the hub, in one lane.
class Door {
 public:
  Door(std::shared_ptr<Hub> hub, int64_t rank, Lane lane) : hub_(std::move(hub)), rank_(rank), lane_(lane) {}

  std::unique_ptr<Pending> start(const Operation& operation) {
    const bool sends = operation.kind == Collective::send, receives = operation.kind == Collective::recv;
    Place place{lane_, -1, -1, 0};
    if (sends) place = {lane_, rank_, operation.peer, 0};
    if (receives) place = {lane_, operation.peer, rank_, 0};
    place.number = meetings_[{place.from, place.to}]++;
    if (sends || receives)
      hub_->arrive(place, operation, sends ? 0 : 1, 2);
    else
      hub_->arrive(place, operation, static_cast<std::size_t>(rank_), static_cast<std::size_t>(hub_->size()));
    return std::make_unique<LocalPending>(hub_, place, rank_, operation);
  }

 private:
  std::shared_ptr<Hub> hub_;
  int64_t rank_;
  Lane lane_;
  std::map<std::pair<int64_t, int64_t>, int64_t> meetings_;  // how many this rank has had, by (from, to)
};

class LocalLink final : public Link {
 public:
  LocalLink(const std::shared_ptr<Hub>& hub, int64_t rank)
      : Link(rank, hub->size()), door_(hub, rank, Lane::algorithm) {}
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int64_t from) override {
    return door_.start({Collective::recv, tensor, tensor, from, messages_++});
  }

 private:
  std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int64_t to) override {
    return door_.start({Collective::send, tensor, tensor, to, messages_++});
  }

  Door door_;
  int64_t messages_ = 0;
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Hub> hub, int64_t rank, Algorithm algorithm)
      : Communicator(rank, hub->size()),
        hub_(std::move(hub)),
        algorithm_(algorithm),
        door_(hub_, rank, Lane::operations) {
    if (algorithm != Algorithm::library) own_.emplace(algorithm, std::make_unique<LocalLink>(hub_, rank));
  }

  std::unique_ptr<Communicator> split(int64_t color) override {
    const at::Tensor own = at::full({1}, color, at::kLong);
    at::Tensor all = at::empty({size()}, at::kLong);
    all_gather(own, all).wait();
    const auto* colors = all.const_data_ptr<int64_t>();
    const Seat seat = seat_of(rank(), {colors, colors + size()});
    return make_local(hub_->part(splits_++, color, seat.size), seat.rank, algorithm_);
  }

 private:
  std::unique_ptr<Pending> start(const Operation& operation, Ledger& ledger) override {
    if (own_ && own_->take(operation)) return own_->start(operation, ledger);
    ledger.sent(operation.kind, traffic(operation, rank(), size()));
    return door_.start(operation);
  }

  std::shared_ptr<Hub> hub_;
  Algorithm algorithm_;
  Door door_;
  int64_t splits_ = 0;
  std::optional<OwnCollectives> own_;
};

}  // namespace

std::shared_ptr<Hub> make_hub(int64_t size, double timeout_s) { return std::make_shared<Hub>(size, timeout_s); }

void abort(Hub& hub, const std::string& reason) { hub.abort(reason); }

std::unique_ptr<Communicator> make_local(std::shared_ptr<Hub> hub, int64_t rank, Algorithm algorithm) {
  // Whoever comes last reads the others' memory: between threads, nothing that sends messages is faster.
  if (algorithm == Algorithm::automatic) algorithm = Algorithm::library;
  return std::make_unique<LocalCommunicator>(std::move(hub), rank, algorithm);
}

}  // namespace mgt::comm
