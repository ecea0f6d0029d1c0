#include "report/format.h"

#include "core/text.h"

#include <algorithm>
#include <array>

namespace mgt::report {
namespace {

// 129068 as "129,068"; for counts, which are not negative.
std::string grouped(int64_t count) {
  std::string digits = std::to_string(count);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string counted(int64_t count, const std::string& thing) {
  return concat(grouped(count), " ", thing, count == 1 ? "" : "s");
}

std::string bracketed(const std::vector<std::string>& devices) { return "[" + join(devices) + "]"; }

// "0.7173 (7173/10000)"
std::string accuracy_text(int64_t correct, int64_t total) {
  return concat(fixed(train::accuracy(correct, total), 4), " (", correct, "/", total, ")");
}

std::string samples_text(const train::RunInfo& info) {
  const std::string training = grouped(info.train_samples) + " training";
  const std::string samples =
      info.test_samples == 0 ? training : training + " + " + grouped(info.test_samples) + " test";
  return samples + " samples";
}

std::string threads_text(const train::RunInfo& info) {
  const std::string threads = counted(info.threads_per_rank, "thread");
  return info.world_size == 1 ? threads : concat(info.world_size, " ranks of ", threads);
}

}  // namespace

std::string header_line(const train::RunInfo& info) {
  return concat(info.strategy, ": ", info.model, " (", counted(info.parameters, "parameter"), ") on ", info.data, " (",
                samples_text(info), "), batch ", info.batch_size, ", ", counted(info.steps_per_epoch, "step"),
                " per epoch, ", counted(info.epochs, "epoch"), " on ", bracketed(info.devices), ", ",
                threads_text(info));
}

std::string epoch_line(const train::EpochRecord& record, int64_t epochs) {
  std::string line = concat("epoch ", record.epoch, "/", epochs, "  loss ", fixed(record.train_loss, 4));
  if (record.evaluated) line += "  test acc " + accuracy_text(record.test_correct, record.test_total);
  return concat(line, "  ", fixed(record.train_s, 1), " s  ", fixed(record.samples_per_s, 0), " images/s");
}

std::string last_line(const train::Summary& summary, const std::string& language) {
  const bool chinese = language == "zh";
  const std::string label =
      summary.evaluated ? (chinese ? "测试精度：" : "test acc: ") : (chinese ? "训练损失：" : "train loss: ");
  const std::string value = summary.evaluated ? fixed(train::accuracy(summary.test_correct, summary.test_total), 2)
                                              : fixed(summary.final_train_loss, 4);
  const std::string seconds = fixed(summary.sec_per_epoch, 1);
  const std::string devices = bracketed(summary.info.devices);
  if (chinese) return concat(label, value, "，", seconds, "秒/轮，在", devices);
  return concat(label, value, ", ", seconds, " sec/epoch on ", devices);
}

std::string evaluation_line(const train::Summary& summary) {
  return concat("test acc: ", accuracy_text(summary.test_correct, summary.test_total), " on ",
                bracketed(summary.info.devices));
}

std::string sparkline(const std::vector<double>& values, std::size_t widest) {
  constexpr std::array kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return "";
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  const double range = *highest > *lowest ? *highest - *lowest : 1;
  const std::size_t count = std::min(values.size(), widest);
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[(i + 1) * values.size() / count - 1];  // the last value is always shown
    const auto level = static_cast<std::size_t>((value - *lowest) / range * static_cast<double>(kBlocks.size()));
    line += kBlocks[std::min(level, kBlocks.size() - 1)];
  }
  return line;
}

std::string progress_line(const train::StepRecord& record, const train::RunInfo& info, int64_t columns) {
  const std::string before = concat("epoch ", record.epoch, "/", info.epochs, " ");
  const std::string after =
      concat(" ", record.step_in_epoch, "/", info.steps_per_epoch, "  loss ", fixed(record.loss, 4));
  const int64_t room = std::min<int64_t>(columns - static_cast<int64_t>(before.size() + after.size()) - 2, 40);
  if (room < 5) return (before + after.substr(1)).substr(0, static_cast<std::size_t>(std::max<int64_t>(columns, 0)));
  const int64_t done = room * record.step_in_epoch / std::max<int64_t>(info.steps_per_epoch, 1);
  return concat(before, "[", std::string(static_cast<std::size_t>(done), '#'),
                std::string(static_cast<std::size_t>(room - done), '.'), "]", after);
}

}  // namespace mgt::report
