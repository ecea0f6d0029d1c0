// Damaged and absurd data files: each is refused with one line that names it, and at no cost.
#include "test.h"

#include "torch_pch.h"

#include "bad_inputs.h"
#include "core/error.h"
#include "data/idx.h"
#include "memory_files.h"

#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <optional>

using namespace mgt;
using namespace mgt::data;
using test::has;
using test::MemoryFiles;

namespace {

using Json = nlohmann::json;

constexpr int64_t kClasses = 10;

// Messages name files as the user gave them, so the files are given relative to the folder of the cases.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  std::filesystem::path before_;
};

// The message of the DataError; nothing where the files are accepted. Any other exception fails the test.
std::optional<std::string> refusal(const FileSystem& files, const IdxPaths& paths) {
  try {
    read_idx(files, paths, kClasses);
    return std::nullopt;
  } catch (const DataError& error) {
    return error.what();
  }
}

std::string message_of(const std::string& images, const std::string& labels = "good3-labels-idx1-ubyte") {
  const WorkingDirectory folder(test::cases() + "/6_bad_inputs/data");
  return refusal(real_file_system(), {images, labels}).value_or("accepted");
}

int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

}  // namespace

TEST_CASE("every damaged data file is refused by name in one line") {
  const WorkingDirectory folder(test::cases() + "/6_bad_inputs");
  const std::vector<Json> all = test::bad_inputs("data");
  REQUIRE(all.size() == 27);
  for (const Json& one : all) {
    const std::string file = one["file"];
    if (file == "data/size_27") continue;  // a good file that does not fit the model
    const auto message = refusal(real_file_system(), {one["set"]["data.images"], one["set"]["data.labels"]});
    INFO(file << ": " << message.value_or("accepted"));
    const bool may_be_accepted = one["expect_exit"] == 0 || one.value("expect_exit_or", -1) == 0;
    if (may_be_accepted && !message) continue;
    REQUIRE(one["expect_exit"] == 3);
    REQUIRE(message);
    CHECK_FALSE(has(*message, "\n"));
    for (const Json& words : one["expect_words"]) CHECK(test::has_any(*message, words));
  }
}

TEST_CASE("a message gives the numbers that are wrong") {
  CHECK(has(message_of("truncated_one_byte"), "promises 3 x 28 x 28 = 2352 bytes, found 2351"));
  CHECK(has(message_of("one_byte_too_long"), "promises 3 x 28 x 28 = 2352 bytes, found 2353"));
  CHECK(has(message_of("overflow_64_bits"), "more than 2^63"));
  CHECK(has(message_of("truncated_header"), "after 11 bytes"));
  CHECK(
      has(message_of("magic_labels_as_images"), "magic number 2049 stands for 1 dimensions where images have 3 or 4"));
  CHECK(has(message_of("four_images"), "4 images, but 3 labels"));
  CHECK(has(message_of("good3-images-idx3-ubyte", "label_10"), "label 10 of sample 1 is not in 0 to 9"));
  CHECK(has(message_of("good3-images-idx3-ubyte", "label_255"), "label 255 of sample 2 is not in 0 to 9"));
  CHECK(has(message_of("crc.gz"), "incorrect data check"));
  CHECK(has(message_of("length.gz"), "incorrect length check"));
  CHECK(has(message_of("trailing.gz"), "21 bytes after the end of the gzip stream at byte 2157"));
  CHECK(has(message_of("cut.gz"), "does not end within the file's 1078 bytes"));
  CHECK(has(message_of("bomb.gz"), "promises 3 x 28 x 28 = 2352 bytes, found more"));
  CHECK(message_of("a_directory") == "a_directory: a directory where a data file should be");
  CHECK(message_of("not_there") == "not_there: no such file");
  CHECK(message_of("/dev/zero") == "/dev/zero: not a regular file");
}

TEST_CASE("a bomb costs neither memory nor time") {
  const int64_t before = peak_bytes();
  const std::clock_t start = std::clock();  // of the processor, so that a busy machine does not fail the test
  CHECK(message_of("bomb.gz") != "accepted");
  CHECK(message_of("little_endian") != "accepted");
  CHECK(std::clock() - start < CLOCKS_PER_SEC);
  CHECK(peak_bytes() - before < (int64_t{64} << 20));
}

TEST_CASE("no cut of a good file is accepted") {
  const std::string folder = test::cases() + "/6_bad_inputs/data/";
  for (const char* const name : {"good3-images-idx3-ubyte", "ok_images.gz"}) {
    const std::string content = test::file_content(folder + name);
    REQUIRE(content.size() > 2000);
    MemoryFiles files;
    files.contents["labels"] = test::file_content(folder + "good3-labels-idx1-ubyte");
    for (std::size_t length = 0; length < content.size(); ++length) {
      files.contents["images"] = content.substr(0, length);
      const auto message = refusal(files, {"images", "labels"});
      INFO(name << " cut to " << length);
      REQUIRE(message);
      REQUIRE(message->starts_with("images: "));
    }
  }
}

TEST_CASE("a flipped bit in a gzip file is refused or changes nothing") {
  const std::string folder = test::cases() + "/6_bad_inputs/data/";
  MemoryFiles files;
  files.contents["labels"] = test::file_content(folder + "good3-labels-idx1-ubyte");
  files.contents["good"] = test::file_content(folder + "ok_images.gz");
  const at::Tensor good = read_idx(files, {"good", "labels"}, kClasses).inputs;
  int refused = 0;
  for (std::size_t position = 0; position < files.contents["good"].size(); ++position) {
    files.contents["images"] = files.contents["good"];
    files.contents["images"][position] ^= static_cast<char>(1 << (position % 8));
    if (refusal(files, {"images", "labels"})) {
      ++refused;
    } else {
      INFO("position " << position);
      REQUIRE(at::equal(read_idx(files, {"images", "labels"}, kClasses).inputs, good));
    }
  }
  CHECK(refused > 2100);  // all but a few bytes of the gzip header, such as its time
}

TEST_CASE("a flipped bit in a plain header is refused") {
  const std::string folder = test::cases() + "/6_bad_inputs/data/";
  MemoryFiles files;
  files.contents["labels"] = test::file_content(folder + "good3-labels-idx1-ubyte");
  const std::string good = test::file_content(folder + "good3-images-idx3-ubyte");
  for (std::size_t bit = 0; bit < 16 * 8; ++bit) {
    files.contents["images"] = good;
    files.contents["images"][bit / 8] ^= static_cast<char>(1 << (bit % 8));
    INFO("bit " << bit);
    REQUIRE(refusal(files, {"images", "labels"}));
  }
}

TEST_CASE("a disk that fails to read is a DataError with the path") {
  MemoryFiles files;
  files.contents["images"] = std::string(100, '\0');
  files.unreadable = "images";
  const auto message = refusal(files, {"images", "labels"});
  REQUIRE(message);
  CHECK(has(*message, "cannot read data: images"));
}
