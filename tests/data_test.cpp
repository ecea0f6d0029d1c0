// Data sets, the batches cut from them, and the IDX reader on good files.
#include "test.h"

#include "torch_pch.h"

#include "core/error.h"
#include "core/sha256.h"
#include "data/byte_source.h"
#include "data/dataset.h"
#include "data/idx.h"
#include "memory_files.h"

#include <array>

using namespace mgt;
using namespace mgt::data;
using test::MemoryFiles;

namespace {

const std::string kFashionMnist = "/usr/share/datasets/fashion-mnist/";

// Rows 0 .. count-1 with two pixels each, (10 row) and (10 row + 5), and label row % 10.
Dataset numbered_rows(int64_t count) {
  const at::Tensor first = at::arange(count, at::kLong) * 10;
  return {.name = "numbered",
          .inputs = at::stack({first, first + 5}, 1).view({count, 1, 1, 2}).to(at::kByte),
          .targets = at::arange(count, at::kLong).remainder(10),
          .classes = 10};
}

bool same(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type() && at::equal(a, b); }

std::string idx_bytes(std::vector<uint32_t> words, const std::string& values) {
  std::string bytes;
  for (const uint32_t word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift);
  }
  return bytes + values;
}

std::string content_hash(const std::string& path) {
  ByteSource source(real_file_system(), path);
  std::vector<uint8_t> piece(1 << 20);
  Sha256 hash;
  for (int64_t count = 1; count > 0;) {
    count = source.read(piece);
    hash.update(piece.data(), static_cast<std::size_t>(count));
  }
  return hash.hex();
}

}  // namespace

TEST_CASE("gather takes the rows in the order asked for, pixels as pixel / 255 (S-26)") {
  const Dataset dataset = numbered_rows(20);
  const std::vector<int64_t> rows{3, 19, 0, 3};
  const Batch batch = gather(dataset, rows, at::kDouble);
  const at::Tensor pixels = at::tensor({30., 35., 190., 195., 0., 5., 30., 35.}, at::kDouble).view({4, 1, 1, 2});
  CHECK(same(batch.inputs, pixels / 255.));
  CHECK(same(batch.targets, at::tensor({3, 9, 0, 3}, at::kLong)));
  CHECK(gather(dataset, rows, at::kFloat).inputs[0][0][0][1].item<float>() == 35.0F / 255.0F);
  CHECK(dataset.inputs.scalar_type() == at::kByte);
}

TEST_CASE("a batch of no rows keeps its shape, so that an idle rank runs the same code (S-27)") {
  const Batch batch = gather(numbered_rows(5), {}, at::kFloat);
  CHECK(batch.size() == 0);
  CHECK(batch.inputs.sizes() == at::IntArrayRef{0, 1, 1, 2});
  CHECK(same(batch.targets, at::empty({0}, at::kLong)));
}

TEST_CASE("targets of a regression take the compute dtype, inputs are not scaled") {
  const Dataset dataset{
      .name = "rows", .inputs = at::rand({6, 3}, at::kDouble), .targets = at::rand({6, 2}, at::kDouble)};
  const Batch batch = gather(dataset, std::vector<int64_t>{5, 1}, at::kFloat);
  CHECK(same(batch.inputs[0], dataset.inputs[5].to(at::kFloat)));
  CHECK(same(batch.targets[1], dataset.targets[1].to(at::kFloat)));
  CHECK(same(gather(dataset, std::vector<int64_t>{4}, at::kDouble).inputs[0], dataset.inputs[4]));
}

TEST_CASE("a slice on the same device is a view and keeps inputs with their targets (S-26)") {
  const Batch batch = gather(numbered_rows(10), std::vector<int64_t>{0, 1, 2, 3, 4}, at::kFloat);
  const Batch part = slice(batch, 3, 5, at::kCPU);
  CHECK(part.inputs.const_data_ptr() == batch.inputs[3].const_data_ptr());
  CHECK(same(part.targets, at::tensor({3, 4}, at::kLong)));
  CHECK(slice(batch, 2, 2, at::kCPU).size() == 0);
}

TEST_CASE("the first rows are a copy of their own") {
  const Dataset dataset = numbered_rows(10);
  const Dataset first = first_rows(dataset, 4);
  CHECK(same(first.inputs, dataset.inputs.narrow(0, 0, 4)));
  CHECK(same(first.targets, dataset.targets.narrow(0, 0, 4)));
  CHECK(first.inputs.storage().nbytes() == 8);
  CHECK(first.classes == 10);
  CHECK(first_rows(dataset, 11).size() == 10);
}

