// The safetensors format, and weights in and out of a strategy's state.
#include "test.h"

#include "torch_pch.h"

#include "bad_inputs.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights.h"
#include "checkpoint_lenet.h"
#include "core/error.h"
#include "temporary_folder.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <functional>
#include <map>

using namespace mgt;
using namespace mgt::checkpoint;
using model::StateKind;
using model::StateSlice;
using test::has;
using test::SmallLenet;
using test::TemporaryFolder;

namespace {

using Tensors = std::map<std::string, at::Tensor>;

std::string hash_of(const std::vector<StateSlice>& state) { return hash_weights(state).sha256; }

FileSystem& disk() { return real_file_system(); }

bool same(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type() && at::equal(a, b); }

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

uint64_t header_length(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

nlohmann::json header_of(const std::string& path) {
  const std::string bytes = disk().read(path, 0, disk().size(path));
  return nlohmann::json::parse(bytes.substr(8, header_length(bytes)));
}

const std::string kLenetInit = test::cases() + "/1_trajectories/lenet_init.safetensors";

}  // namespace

TEST_CASE("what is written is read back to the bit, in every type") {
  const TemporaryFolder folder;
  const std::string path = folder.file("all.safetensors");
  Tensors tensors;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                     at::kChar, at::kByte, at::kBool}) {
    tensors.emplace(dtype_name(dtype), at::arange(15, at::kDouble).sub(3).div(2).abs().view({3, 5}).to(dtype));
  }
  tensors.emplace("scalar", at::tensor(7, at::kLong).squeeze());
  tensors.emplace("nothing", at::empty({0, 4}, at::kFloat));
  tensors.emplace("transposed", at::arange(6, at::kFloat).view({2, 3}).t());
  write_safetensors(disk(), path, tensors, {{"format", "pt"}});

  const Reader reader(disk(), path);
  REQUIRE(reader.tensors().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK(reader.tensors().at(name).shape == tensor.sizes().vec());
    CHECK(same(reader.read(name), tensor));
  }
  CHECK(header_of(path)["__metadata__"]["format"] == "pt");
}

TEST_CASE("data begins at a multiple of 8 bytes and each tensor at one of its element") {
  const TemporaryFolder folder;
  const std::string path = folder.file("aligned.safetensors");
  for (std::size_t length = 1; length <= 9; ++length) {
    const std::string name(length, 'n');
    write_safetensors(
        disk(), path,
        {{"a", at::ones({3}, at::kByte)}, {"b", at::ones({5}, at::kDouble)}, {name, at::ones({1}, at::kHalf)}});
    CHECK(header_length(disk().read(path, 0, 8)) % 8 == 0);
    const Reader reader(disk(), path);
    for (const auto& [key, entry] : reader.tensors())
      CHECK(entry.begin % static_cast<int64_t>(c10::elementSize(entry.dtype)) == 0);
    CHECK(same(reader.read("b"), at::ones({5}, at::kDouble)));
  }
}

TEST_CASE("a file without tensors is sound") {
  const TemporaryFolder folder;
  write_safetensors(disk(), folder.file("none"), {});
  CHECK(Reader(disk(), folder.file("none")).tensors().empty());
}

TEST_CASE("loading writes through the views, so the flat storage has the weights (D-7)") {
  SmallLenet lenet;
  const void* const storage = lenet.view("fc2.bias").const_data_ptr();
  load_weights(disk(), kLenetInit, lenet.state);
  const Reader reader(disk(), kLenetInit);
  for (const StateSlice& slice : lenet.state) CHECK(same(slice.view, reader.read(slice.name).to(at::kDouble)));
  CHECK(lenet.view("fc2.bias").const_data_ptr() == storage);
  CHECK(lenet.flat.narrow(0, 0, 36).equal(reader.read("conv1.weight").flatten().to(at::kDouble)));
}

TEST_CASE("a leaf that needs gradients can be filled") {
  at::Tensor weight = at::zeros({3}, at::kFloat).set_requires_grad(true);
  const TemporaryFolder folder;
  write_safetensors(disk(), folder.file("w"), {{"w", at::arange(3, at::kFloat)}});
  load_weights(disk(), folder.file("w"), {model::whole("w", StateKind::parameter, weight, true)});
  CHECK(weight.equal(at::arange(3, at::kFloat)));
  CHECK(weight.is_leaf());
}

