#include "report/manifest.h"

#include "core/error.h"
#include "core/sha256.h"
#include "core/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <set>
#include <sstream>
#include <system_error>

namespace mgt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLargest = 64 << 20;  // bytes of a manifest

const std::set<std::string> kNoFacts = {"started", "command", "working_directory",
                                        "weights"};  // two runs may differ in them

std::string utc_time(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  return concat(std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ"));
}

CheckpointError damaged(const std::string& name, const std::string& why) {
  return CheckpointError(concat(name, " is not the manifest of a run: ", shortened(why, 200), "; train again"));
}

Json lines_of(const std::string& text) {
  Json lines = Json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Json weights_json(const std::vector<checkpoint::WeightsHash>& epochs) {
  Json list = Json::array();
  for (const checkpoint::WeightsHash& hash : epochs) {
    Json tensors = Json::object();
    for (const auto& [name, sha256] : hash.tensors) tensors[name] = sha256;
    list.push_back({{"epoch", list.size() + 1}, {"sha256", hash.sha256}, {"tensors", tensors}});
  }
  return list;
}

checkpoint::WeightsHash hash_of(const nlohmann::json& json) {
  checkpoint::WeightsHash hash{.sha256 = json.at("sha256").get<std::string>(), .tensors = {}};
  for (const auto& [name, sha256] : json.at("tensors").items()) {
    hash.tensors.emplace_back(name, sha256.get<std::string>());
  }
  return hash;
}

// "config: 'lr: 0.1' then, 'lr: 0.2' now": of two lists of lines, as JSON.
std::string changed_lines(const std::string& before, const std::string& now) {
  const Json a = Json::parse(before), b = Json::parse(now);
  std::vector<std::string> changes;
  for (std::size_t line = 0; line < std::max(a.size(), b.size()); ++line) {
    const std::string then = line < a.size() ? a[line].get<std::string>() : "";
    const std::string after = line < b.size() ? b[line].get<std::string>() : "";
    if (then != after) changes.push_back(concat("'", shortened(then), "' then, '", shortened(after), "' now"));
  }
  return "config: " + join(changes, ", ");
}

std::string why_different(const Manifest& before, const Manifest& now) {
  const std::string changes = changed_facts(before, now);
  return changes.empty() ? "nothing in the manifest has changed" : "changed: " + changes;
}

std::string first_tensor(const checkpoint::WeightsHash& before, const checkpoint::WeightsHash& now) {
  const auto [a, b] = std::ranges::mismatch(before.tensors, now.tensors);
  if (a != before.tensors.end()) return a->first;
  return b != now.tensors.end() ? b->first : "none of them: run.json has been changed";
}

}  // namespace

std::string manifest_text(const RunFacts& facts, const train::RunInfo& info,
                          const std::vector<checkpoint::WeightsHash>& epochs, const std::string& data_sha256) {
  Json json = {
      {"mgt", facts.mgt_version},
      {"libtorch", facts.libtorch_version},
      {"started", utc_time(facts.started)},
      {"command", facts.command},
      {"working_directory", facts.working_directory},
      {"hardware", {{"cpu", facts.cpu_model}, {"cores", facts.cores}, {"devices", info.devices}}},
      {"world_size", info.world_size},
      {"threads_per_rank", info.threads_per_rank},
      {"seed", facts.seed},
      {"config_sha256", sha256_hex(facts.config)},
      {"config", lines_of(facts.config)},
      {"strategy", info.strategy},
      {"model", info.model},
      {"parameters", info.parameters},
      {"data", info.data},
      {"train_samples", info.train_samples},
      {"test_samples", info.test_samples},
      {"batch_size", info.batch_size},
      {"accumulate", info.accumulate},
      {"steps_per_epoch", info.steps_per_epoch},
      {"epochs", info.epochs},
  };
  if (info.bayes_accuracy) json["bayes_accuracy"] = *info.bayes_accuracy;
  if (!data_sha256.empty()) json["data_sha256"] = data_sha256;
  if (!facts.init_sha256.empty()) json["init_sha256"] = facts.init_sha256;
  json["weights"] = weights_json(epochs);
  return json.dump(2) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& name) {
  Manifest manifest;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);  // sorted, so that order makes no difference
    for (const auto& [key, value] : json.items()) {
      if (!kNoFacts.contains(key)) manifest.facts[key] = value.dump();
    }
    manifest.working_directory = json.value("working_directory", "");
    for (const nlohmann::json& epoch : json.at("weights")) manifest.epochs.push_back(hash_of(epoch));
  } catch (const nlohmann::json::parse_error& error) {
    throw damaged(name, concat("no JSON from byte ", error.byte, " on"));
  } catch (const nlohmann::json::exception&) {
    throw damaged(name, "the weights' hashes are missing, or of another form");
  }
  return manifest;
}

Manifest read_manifest(const FileSystem& files, const std::string& run_folder) {
  const std::string path = run_folder + "/run.json";
  if (files.kind(path) != FileSystem::Kind::regular) {
    throw CheckpointError(concat(path, ": no such file; name the folder of a run"));
  }
  try {
    return parse_manifest(files.read(path, 0, kLargest), path);
  } catch (const std::system_error& error) {
    throw CheckpointError(concat(path, " cannot be read: ", error.what()));
  }
}

std::string changed_facts(const Manifest& before, const Manifest& now) {
  std::vector<std::string> changes;
  for (const auto& [name, value] : before.facts) {
    const auto other = now.facts.find(name);
    if (other == now.facts.end() || other->second == value) continue;
    changes.push_back(name == "config"
                          ? changed_lines(value, other->second)
                          : concat(name, ": ", shortened(value, 80), " then, ", shortened(other->second, 80), " now"));
  }
  return join(changes, "; ");
}

std::string difference(const Manifest& before, const Manifest& now) {
  const std::size_t epochs = std::min(before.epochs.size(), now.epochs.size());
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    if (before.epochs[epoch].sha256 == now.epochs[epoch].sha256 &&
        before.epochs[epoch].tensors == now.epochs[epoch].tensors) {
      continue;
    }
    return concat("the weights differ after epoch ", epoch + 1, ", first in ",
                  first_tensor(before.epochs[epoch], now.epochs[epoch]), "; ", why_different(before, now));
  }
  if (before.epochs.size() != now.epochs.size()) {
    return concat("it had ", counted(static_cast<int64_t>(before.epochs.size()), "epoch"), ", and now has ",
                  now.epochs.size(), "; ", why_different(before, now));
  }
  return "";
}

}  // namespace mgt::report
