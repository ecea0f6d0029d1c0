#include "report/console.h"

#include "core/text.h"
#include "report/format.h"
#include "report/record_text.h"

#include <utility>

namespace mgt::report {

Console::Console(ConsoleStyle style, std::ostream& out, ProgressBar& bar)
    : style_(std::move(style)), out_(out), bar_(bar) {}

// Flushed, so that a reader of a pipe sees each epoch when it is done.
void Console::write(const std::string& line) { out_ << line << std::endl; }

void Console::run_started(const train::RunInfo& info) {
  info_ = info;
  if (talks()) write(header_line(info));
}

void Console::step_done(const train::StepRecord& record) {
  if (talks()) bar_.show(record, info_);
}

void Console::epoch_done(const train::EpochRecord& record) {
  bar_.erase();
  if (record.evaluated) {
    accuracies_.push_back(train::accuracy(record.test_correct, record.test_total));
  }
  if (talks()) write(epoch_line(record, info_.epochs));
}

void Console::run_finished(const train::Summary& summary) {
  bar_.erase();
  if (style_.json) return write(summary_json(summary));
  if (talks()) {
    for (const auto& [name, value] : summary.notes) write(name + ": " + value);
    if (summary.steps < info_.steps_per_epoch * info_.epochs) {
      write(concat("stopped after ", counted(summary.steps, "step"),
                   ", as max_steps says; sec/epoch is for a whole epoch"));
    }
    if (accuracies_.size() > 1) write("test acc per epoch: " + sparkline(accuracies_));
    if (!style_.run_folder.empty()) write("run folder: " + style_.run_folder);
  }
  write(last_line(summary, style_.language));
}

}  // namespace mgt::report