TEST_CASE("floating types are converted to the model's") {
  const TemporaryFolder folder;
  const at::Tensor values = at::tensor({0.5, -2.0, 1024.0}, at::kDouble);  // exact in all four
  for (const at::ScalarType stored : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    write_safetensors(disk(), folder.file("w"), {{"w", values.to(stored)}});
    for (const at::ScalarType wanted : {at::kDouble, at::kFloat}) {
      const at::Tensor weight = at::zeros({3}, wanted);
      load_weights(disk(), folder.file("w"), {model::whole("w", StateKind::parameter, weight, true)});
      CHECK(same(weight, values.to(wanted)));
    }
  }
  write_safetensors(disk(), folder.file("w"), {{"w", at::full({2}, 1e300, at::kDouble)}});
  const auto too_large = [&] {
    load_weights(disk(), folder.file("w"), {model::whole("w", StateKind::parameter, at::zeros({2}, at::kFloat), true)});
  };
  CHECK(has(message_of(too_large), "tensor w: NaN or infinite at position 0"));
}

TEST_CASE("a rank takes its own part: a box, a range of it, a replica") {
  const TemporaryFolder folder;
  const at::Tensor full = at::arange(24, at::kFloat).view({4, 6});
  write_safetensors(disk(), folder.file("w"), {{"w", full}});
  const StateSlice box{.name = "w", .global = {4, 6}, .box = {{1, 2}, {2, 3}}, .flat = {}, .view = at::zeros({2, 3})};
  const StateSlice range{
      .name = "w", .global = {4, 6}, .box = {{1, 2}, {2, 3}}, .flat = Range{2, 5}, .view = at::zeros({3})};
  const StateSlice replica = model::whole("w", StateKind::parameter, at::zeros({4, 6}), false);
  load_weights(disk(), folder.file("w"), {box, range, replica});
  CHECK(box.view.equal(at::tensor({8.F, 9.F, 10.F, 14.F, 15.F, 16.F}).view({2, 3})));
  CHECK(range.view.equal(at::tensor({10.F, 14.F, 15.F})));
  CHECK(replica.view.equal(full));
}

TEST_CASE("a file that is refused leaves the state as it was") {
  for (const char* const name : {"nan", "missing_tensor", "transposed"}) {
    SmallLenet lenet;
    lenet.flat.fill_(3);
    const std::string path = test::cases() + "/6_bad_inputs/checkpoint/" + name + ".safetensors";
    CHECK_THROWS_AS(load_weights(disk(), path, lenet.state), CheckpointError);
    CHECK(lenet.flat.eq(3).all().item<bool>());
  }
}

TEST_CASE("buffers come along, or are left out where that is allowed") {
  const TemporaryFolder folder;
  const auto state = [] {
    return std::vector<StateSlice>{model::whole("bn.weight", StateKind::parameter, at::zeros({2}), true),
                                   model::whole("bn.running_mean", StateKind::buffer, at::full({2}, 5.F), true),
                                   model::whole("bn.count", StateKind::buffer, at::zeros({}, at::kLong), true)};
  };
  const at::Tensor ones = at::ones({2});
  const at::Tensor count = at::full({}, 9, at::kLong);

  write_safetensors(disk(), folder.file("all"), {{"bn.weight", ones}, {"bn.running_mean", ones}, {"bn.count", count}});
  const std::vector<StateSlice> filled = state();
  load_weights(disk(), folder.file("all"), filled);
  CHECK(filled[1].view.equal(ones));
  CHECK(filled[2].view.item<int64_t>() == 9);

  write_safetensors(disk(), folder.file("parameters"), {{"bn.weight", ones}});
  CHECK(
      has(message_of([&] { load_weights(disk(), folder.file("parameters"), state()); }), "bn.running_mean is missing"));
  const std::vector<StateSlice> kept = state();
  load_weights(disk(), folder.file("parameters"), kept, true);
  CHECK(kept[0].view.equal(ones));
  CHECK(kept[1].view.equal(at::full({2}, 5.F)));

  write_safetensors(disk(), folder.file("some"), {{"bn.weight", ones}, {"bn.running_mean", ones}});
  CHECK(has(message_of([&] { load_weights(disk(), folder.file("some"), state(), true); }), "bn.count is missing"));

  write_safetensors(disk(), folder.file("float"),
                    {{"bn.weight", ones}, {"bn.running_mean", ones}, {"bn.count", count.to(at::kFloat)}});
  CHECK(has(message_of([&] { load_weights(disk(), folder.file("float"), state()); }),
            "bn.count is F32 where the model has I64"));
}

