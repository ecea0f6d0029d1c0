// What the oracle found out about a run: the worst difference from its reference in each quantity, and the first that
// is out of bounds. Filled by all ranks of the run at once (guarded by a mutex), read when they have ended.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace mgt::verify {

enum class Quantity { gradients, loss, gradient_norm, parameters, optimizer_state, buffers, saved, evaluation };

const char* name_of(Quantity quantity);

struct Difference {
  double size = 0;          // relative
  std::string tensor = {};  // "" for scalars
  int64_t step = 0;         // from 1; of an evaluation: the epoch
  int64_t rank = 0;
  int64_t replica = 0;               // of that rank
  std::optional<double> ratio = {};  // where the value is this multiple of the reference's
  double bound = 0;                  // how large it may be

  std::string digits_of(double size_or_bound) const;  // as many as tell the two apart
};

// How large a difference may be: `base`, or more where rounding alone was seen to make more of one tensor. Evaluation
// counts must be equal; one row may fall on the other side where rounding decides some tensor altogether.
struct Bounds {
  double base = 0;
  std::map<std::pair<Quantity, std::string>, double> learned = {};
  double of(Quantity quantity, const std::string& tensor) const;
};

class Findings {
 public:
  explicit Findings(Bounds bounds) : bounds_(std::move(bounds)) {}

  void add(Quantity quantity, Difference difference);  // its bound is set here

  const Bounds& bounds() const { return bounds_; }
  // Of what was compared, the worst relative to its bound.
  const std::map<Quantity, Difference>& worst() const { return worst_; }
  // The first step's; within a step by the order of Quantity, then by the lowest rank. Evaluations come last.
  const std::optional<std::pair<Quantity, Difference>>& first_out_of_bounds() const { return first_; }

 private:
  Bounds bounds_;
  std::mutex mutex_;
  std::map<Quantity, Difference> worst_;
  std::optional<std::pair<Quantity, Difference>> first_;
};

// What kind of run it was, to read a ratio by.
struct Setting {
  int64_t devices = 1;
  int64_t batch_size = 1;
};

// "the ratio 2 is the number of devices: a sum was not divided", or "" where the ratio says nothing.
std::string likely_cause(double ratio, const Setting& setting);

// "gradients: fc1.weight is off by 0.5 (bound 1e-12) at step 1 on rank 0, replica 1; ..."
std::string text_of(Quantity quantity, const Difference& difference, const Setting& setting);

}  // namespace mgt::verify
