// Noisy copies of one random picture per class: a data set of any size without a file, whose best possible accuracy is
// known. A row is a pure function of seed and index, so a larger set begins with the smaller one.
#include "torch_pch.h"

#include "core/product.h"
#include "core/seed.h"
#include "core/text.h"
#include "data/entry.h"

#include <algorithm>
#include <span>

namespace mgt::data::synthetic {
namespace {

// Where the numbers of a row come from: no two parts share a stream.
enum class Part : uint32_t { patterns, train, test };

constexpr int kPixelNoise = 64;  // a pixel differs from its pattern by -64 to 63
constexpr int64_t kMostBytes = int64_t{1} << 36;

using Pixels = std::vector<uint8_t>;

void fill_random(std::span<uint8_t> out, Stream& random) {
  uint32_t word = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    word = i % 4 == 0 ? random.bits() : word >> 8;
    out[i] = static_cast<uint8_t>(word);
  }
}

std::vector<Pixels> make_patterns(uint64_t seed, int64_t classes, int64_t pixels) {
  std::vector<Pixels> patterns(static_cast<std::size_t>(classes), Pixels(static_cast<std::size_t>(pixels)));
  for (std::size_t label = 0; label < patterns.size(); ++label) {
    Stream random(seed, Purpose::synthetic, static_cast<uint32_t>(Part::patterns), label);
    fill_random(patterns[label], random);
  }
  return patterns;
}

// Whether some pixel tells the two apart whatever the noise.
bool separable(const Pixels& a, const Pixels& b) {
  return !std::ranges::equal(a, b, [](int one, int other) { return std::abs(one - other) < 2 * kPixelNoise; });
}

bool all_separable(const std::vector<Pixels>& patterns) {
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!separable(patterns[i], patterns[j])) return false;
    }
  }
  return true;
}

void add_noise(std::span<uint8_t> noise, const Pixels& pattern) {
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<uint8_t>(std::clamp(pattern[i] + noise[i] / 2 - kPixelNoise, 0, 255));
  }
}

// `label`, or with probability `noise` any other class.
uint64_t noisy_label(uint64_t label, uint64_t classes, double noise, Stream random) {
  if (random.uniform() >= noise) return label;
  return (label + 1 + random.below(classes - 1)) % classes;
}

Dataset make(Part part, int64_t rows, const std::vector<Pixels>& patterns, const config::Section& section,
             uint64_t seed) {
  const std::vector<int64_t>& size = section.integers("size");
  const std::size_t pixels = patterns.front().size();
  Dataset dataset{.name = "synthetic",
                  .inputs = at::empty({rows, size[0], size[1], size[2]}, at::kByte),
                  .targets = at::empty({rows}, at::kLong),
                  .classes = static_cast<int64_t>(patterns.size())};
  uint8_t* const inputs = dataset.inputs.mutable_data_ptr<uint8_t>();
  int64_t* const targets = dataset.targets.mutable_data_ptr<int64_t>();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    Stream random(seed, Purpose::synthetic, static_cast<uint32_t>(part), row);
    const std::size_t label = random.below(patterns.size());
    const std::span<uint8_t> picture(inputs + row * pixels, pixels);
    fill_random(picture, random);
    add_noise(picture, patterns[label]);
    targets[row] =
        static_cast<int64_t>(noisy_label(label, patterns.size(), section.number("noise"),
                                         Stream(seed, Purpose::label_noise, static_cast<uint32_t>(part), row)));
  }
  return dataset;
}

// Of the classifier that knows the patterns: it says the pattern's class, or another one where noise is the rule.
double bayes_accuracy(double noise, int64_t classes) {
  return std::max(1 - noise, noise / static_cast<double>(classes - 1));
}

Splits load(const config::Section& section, const LoadContext& context) {
  const int64_t classes = section.integer("classes");
  const std::vector<Pixels> patterns = make_patterns(context.seed, classes, *checked_product(section.integers("size")));
  Splits splits{.train = make(Part::train, section.integer("train"), patterns, section, context.seed),
                .test = make(Part::test, section.integer("test"), patterns, section, context.seed)};
  if (all_separable(patterns)) splits.bayes_accuracy = bayes_accuracy(section.number("noise"), classes);
  return splits;
}

void check(const config::Config& config) {
  const config::Section& section = config.section("data");
  const std::vector<int64_t>& size = section.integers("size");
  const int64_t most_rows = std::max({section.integer("train"), section.integer("test"), section.integer("classes")});
  const auto bytes = checked_product(std::vector<int64_t>{most_rows, size[0], size[1], size[2]});
  if (!bytes || *bytes > kMostBytes) {
    config.error_at("data.size", "the data set would take more than 64 GiB; give fewer rows or smaller pictures");
  }
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "synthetic",
                .summary = "noisy copies of one random picture per class, made from the seed",
                .options = {config::integer("train", 2048, "training rows", {.at_least = 1}),
                            config::integer("test", 512, "test rows", {.at_least = 1}),
                            config::integer("classes", 10, "number of classes", {.at_least = 2}),
                            {.key = "size",
                             .kind = config::Kind::integers,
                             .fallback = std::vector<int64_t>{1, 28, 28},
                             .help = "channels, height, width",
                             .bounds = {.at_least = 1},
                             .length = 3},
                            config::number("noise", 0.1, "probability that a label is replaced by another class",
                                           {.at_least = 0, .at_most = 1})},
                .check = check},
    .load = load};

}  // namespace mgt::data::synthetic
