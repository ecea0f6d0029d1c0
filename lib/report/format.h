// The lines that people read on the console. Pure functions of the records; no line ends with a newline.
#pragma once

#include "train/records.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mgt::report {

// What will run, in one line: strategy, model, data, batch, steps, devices, threads.
std::string header_line(const train::RunInfo& info);

// "epoch 3/10  loss 0.7202  test acc 0.7173 (7173/10000)  13.9 s  4316 images/s"
std::string epoch_line(const train::EpochRecord& record, int64_t epochs);

// "test acc: 0.83, 2.4 sec/epoch on [cuda:0, cuda:1]", and the tutorials' Chinese line for `language` zh; the training
// loss where nothing was evaluated.
std::string last_line(const train::Summary& summary, const std::string& language);

// "test acc: 0.8312 (8312/10000) on [cpu]"
std::string evaluation_line(const train::Summary& summary);

// One block character a value, from the lowest to the highest of them. More than `widest` values are thinned out.
std::string sparkline(const std::vector<double>& values, std::size_t widest = 60);

// "epoch 3/10 [#####.....] 117/235  loss 0.7202", at most `columns` wide.
std::string progress_line(const train::StepRecord& record, const train::RunInfo& info, int64_t columns);

}  // namespace mgt::report
