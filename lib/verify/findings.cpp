#include "verify/findings.h"

#include "core/text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace mgt::verify {
namespace {

// The order in which one looks for a cause, which is not that of the comparisons.
auto order(Quantity quantity, const Difference& difference) {
  const bool evaluation = quantity == Quantity::evaluation;
  return std::tuple(evaluation, difference.step, quantity, difference.rank, difference.replica);
}

double times_bound(const Difference& one) {
  if (std::isnan(one.size)) return std::numeric_limits<double>::infinity();
  return one.size == 0 ? 0 : one.size / one.bound;
}

bool is_near(double ratio, double value) { return std::abs(ratio - value) <= 1e-6 * std::abs(value); }

}  // namespace

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::loss:
      return "loss";
    case Quantity::gradient_norm:
      return "gradient norm";
    case Quantity::gradients:
      return "gradients";
    case Quantity::parameters:
      return "parameters";
    case Quantity::optimizer_state:
      return "optimizer state";
    case Quantity::buffers:
      return "BatchNorm buffers";
    case Quantity::saved:
      return "saved weights";
    case Quantity::evaluation:
      return "evaluation counts";
  }
  return "";
}

double Bounds::of(Quantity quantity, const std::string& tensor) const {
  if (quantity == Quantity::evaluation) {
    return std::ranges::any_of(learned, [](const auto& entry) { return std::isinf(entry.second); }) ? 1 : 0;
  }
  if (quantity == Quantity::saved) return std::max(of(Quantity::parameters, tensor), of(Quantity::buffers, tensor));
  const auto more = learned.find({quantity, tensor});
  return more == learned.end() ? base : std::max(base, more->second);
}

std::string Difference::digits_of(double size_or_bound) const {
  return size != bound && brief(size) == brief(bound) ? shortest(size_or_bound) : brief(size_or_bound);
}

void Findings::add(Quantity quantity, Difference difference) {
  const std::lock_guard lock(mutex_);
  difference.bound = bounds_.of(quantity, difference.tensor);
  if (std::isinf(difference.bound)) return;
  const auto [worst, is_first] = worst_.try_emplace(quantity, difference);
  if (!is_first && !(times_bound(difference) <= times_bound(worst->second))) worst->second = difference;
  if (difference.size <= difference.bound) return;  // NaN is not
  if (!first_ || order(quantity, difference) < order(first_->first, first_->second)) first_ = {quantity, difference};
}

std::string likely_cause(double ratio, const Setting& setting) {
  const auto devices = static_cast<double>(setting.devices), batch = static_cast<double>(setting.batch_size);
  if (std::abs(ratio - 1) < 1e-3) return "";
  const auto is = [ratio](double value) { return is_near(ratio, value); };
  if (is(0)) return "it is zero: a part never got there";
  if (setting.devices > 1 && is(devices)) {
    return concat("the ratio is the number of devices, ", setting.devices, ": a sum was not divided, or added again");
  }
  if (setting.devices > 1 && is(1 / devices)) {
    return concat("the ratio is 1/", setting.devices, ", one over the number of devices: a mean was divided again");
  }
  if (is(batch)) return concat("the ratio is the batch size, ", setting.batch_size, ": the sum was not divided by it");
  if (is(1 / batch)) return concat("the ratio is 1/", setting.batch_size, ": divided by the batch size twice");
  if (is(2)) return "the ratio is 2: something counts twice";
  return concat("the ratio is ", brief(ratio));
}

std::string text_of(Quantity quantity, const Difference& difference, const Setting& setting) {
  if (quantity == Quantity::evaluation) {
    return concat("evaluation counts differ after epoch ", difference.step, " on rank ", difference.rank);
  }
  const std::string size =
      std::isfinite(difference.size) ? difference.digits_of(difference.size) : "NaN, infinity or a missing part";
  std::string text = concat(name_of(quantity), difference.tensor.empty() ? "" : ": " + difference.tensor, " is off by ",
                            size, " (bound ", difference.digits_of(difference.bound), ") at step ", difference.step,
                            " on rank ", difference.rank, ", replica ", difference.replica);
  const std::string cause = difference.ratio ? likely_cause(*difference.ratio, setting) : "";
  if (!cause.empty()) text += "; " + cause;
  return text;
}

}  // namespace mgt::verify