TEST_CASE("saved weights load again and hash the same, optimizer state stays out (D-7)") {
  const TemporaryFolder folder;
  SmallLenet lenet(at::kFloat);
  load_weights(disk(), kLenetInit, lenet.state);
  std::vector<StateSlice> state = lenet.state;
  state.push_back(model::whole("fc2.bias.momentum", StateKind::optimizer, at::ones({10}), true));
  state.push_back(model::whole("fc2.bias", StateKind::parameter, at::ones({10}), false));  // a stale replica
  save_weights(disk(), folder.file("out"), state);
  CHECK(Reader(disk(), folder.file("out")).tensors().size() == 8);

  SmallLenet again(at::kFloat);
  load_weights(disk(), folder.file("out"), again.state);
  CHECK(again.flat.equal(lenet.flat));
  CHECK(hash_of(again.state) == hash_of(lenet.state));
  CHECK(hash_of(state) == hash_of(lenet.state));
}

TEST_CASE("only whole tensors are saved or hashed") {
  const TemporaryFolder folder;
  const StateSlice part{.name = "w", .global = {4}, .box = {{0}, {2}}, .flat = {}, .view = at::zeros({2})};
  const StateSlice range{.name = "w", .global = {4}, .box = {{0}, {4}}, .flat = Range{0, 2}, .view = at::zeros({2})};
  CHECK_THROWS_AS(save_weights(disk(), folder.file("part"), {part}), InternalError);
  CHECK_THROWS_AS(hash_of({range}), InternalError);
}

TEST_CASE("the hash of weights sees names, shapes, types and every bit, not the order of slices") {
  SmallLenet lenet(at::kFloat);
  load_weights(disk(), kLenetInit, lenet.state);
  const std::string hash = hash_of(lenet.state);
  std::vector<StateSlice> reversed(lenet.state.rbegin(), lenet.state.rend());
  CHECK(hash_of(reversed) == hash);
  for (StateSlice& slice : reversed) slice.primary = false;
  CHECK(hash_of(reversed) == hash);  // a replica's hash is comparable with the primary's

  SmallLenet wider(at::kDouble);
  load_weights(disk(), kLenetInit, wider.state);
  CHECK(hash_of(wider.state) != hash);

  const at::Tensor row = at::arange(6, at::kFloat);
  const auto hash_of_one = [](const std::string& name, const at::Tensor& view) {
    return hash_of({model::whole(name, StateKind::parameter, view, true)});
  };
  CHECK(hash_of_one("a", row) != hash_of_one("b", row));
  CHECK(hash_of_one("a", row) != hash_of_one("a", row.view({2, 3})));
  CHECK(hash_of_one("a", row.view({2, 3}).t()) == hash_of_one("a", row.view({2, 3}).t().contiguous()));

  lenet.view("fc2.bias")[9] += 1e-6F;
  CHECK(hash_of(lenet.state) != hash);
}

TEST_CASE("shapes and slices") {
  CHECK(model::elements({}) == 1);
  CHECK(model::elements({2, 3, 4}) == 24);
  CHECK(model::elements({2, 0}) == 0);
  CHECK(model::shape_text({16, 96}) == "(16, 96)");
  CHECK(model::shape_text({}) == "()");
  const StateSlice slice = model::whole("w", StateKind::buffer, at::zeros({2, 3}), true);
  CHECK(slice.global == model::Shape{2, 3});
  CHECK(slice.box.offset == model::Shape{0, 0});
  CHECK(slice.box.extent == model::Shape{2, 3});
  CHECK_FALSE(slice.flat);
}

TEST_CASE("a disk that cannot be written is a CheckpointError with the path") {
  CHECK(has(message_of([] { write_safetensors(disk(), "/no/such/folder/w.safetensors", {}); }), "/no/such/folder/"));
}