TEST_CASE("the content's hash covers inputs and targets") {
  const Dataset dataset = numbered_rows(3);
  std::string bytes("\x00\x05\x0a\x0f\x14\x19", 6);
  for (const char label : {0, 1, 2}) bytes += std::string(1, label) + std::string(7, '\0');
  CHECK(content_sha256(dataset) == sha256_hex(bytes));
  Dataset relabelled = dataset;
  relabelled.targets = dataset.targets.flip(0);
  CHECK(content_sha256(relabelled) != content_sha256(dataset));
  CHECK(content_sha256(to_device(dataset, at::kCPU)) == content_sha256(dataset));
}

TEST_CASE("an IDX file is read to the byte, grey and coloured (S-48)") {
  MemoryFiles files;
  files.contents["grey"] = idx_bytes({0x803, 2, 1, 3}, "abcdef");
  files.contents["colour"] = idx_bytes({0x804, 2, 3, 1, 1}, "abcdef");
  files.contents["labels"] = idx_bytes({0x801, 2}, "\x07\x02");
  const Dataset grey = read_idx(files, {"grey", "labels"}, 10);
  CHECK(grey.inputs.sizes() == at::IntArrayRef{2, 1, 1, 3});
  CHECK(same(grey.inputs.flatten(), at::tensor({97, 98, 99, 100, 101, 102}, at::kByte)));
  CHECK(same(grey.targets, at::tensor({7, 2}, at::kLong)));
  CHECK(grey.classes == 10);
  CHECK(grey.name == "grey");
  CHECK(read_idx(files, {"colour", "labels"}, 8).inputs.sizes() == at::IntArrayRef{2, 3, 1, 1});
}

TEST_CASE("gzip or plain, the content is the same (S-48)") {
  const std::string folder = test::cases() + "/6_bad_inputs/data/";
  const std::string labels = folder + "good3-labels-idx1-ubyte";
  const Dataset plain = read_idx(real_file_system(), {folder + "good3-images-idx3-ubyte", labels}, 10);
  const Dataset packed = read_idx(real_file_system(), {folder + "ok_images.gz", labels}, 10);
  CHECK(plain.inputs.sizes() == at::IntArrayRef{3, 1, 28, 28});
  CHECK(same(packed.inputs, plain.inputs));
  CHECK(plain.inputs.any().item<bool>());
}

TEST_CASE("both sets are read, the test set beside the training set") {
  const std::string folder = test::cases() + "/1_trajectories/data/";
  const IdxPaths train{folder + "train-images-idx3-ubyte", folder + "train-labels-idx1-ubyte"};
  const IdxPaths test_set{folder + "test-images-idx3-ubyte.gz", folder + "test-labels-idx1-ubyte.gz"};
  const Splits splits = read_idx(real_file_system(), train, test_set, 10);
  CHECK(splits.train.size() == 147);
  REQUIRE(splits.test);
  CHECK(splits.test->size() > 0);
  CHECK(splits.test->name == test_set.images);
  CHECK_FALSE(splits.bayes_accuracy);
  CHECK_FALSE(read_idx(real_file_system(), train, {}, 10).test);
  CHECK_THROWS_AS(read_idx(real_file_system(), train, IdxPaths{"not_there", test_set.labels}, 10), DataError);
}

TEST_CASE("the installed Fashion-MNIST is the published one (S-48)") {
  if (real_file_system().kind(kFashionMnist) != FileSystem::Kind::directory) {
    WARN("skipped: no Fashion-MNIST in " + kFashionMnist);
    return;
  }
  const std::array<std::pair<std::string, std::string>, 4> published = {{
      {"train-images-idx3-ubyte.gz", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
      {"train-labels-idx1-ubyte.gz", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
      {"t10k-images-idx3-ubyte.gz", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
      {"t10k-labels-idx1-ubyte.gz", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
  }};
  for (const auto& [name, hash] : published) CHECK(content_hash(kFashionMnist + name) == hash);

  const Dataset train =
      read_idx(real_file_system(), {kFashionMnist + published[0].first, kFashionMnist + published[1].first}, 10);
  CHECK(train.inputs.sizes() == at::IntArrayRef{60000, 1, 28, 28});
  CHECK(at::bincount(train.targets).eq(6000).all().item<bool>());
}
