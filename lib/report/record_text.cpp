#include "report/record_text.h"

#include "core/text.h"

#include <nlohmann/json.hpp>

#include <array>

namespace mgt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kColumns = {"event",        "epoch",      "step",    "train_loss", "grad_norm",
                                 "lr",           "samples",    "train_s", "eval_s",     "samples_per_s",
                                 "test_correct", "test_total", "test_acc"};

Json fields(const train::StepRecord& record) {
  return {{"event", "step"},
          {"epoch", record.epoch},
          {"step", record.step},
          {"train_loss", record.loss},
          {"grad_norm", record.gradient_norm},
          {"lr", record.lr},
          {"samples", record.samples}};
}

Json fields(const train::EpochRecord& record) {
  Json json = {{"event", "epoch"},        {"epoch", record.epoch},
               {"step", record.step},     {"train_loss", record.train_loss},
               {"lr", record.lr},         {"train_s", record.train_s},
               {"eval_s", record.eval_s}, {"samples_per_s", record.samples_per_s}};
  if (record.evaluated) {
    json["test_correct"] = record.test_correct;
    json["test_total"] = record.test_total;
    json["test_acc"] = train::accuracy(record.test_correct, record.test_total);
  }
  return json;
}

std::string csv(const Json& record) {
  std::vector<std::string> cells;
  for (const char* const column : kColumns) {
    const auto found = record.find(column);
    if (found == record.end()) {
      cells.emplace_back();
    } else {
      cells.push_back(found->is_string() ? found->get<std::string>() : found->dump());
    }
  }
  return join(cells, ",");
}

void add_test_counts(Json& json, const train::Summary& summary) {
  json["test_acc"] = summary.evaluated ? Json(train::accuracy(summary.test_correct, summary.test_total)) : Json();
  json["test_correct"] = summary.evaluated ? Json(summary.test_correct) : Json();
  json["test_total"] = summary.evaluated ? Json(summary.test_total) : Json();
}

void add_place(Json& json, const train::RunInfo& info) {
  json["strategy"] = info.strategy;
  json["devices"] = info.devices;
  json["world_size"] = info.world_size;
}

}  // namespace

std::string json_line(const train::StepRecord& record) { return fields(record).dump(); }
std::string json_line(const train::EpochRecord& record) { return fields(record).dump(); }
std::string csv_header() { return join(kColumns, ","); }
std::string csv_line(const train::StepRecord& record) { return csv(fields(record)); }
std::string csv_line(const train::EpochRecord& record) { return csv(fields(record)); }

std::string summary_json(const train::Summary& summary) {
  Json json;
  add_test_counts(json, summary);
  json["best_test_acc"] = summary.evaluated ? Json(summary.best_test_acc) : Json();
  json["train_loss"] = summary.final_train_loss;
  json["sec_per_epoch"] = summary.sec_per_epoch;
  json["samples_per_sec"] = summary.samples_per_sec;
  json["first_step_s"] = summary.first_step_s;
  json["epochs"] = summary.epochs;
  json["steps"] = summary.steps;
  add_place(json, summary.info);
  json["weights_sha256"] = summary.weights_sha256;
  json["peak_bytes"] = summary.peak_bytes;
  json["bytes_sent"] = summary.bytes_sent;
  json["bytes_per_step"] = summary.steps > 0 ? Json(summary.train_bytes_sent / summary.steps) : Json();
  json["comm_wait_s"] = summary.comm_wait_s;
  json["notes"] = Json::object();
  for (const auto& [name, value] : summary.notes) json["notes"][name] = value;
  return json.dump();
}

std::string evaluation_json(const train::Summary& summary) {
  Json json;
  add_test_counts(json, summary);
  add_place(json, summary.info);
  return json.dump();
}

}  // namespace mgt::report
