// The clock seam: everything that is timed or waits asks a Clock, so that tests can move time by hand.
// The real clock is stateless and may be used from any thread.
#pragma once

namespace mgt {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now_s() const = 0;  // monotonic, seconds from an arbitrary start
};

const Clock& real_clock();

// Seconds since this process was started by exec, loading of libraries included.
double since_process_start_s();

}  // namespace mgt
