// What a run tells on the console: a header, a line per epoch, and the result as the very last line; or, as `json`, one
// object at the end and nothing else. Belongs to the rank that reports and must not be used from two threads at once.
#pragma once

#include "report/progress_bar.h"
#include "train/records.h"

#include <ostream>
#include <string>
#include <vector>

namespace mgt::report {

struct ConsoleStyle {
  bool json = false;
  bool quiet = false;           // the last line alone
  std::string language = "en";  // of the last line
  std::string run_folder = {};  // to be named at the end
};

class Console final : public train::Observer {
 public:
  // Writes to `out`; `bar` stands on the terminal between the lines.
  Console(ConsoleStyle style, std::ostream& out, ProgressBar& bar);

  void run_started(const train::RunInfo& info) override;
  void step_done(const train::StepRecord& record) override;
  void epoch_done(const train::EpochRecord& record) override;
  void run_finished(const train::Summary& summary);

 private:
  bool talks() const { return !style_.json && !style_.quiet; }
  void write(const std::string& line);

  ConsoleStyle style_;
  std::ostream& out_;
  ProgressBar& bar_;
  train::RunInfo info_;
  std::vector<double> accuracies_;  // of each epoch
};

}  // namespace mgt::report
