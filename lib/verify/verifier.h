// `verify` as a library: a config shortened to a few steps on few rows, its reference, and every case that `--all`
// walks. A Verifier keeps the references that it has made; it belongs to one thread, and its runs start threads of
// their own.
#pragma once

#include "config/config.h"
#include "verify/cases.h"
#include "verify/findings.h"
#include "verify/oracle.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mgt::verify {

// The user's config under further overrides, as after --set. ConfigError.
using ReadConfig = std::function<config::Config(const std::vector<std::string>& overrides)>;

struct Request {
  ReadConfig read;
  std::vector<int64_t> worlds;  // numbers of CPU devices; empty: the devices of the config
  int64_t steps = 6;
  std::string precision = "fp64";  // empty: the config's
  bool narrow = false;             // a small copy of the model
};

struct Verdict {
  std::string strategy;
  int64_t devices = 1;
  std::string backend;
  std::optional<std::string> refused;             // why no such run is possible, in the words of the config check
  std::optional<std::string> unfit;               // why the data cannot show it
  std::optional<std::string> failed;              // what differs first, or how the run broke off
  std::map<Quantity, Difference> worst;           // of what was compared, relative to its bound
  double base_bound = 0;                          // of what no run of one device has shown to need a wider one
  int64_t undetermined = 0;                       // tensors that rounding alone decides, and that were not compared
  std::optional<Difference> not_one_device = {};  // BatchNorm over parts of a batch: how far it is from one device
  double largest_size() const;                    // of `worst`
};

class Verifier {
 public:
  explicit Verifier(Request request) : request_(std::move(request)) {}

  // The same function as the reference? With `make_fault`, of a run with errors seeded into it.
  Verdict check(const Case& one, const MakeFault& make_fault = {});

  // Why no such run is possible, in the words of the config check; "" where one is.
  std::string refusal(const Case& one);

  // What a plain training of the case says in the end.
  train::Summary train(const Case& one);

  // The overrides that make the config short, for a reader who wants to know.
  std::vector<std::string> shortening();

 private:
  std::vector<std::string> overrides_of(const Case& one);
  void check(const config::Config& config, const std::vector<std::string>& alone, const MakeFault& make_fault,
             Verdict& verdict);
  std::optional<std::string> run(const config::Config& config, const Trace& expected, Findings& findings,
                                 const MakeFault& make_fault);
  const Data& data_of(const config::Config& config);
  const Trace& reference(const std::vector<std::string>& overrides, const Reference& kind);
  void learn(Bounds& bounds, const std::vector<std::string>& overrides, const RowSets& sets);

  Request request_;
  std::vector<std::string> shortening_;
  std::map<std::string, Data> data_;         // by the settings of the section
  std::map<std::string, Trace> references_;  // by overrides and kind
  std::map<std::string, Bounds> bounds_;     // by overrides and kind
};

}  // namespace mgt::verify
