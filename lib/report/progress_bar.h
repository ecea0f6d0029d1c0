// A progress bar on a terminal: one line that is drawn over itself, at most ten times a second. Belongs to the thread
// that trains.
#pragma once

#include "core/clock.h"
#include "train/records.h"

#include <functional>
#include <ostream>

namespace mgt::report {

class ProgressBar {
 public:
  // `columns` tells the terminal's width whenever the bar is drawn; 0 means no terminal, and nothing is drawn.
  ProgressBar(std::ostream& terminal, std::function<int64_t()> columns, const Clock& clock = real_clock());
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const train::StepRecord& record, const train::RunInfo& info);
  void erase();

 private:
  std::ostream& terminal_;
  std::function<int64_t()> columns_;
  const Clock& clock_;
  bool drawn_ = false;
  double next_s_ = 0;  // not drawn again before
};

// The width of the terminal that stderr is; 0 where it is none.
int64_t stderr_columns();

}  // namespace mgt::report
