// Rows of random numbers with random targets, for regression: there is nothing to learn but how ranks work together.
// A row is a pure function of seed and index.
#include "torch_pch.h"

#include "core/product.h"
#include "core/seed.h"
#include "data/entry.h"

#include <vector>

namespace mgt::data::random_rows {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 32;

void check(const config::Config& config) {
  const config::Section& section = config.section("data");
  for (const char* const width : {"features", "outputs"}) {
    const auto numbers = checked_product(std::vector<int64_t>{section.integer("rows"), section.integer(width)});
    if (!numbers || *numbers > kMostNumbers) {
      config.error_at("data.rows", "the data set would take more than 32 GiB; give fewer rows");
    }
  }
}

void fill_uniform(double* first, int64_t count, Stream& random) {
  for (int64_t i = 0; i < count; ++i) first[i] = random.uniform();
}

Splits load(const config::Section& section, const LoadContext& context) {
  const int64_t rows = section.integer("rows");
  const int64_t features = section.integer("features");
  const int64_t outputs = section.integer("outputs");
  Dataset dataset{.name = "random_rows",
                  .inputs = at::empty({rows, features}, at::kDouble),
                  .targets = at::empty({rows, outputs}, at::kDouble)};
  for (int64_t row = 0; row < rows; ++row) {
    Stream random(context.seed, Purpose::synthetic, 0, static_cast<uint64_t>(row));
    fill_uniform(dataset.inputs.mutable_data_ptr<double>() + row * features, features, random);
    fill_uniform(dataset.targets.mutable_data_ptr<double>() + row * outputs, outputs, random);
  }
  return {.train = std::move(dataset), .test = {}};
}

}  // namespace

extern const Entry entry;
const Entry entry = {.variant = {.name = "random_rows",
                                 .summary = "uniform random inputs and targets in [0, 1), for regression; no test set",
                                 .options = {config::integer("rows", 100, "number of rows", {.at_least = 1}),
                                             config::integer("features", 10, "inputs of a row", {.at_least = 1}),
                                             config::integer("outputs", 10, "targets of a row", {.at_least = 1})},
                                 .check = check},
                     .load = load};

}  // namespace mgt::data::random_rows
