#include "verify/spectator.h"

#include <utility>

namespace mgt::verify {

Spectator::Spectator(Sink& sink, MakeStrategy make, Fault fault, uint64_t seed_offset)
    : sink_(sink), make_(std::move(make)), fault_(std::move(fault)), seed_offset_(seed_offset) {}

data::Order Spectator::order(data::Order made) { return fault_.order ? fault_.order(std::move(made)) : made; }

std::unique_ptr<strategy::Strategy> Spectator::make(const strategy::Entry& entry, const strategy::Context& context) {
  const strategy::Context seeded{context.config,       context.model,      context.devices,
                                 context.communicator, context.dtype,      context.seed + seed_offset_,
                                 context.threads,      context.micro_batch};
  auto made = make_ ? make_(entry, seeded) : make_faulty(entry, seeded, fault_);
  strategy_ = made.get();
  return made;
}

void Spectator::step_done(const train::StepRecord& record) { sink_.step(record, strategy_->state()); }

void Spectator::epoch_done(const train::EpochRecord& record) { sink_.evaluation(record); }

void Spectator::gradients_computed(int64_t replica, const Parameters& parameters) {
  if (fault_.gradients_computed) fault_.gradients_computed(replica, parameters);
}

void Spectator::gradients_ready(int64_t replica, const Parameters& parameters) {
  if (fault_.gradients_ready) fault_.gradients_ready(replica, parameters);
  sink_.gradients(replica, parameters);
}

void Spectator::updated(int64_t replica, const Parameters& parameters) {
  if (fault_.updated) fault_.updated(replica, parameters);
}

}  // namespace mgt::verify
