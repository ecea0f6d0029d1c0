#include "core/clock.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/seed.h"
#include "core/sha256.h"
#include "core/split.h"
#include "core/text.h"
#include "test.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace mgt;

TEST_CASE("contiguous splits equal torch.tensor_split for n in 0..300, k in 1..8 (S-27, S-50)") {
  std::ifstream file(test::cases() + "/4_splits/split.csv");
  std::string line;
  std::getline(file, line);  // header: n,k,sizes...
  REQUIRE(line.rfind("n,k", 0) == 0);
  int64_t compared = 0;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string n, k, sizes;
    std::getline(cells, n, ',');
    std::getline(cells, k, ',');
    std::getline(cells, sizes, ',');
    std::istringstream words(sizes);
    int64_t begin = 0;
    for (int64_t part = 0; part < std::stoll(k); ++part) {
      int64_t size = 0;
      REQUIRE(words >> size);
      const Range range = split(std::stoll(n), std::stoll(k), part);
      REQUIRE(range == Range{begin, begin + size});
      begin = range.end;
    }
    REQUIRE(begin == std::stoll(n));
    ++compared;
  }
  REQUIRE(compared > 100);
}

TEST_CASE("SHA-256 of the standard's examples, in one piece and in many") {
  REQUIRE(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  REQUIRE(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  REQUIRE(sha256_hex(million) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 pieces;
  for (std::size_t begin = 0; begin < million.size(); begin += 777) {
    pieces.update(million.data() + begin, std::min<std::size_t>(777, million.size() - begin));
  }
  REQUIRE(pieces.hex() == sha256_hex(million));
}

TEST_CASE("Philox 4x32-10 gives the known answers of its authors") {
  REQUIRE(philox({0, 0, 0, 0}, {0, 0}) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
          std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("streams depend on seed, purpose, epoch and index alone") {
  const auto first = [](Stream stream) { return stream.bits(); };
  REQUIRE(first(Stream(1, Purpose::shuffle, 2, 3)) == first(Stream(1, Purpose::shuffle, 2, 3)));
  REQUIRE(first(Stream(1, Purpose::shuffle, 2, 3)) != first(Stream(2, Purpose::shuffle, 2, 3)));
  REQUIRE(first(Stream(1, Purpose::shuffle, 2, 3)) != first(Stream(1, Purpose::init, 2, 3)));
  REQUIRE(first(Stream(1, Purpose::shuffle, 2, 3)) != first(Stream(1, Purpose::shuffle, 3, 3)));
  REQUIRE(first(Stream(1, Purpose::shuffle, 2, 3)) != first(Stream(1, Purpose::shuffle, 2, 4)));
}

TEST_CASE("normal numbers have mean 0 and variance 1") {
  Stream stream(7, Purpose::init);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double value = stream.normal();
    sum += value;
    squares += value * value;
  }
  REQUIRE(std::abs(sum / kCount) < 0.015);
  REQUIRE(std::abs(squares / kCount - 1) < 0.02);
}

TEST_CASE("the nearest word is found, a far one is not") {
  REQUIRE(nearest("momentun", {"lr", "momentum", "nesterov"}) == "momentum");
  REQUIRE(nearest("flux_capacitor", {"lr", "momentum", "nesterov"}).empty());
}

TEST_CASE("an error that crossed a process keeps its type and code") {
  REQUIRE_THROWS_AS(throw_error(ExitCode::data, "x"), DataError);
  REQUIRE_THROWS_AS(throw_error(ExitCode::comm, "x"), CommError);
  REQUIRE(Interrupted(2).code() == ExitCode::interrupted);
  REQUIRE(Interrupted(15).code() == ExitCode::terminated);
}

TEST_CASE("files are written whole, and a pipe is never opened") {
  const std::string folder = std::filesystem::temp_directory_path() / ("mgt_core_test_" + std::to_string(getpid()));
  FileSystem& files = real_file_system();
  files.make_directories(folder);
  files.write_whole(folder + "/a", "first");
  files.write_whole(folder + "/a", "second");
  REQUIRE(files.read(folder + "/a", 0, 100) == "second");
  REQUIRE(files.read(folder + "/a", 3, 2) == "on");
  REQUIRE(files.kind(folder + "/a.tmp") == FileSystem::Kind::missing);
  REQUIRE(files.kind(folder) == FileSystem::Kind::directory);
  REQUIRE(mkfifo((folder + "/pipe").c_str(), 0600) == 0);
  REQUIRE(files.kind(folder + "/pipe") == FileSystem::Kind::other);
  REQUIRE_THROWS(files.read(folder + "/pipe", 0, 1));
  REQUIRE_THROWS(files.write_whole(folder + "/none/a", "x"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("time since exec is small and grows") {
  const double first = since_process_start_s();
  REQUIRE(first >= 0);
  REQUIRE(first < 60);
  REQUIRE(since_process_start_s() >= first);
}
