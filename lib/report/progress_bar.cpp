#include "report/progress_bar.h"

#include "report/format.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

namespace mgt::report {
namespace {

constexpr double kInterval = 0.1;  // seconds between two drawings

}  // namespace

ProgressBar::ProgressBar(std::ostream& terminal, std::function<int64_t()> columns, const Clock& clock)
    : terminal_(terminal), columns_(std::move(columns)), clock_(clock) {}

// A run that fails leaves a clean line for its message.
ProgressBar::~ProgressBar() { erase(); }

void ProgressBar::show(const train::StepRecord& record, const train::RunInfo& info) {
  const double now_s = clock_.now_s();
  if (now_s < next_s_) return;
  next_s_ = now_s + kInterval;
  const int64_t columns = columns_();
  if (columns <= 1) return;
  // The last column stays free: many terminals break the line there.
  terminal_ << "\r\x1b[K" << progress_line(record, info, columns - 1) << std::flush;
  drawn_ = true;
}

void ProgressBar::erase() {
  if (drawn_) terminal_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

int64_t stderr_columns() {
  constexpr int64_t kUsual = 80;  // where the terminal does not say
  winsize size{};
  if (isatty(STDERR_FILENO) == 0) return 0;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

}  // namespace mgt::report
