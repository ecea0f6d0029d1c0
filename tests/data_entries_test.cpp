// What `data:` in a config file gives.
#include "test.h"

#include "torch_pch.h"

#include "bad_inputs.h"
#include "config/reader.h"
#include "core/error.h"
#include "data/entry.h"
#include "memory_files.h"

using namespace mgt;
using namespace mgt::data;
using test::has;
using test::MemoryFiles;

namespace {

config::Config resolved(const std::string& data) {
  return config::resolve({.top = {}, .sections = {section()}}, {.name = "test.yaml", .text = "data: " + data + "\n"});
}

Splits loaded(const std::string& data, uint64_t seed = 1, const FileSystem& files = real_file_system()) {
  return load(resolved(data), {.files = files, .seed = seed});
}

template <typename ErrorType, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

std::string small_idx(const std::string& options) {
  const std::string folder = test::cases() + "/1_trajectories/data/";
  return "{name: idx, images: " + folder + "train-images-idx3-ubyte, labels: " + folder + "train-labels-idx1-ubyte" +
         options + "}";
}

const std::string kSmallTest = ", test_images: " + test::cases() + "/1_trajectories/data/test-images-idx3-ubyte.gz" +
                               ", test_labels: " + test::cases() + "/1_trajectories/data/test-labels-idx1-ubyte.gz";

double share_of_equal(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).to(at::kDouble).mean().item<double>();
}

// Four files in `folder`; the training images are those of three samples.
MemoryFiles fashion_like(const std::string& folder) {
  const std::string from = test::cases() + "/6_bad_inputs/data/";
  MemoryFiles files;
  files.contents[folder + "/train-images-idx3-ubyte.gz"] = test::file_content(from + "ok_images.gz");
  files.contents[folder + "/t10k-images-idx3-ubyte"] = test::file_content(from + "good3-images-idx3-ubyte");
  for (const char* const name : {"/train-labels-idx1-ubyte", "/t10k-labels-idx1-ubyte"}) {
    files.contents[folder + name] = test::file_content(from + "good3-labels-idx1-ubyte");
  }
  return files;
}

}  // namespace

TEST_CASE("the section lists every data set, and Fashion-MNIST is what is taken without one") {
  std::vector<std::string> names;
  for (const config::Variant& variant : section().variants) names.push_back(variant.name);
  CHECK(names == std::vector<std::string>{"fashion_mnist", "idx", "random_rows", "synthetic"});
  CHECK(section().fallback == "fashion_mnist");
  CHECK(resolved("{}").section("data").text("name") == "fashion_mnist");
  CHECK_FALSE(resolved("synthetic").section("data").boolean("drop_last"));
}

TEST_CASE("idx reads what it is told to, without test files there is no evaluation") {
  const Splits without = loaded(small_idx(""));
  CHECK(without.train.size() == 147);
  CHECK(without.train.classes == 10);
  CHECK_FALSE(without.test);
  const Splits with = loaded(small_idx(kSmallTest));
  REQUIRE(with.test);
}

TEST_CASE("limit and test_limit keep the first rows") {
  const Splits all = loaded(small_idx(kSmallTest));
  const Splits some = loaded(small_idx(kSmallTest + ", limit: 100, test_limit: 7"));
  CHECK(at::equal(some.train.inputs, all.train.inputs.narrow(0, 0, 100)));
  CHECK(at::equal(some.test->targets, all.test->targets.narrow(0, 0, 7)));
  CHECK(loaded(small_idx(", limit: 100000, test_limit: 3")).train.size() == 147);
  CHECK_THROWS_AS(resolved(small_idx(", limit: 0")), ConfigError);
}

TEST_CASE("idx asks for what is missing") {
  const auto message = [](const std::string& data) { return message_of<ConfigError>([&] { resolved(data); }); };
  CHECK(has(message("{name: idx, labels: l}"), "data.images"));
  CHECK(has(message("{name: idx, images: i}"), "data.labels"));
  CHECK(has(message("{name: idx, images: i, labels: l, test_images: t}"), "give data.test_labels too"));
  CHECK(has(message("{name: idx, images: i, labels: l, test_labels: t}"), "give data.test_images too"));
}

TEST_CASE("a label beyond `classes` is refused") {
  CHECK(has(message_of<DataError>([] { loaded(small_idx(", classes: 9")); }), "is not in 0 to 8"));
  CHECK(loaded(small_idx(", classes: 12")).train.classes == 12);
}

TEST_CASE("fashion_mnist takes plain and gzip files from `dir`") {
  const Splits splits = loaded("{name: fashion_mnist, dir: here}", 1, fashion_like("here"));
  CHECK(splits.train.name == "here/train-images-idx3-ubyte.gz");
  CHECK(splits.train.size() == 3);
  REQUIRE(splits.test);
  CHECK(splits.test->name == "here/t10k-images-idx3-ubyte");
}

TEST_CASE("fashion_mnist looks in the usual places, Debian's first") {
  MemoryFiles files = fashion_like("/usr/share/datasets/fashion-mnist");
  CHECK(loaded("fashion_mnist", 1, files).train.name.starts_with("/usr/share/datasets/fashion-mnist/"));
}

