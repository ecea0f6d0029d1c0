// The errors that real trainers make, each seeded into a run that is right without it: if the oracle does not see one,
// the proof is worth nothing. The numbers E-.. are those of the tutorials' own errors. Values and pure functions.
#pragma once

#include "verify/verifier.h"

#include <string>
#include <vector>

namespace mgt::verify {

struct Mutant {
  std::string name;
  std::string summary;                      // one line
  std::vector<std::string> strategies;      // where it can live
  std::vector<std::string> overrides = {};  // what it needs besides
  std::function<Fault(int64_t rank, int64_t devices)> fault = {};
  // Why it would change nothing in this config: "" where it would. `evaluates`: the config has a test set.
  std::string (*harmless)(const config::Config& config, bool evaluates) = nullptr;
};

// All mutants, in the order of the table.
const std::vector<Mutant>& mutants();

// The run of a mutant under one of its strategies, on three devices; of a hybrid on two times two.
Case case_of(const Mutant& mutant, const std::string& strategy);

}  // namespace mgt::verify
