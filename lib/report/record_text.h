// The records of a run as text for programs: one line of JSON, one line of CSV, the summary. Doubles are written as the
// shortest text that reads back to the same double. Pure functions; no line ends with a newline.
#pragma once

#include "train/records.h"

#include <string>

namespace mgt::report {

// The same record in both forms; the JSON leaves out what the CSV leaves empty.
std::string json_line(const train::StepRecord& record);
std::string json_line(const train::EpochRecord& record);
std::string csv_header();
std::string csv_line(const train::StepRecord& record);
std::string csv_line(const train::EpochRecord& record);

// The content of summary.json, on one line; test_* are null where nothing was evaluated.
std::string summary_json(const train::Summary& summary);

// What `eval --json` prints, on one line.
std::string evaluation_json(const train::Summary& summary);

}  // namespace mgt::report