TEST_CASE("fashion_mnist that is not there says where it was looked for and how to get it") {
  const std::string message = message_of<DataError>([] { loaded("fashion_mnist", 1, MemoryFiles()); });
  CHECK(has(message, "/usr/share/datasets/fashion-mnist has no train-images-idx3-ubyte[.gz]"));
  CHECK(has(message, "/mgt/data/fashion-mnist has no train-images-idx3-ubyte[.gz]"));
  CHECK(has(message, "apt-get install dataset-fashion-mnist"));
  CHECK(has(message, "scripts/fetch_data"));

  MemoryFiles incomplete = fashion_like("here");
  incomplete.contents.erase("here/t10k-labels-idx1-ubyte");
  const std::string text = message_of<DataError>([&] { loaded("{name: fashion_mnist, dir: here}", 1, incomplete); });
  CHECK(has(text, "here has no t10k-labels-idx1-ubyte[.gz]"));
  CHECK_FALSE(has(text, "/usr/share"));
}

TEST_CASE("synthetic rows are a function of seed and index alone") {
  const Splits small = loaded("{name: synthetic, train: 20, test: 10}");
  const Splits large = loaded("{name: synthetic, train: 50, test: 30}");
  CHECK(at::equal(small.train.inputs, large.train.inputs.narrow(0, 0, 20)));
  CHECK(at::equal(small.train.targets, large.train.targets.narrow(0, 0, 20)));
  CHECK(at::equal(small.test->inputs, large.test->inputs.narrow(0, 0, 10)));
  CHECK_FALSE(at::equal(small.train.inputs, loaded("{name: synthetic, train: 20}", 2).train.inputs));
  // Pinned, since runs on other machines must see the same rows.
  CHECK(content_sha256(small.train) == "59fab427466480d0f789f69ffc68a4225e61fba3c789d2db29021d86dceae86c");
}

TEST_CASE("synthetic training and test sets are disjoint") {
  const Splits splits = loaded("{name: synthetic, train: 200, test: 100}");
  const at::Tensor train = splits.train.inputs.flatten(1).unsqueeze(0);     // (1, 200, 784)
  const at::Tensor test_set = splits.test->inputs.flatten(1).unsqueeze(1);  // (100, 1, 784)
  CHECK_FALSE(train.eq(test_set).all(2).any().item<bool>());
}

TEST_CASE("a synthetic set can be learned up to its Bayes accuracy") {
  const Splits clean = loaded("{name: synthetic, train: 5000, test: 2000, noise: 0}");
  const Splits noisy = loaded("{name: synthetic, train: 5000, test: 2000, noise: 0.1}");
  CHECK(clean.bayes_accuracy == 1.0);
  CHECK(noisy.bayes_accuracy == 0.9);
  CHECK(at::equal(clean.train.inputs, noisy.train.inputs));
  CHECK(std::abs(share_of_equal(clean.train.targets, noisy.train.targets) - 0.9) < 0.021);  // five standard deviations
  CHECK(at::bincount(noisy.train.targets, {}, 10).min().item<int64_t>() > 390);

  // The mean picture of each class, and the nearest mean of each test picture.
  const at::Tensor one_hot = at::one_hot(clean.train.targets, 10).to(at::kDouble);
  const at::Tensor sums = one_hot.t().matmul(clean.train.inputs.flatten(1).to(at::kDouble));
  const at::Tensor means = sums / one_hot.sum(0).unsqueeze(1);
  const at::Tensor answers = at::cdist(clean.test->inputs.flatten(1).to(at::kDouble), means).argmin(1);
  CHECK(share_of_equal(answers, clean.test->targets) == 1.0);
  CHECK(std::abs(share_of_equal(answers, noisy.test->targets) - 0.9) < 0.034);
}

TEST_CASE("synthetic sets of any size, the Bayes accuracy is given only where it is certain") {
  const Splits small = loaded("{name: synthetic, train: 30, test: 5, classes: 3, size: [3, 4, 5], noise: 0.9}");
  CHECK(small.train.inputs.sizes() == at::IntArrayRef{30, 3, 4, 5});
  CHECK(small.test->size() == 5);
  CHECK(small.train.classes == 3);
  CHECK(small.train.targets.max().item<int64_t>() <= 2);
  CHECK(small.bayes_accuracy == Approx(0.45));  // the best guess is then any other class
  CHECK_FALSE(loaded("{name: synthetic, train: 30, test: 5, size: [1, 1, 1]}").bayes_accuracy);
  CHECK_THROWS_AS(resolved("{name: synthetic, train: 1000000000000}"), ConfigError);
}

TEST_CASE("random_rows are float64 from 0 to below 1, for a regression") {
  const Splits splits = loaded("random_rows");
  CHECK(splits.train.inputs.sizes() == at::IntArrayRef{100, 10});
  CHECK(splits.train.targets.sizes() == at::IntArrayRef{100, 10});
  CHECK(splits.train.inputs.scalar_type() == at::kDouble);
  CHECK(splits.train.classes == 0);
  CHECK_FALSE(splits.test);
  CHECK(splits.train.inputs.min().item<double>() >= 0);
  CHECK(splits.train.inputs.max().item<double>() < 1);
  CHECK(std::abs(splits.train.inputs.mean().item<double>() - 0.5) < 0.05);
  const Splits wide = loaded("{name: random_rows, rows: 40, outputs: 3}");
  CHECK(at::equal(wide.train.inputs, splits.train.inputs.narrow(0, 0, 40)));
  CHECK(wide.train.targets.sizes() == at::IntArrayRef{40, 3});
  CHECK_THROWS_AS(resolved("{name: random_rows, rows: 1000000000000}"), ConfigError);
}
