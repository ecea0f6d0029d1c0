// Damaged, absurd and foreign weight files: each is refused with one line that names it.
#include "test.h"

#include "torch_pch.h"

#include "bad_inputs.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights.h"
#include "checkpoint_lenet.h"
#include "core/error.h"
#include "memory_files.h"

#include <cstring>
#include <optional>

using namespace mgt;
using namespace mgt::checkpoint;
using test::has;
using test::MemoryFiles;
using test::SmallLenet;

namespace {

using Json = nlohmann::json;

const std::string kFolder = test::cases() + "/6_bad_inputs/";

// The message of the CheckpointError; nothing where the file is accepted. Any other exception fails the test.
std::optional<std::string> refusal(const FileSystem& files, const std::string& path) {
  const SmallLenet lenet;
  try {
    load_weights(files, path, lenet.state);
    return std::nullopt;
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

// The message about the case of this name, without the folder that the tests lie in.
std::string message_about(const std::string& name) {
  const std::string path = kFolder + "checkpoint/" + name;
  const std::string message = refusal(real_file_system(), path).value_or("accepted");
  return message.starts_with(path) ? message.substr(path.size() - name.size()) : message;
}

std::string with_length(const std::string& header) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header;
}

// The message about a file that has this header and `data_bytes` of zeros.
std::string message_about_header(const std::string& header, std::size_t data_bytes = 0) {
  MemoryFiles files;
  files.contents["w"] = with_length(header) + std::string(data_bytes, '\0');
  return refusal(files, "w").value_or("accepted");
}

}  // namespace

TEST_CASE("every damaged weight file is refused by name in one line") {
  const std::vector<Json> all = test::bad_inputs("checkpoint");
  REQUIRE(all.size() == 31);
  for (const Json& one : all) {
    const std::string path = kFolder + one["file"].get<std::string>();
    const auto message = refusal(real_file_system(), path);
    INFO(path << ": " << message.value_or("accepted"));
    if (one["expect_exit"] == 0) {
      CHECK_FALSE(message);
      continue;
    }
    REQUIRE(one["expect_exit"] == 4);
    REQUIRE(message);
    CHECK_FALSE(has(*message, "\n"));
    REQUIRE(message->starts_with(path + ": "));
    const std::string told = message->substr(path.size() - one["file"].get<std::string>().size());
    for (const Json& words : one["expect_words"]) CHECK(test::has_any(told, words));
  }
}

TEST_CASE("a message says what is wrong with which tensor") {
  CHECK(has(message_about("cut.safetensors"), "tensor fc2.bias: it ends at byte 9472 of the data, which has 9468"));
  CHECK(has(message_about("gap.safetensors"), "tensor fc2.bias: 8 bytes before it belong to no tensor"));
  CHECK(has(message_about("bytes_after_the_end.safetensors"), "4 bytes after the last tensor"));
  CHECK(has(message_about("shape_does_not_fit.safetensors"),
            "tensor fc1.bias: shape (17) in F32 does not fit its 64 bytes"));
  CHECK(has(message_about("name_twice.safetensors"), "the header has the name \"fc1.bias\" twice"));
  CHECK(has(message_about("nan.safetensors"), "tensor fc1.weight: NaN or infinite at position 5 (1 of 1536 values)"));
  CHECK(has(message_about("missing_tensor.safetensors"), "fc2.bias is missing"));
  CHECK(has(message_about("extra_tensor.safetensors"), "fc3.weight is not in the model"));
  CHECK(has(message_about("transposed.safetensors"), "fc1.weight is (96, 16) where the model has (16, 96)"));
  CHECK(has(message_about("other_width.safetensors"), "conv1.weight is (5, 1, 3, 3) where the model has (4, 1, 3, 3)"));
  CHECK(has(message_about("dtype_integer.safetensors"), "fc1.bias is I32 where the model has F64"));
  CHECK(has(message_about("pickle.pt"), "never opened"));
  CHECK(has(message_about(""), "a directory"));
}

TEST_CASE("a bare pickle is recognised, a header of the same length is not taken for one") {
  MemoryFiles files;
  files.contents["old.pt"] = std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20", 10) + std::string(100, 'x');
  CHECK(has(refusal(files, "old.pt").value_or(""), "never opened"));

  std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(0x280, ' ');  // its length begins with the bytes of a pickle
  files.contents["w"] = with_length(header) + std::string(4, '\0');
  CHECK(Reader(files, "w").tensors().size() == 1);
}

TEST_CASE("no cut of a good file is accepted") {
  const std::string content = test::file_content(kFolder + "checkpoint/ok.safetensors");
  REQUIRE(content.size() == 10040);
  MemoryFiles files;
  for (std::size_t length = 0; length < content.size(); length += length < 700 ? 1 : 13) {
    files.contents["w"] = content.substr(0, length);
    INFO("cut to " << length);
    REQUIRE(refusal(files, "w"));
  }
}

TEST_CASE("a damaged byte in the header is refused or harmless, never a crash") {
  const std::string good = test::file_content(kFolder + "checkpoint/ok.safetensors");
  MemoryFiles files;
  int refused = 0;
  for (std::size_t position = 0; position < 568; ++position) {
    files.contents["w"] = good;
    files.contents["w"][position] ^= static_cast<char>(1 << (position % 7));
    if (refusal(files, "w")) ++refused;
  }
  CHECK(refused > 550);  // all but a few of the spaces at the end
}

TEST_CASE("headers that JSON allows and the format does not") {
  const auto refused_for = [](const std::string& header, const std::string& word, std::size_t data_bytes = 4) {
    const std::string message = message_about_header(header, data_bytes);
    INFO(message);
    return has(message, word);
  };
  CHECK(refused_for(R"({"w":[]})", "tensor w: the header lacks its dtype"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[1]}})", "lacks its data_offsets"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", "not a pair"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
                    "shape is not a list of whole numbers"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}})",
                    "shape is not a list of whole numbers"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})",
                    "shape is not a list"));
  CHECK(refused_for(R"({"w":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", "unknown dtype 7"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "\"dtype\" twice"));
  CHECK(refused_for(R"({"w\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "control characters"));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "nested too deeply"));
  CHECK(refused_for(std::string(100000, '['), "nested too deeply", 0));
  CHECK(refused_for(R"({"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", "not JSON"));
  CHECK(refused_for("", "not JSON"));
  CHECK(refused_for("{}", "4 bytes after the last tensor"));
}

TEST_CASE("one message names several differences and counts the rest") {
  const std::string message = message_about_header("{}");
  CHECK(has(message, "conv1.weight is missing; conv1.bias is missing; conv2.weight is missing"));
  CHECK(has(message, "and 4 more"));
}
