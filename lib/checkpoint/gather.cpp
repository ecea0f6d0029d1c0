#include "checkpoint/gather.h"

#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace mgt::checkpoint {
namespace {

using model::StateKind;
using model::StateSlice;
using Json = nlohmann::json;
using Key = std::pair<StateKind, std::string>;

std::vector<StateSlice> primary(const std::vector<StateSlice>& state) {
  std::vector<StateSlice> owned;
  std::ranges::copy_if(state, std::back_inserter(owned), [](const StateSlice& slice) { return slice.primary; });
  return owned;
}

// What a slice is, without its values.
Json description(const StateSlice& slice) {
  Json json = {{"name", slice.name},
               {"kind", static_cast<int>(slice.kind)},
               {"global", slice.global},
               {"offset", slice.box.offset},
               {"extent", slice.box.extent},
               {"shape", slice.view.sizes().vec()},
               {"dtype", static_cast<int>(slice.view.scalar_type())}};
  if (slice.flat) json["flat"] = {slice.flat->begin, slice.flat->end};
  return json;
}

StateSlice slice_of(const Json& json) {
  StateSlice slice{.name = json["name"],
                   .kind = static_cast<StateKind>(json["kind"].get<int>()),
                   .global = json["global"],
                   .box = {.offset = json["offset"], .extent = json["extent"]}};
  if (json.contains("flat")) slice.flat = Range{json["flat"][0], json["flat"][1]};
  slice.view = at::empty(json["shape"].get<model::Shape>(),
                         at::TensorOptions().dtype(static_cast<at::ScalarType>(json["dtype"].get<int>())));
  return slice;
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

// Tells rank 0 what this rank owns.
void send_all(comm::Communicator& communicator, const std::string& header, const std::vector<StateSlice>& owned,
              at::Device device) {
  communicator.send(bytes_of(header).to(device), 0).wait();
  for (const StateSlice& slice : owned) communicator.send(slice.view.detach().to(device).contiguous(), 0).wait();
}

std::vector<StateSlice> receive_all(comm::Communicator& communicator, int64_t from, int64_t header_bytes,
                                    at::Device device) {
  at::Tensor header = at::empty({header_bytes}, at::TensorOptions().dtype(at::kByte).device(device));
  communicator.recv(header, from).wait();
  header = header.cpu();
  const auto* const text = static_cast<const char*>(header.const_data_ptr());
  std::vector<StateSlice> received;
  for (const Json& json : Json::parse(text, text + header_bytes)) {
    StateSlice slice = slice_of(json);
    at::Tensor values = slice.view.to(device);
    communicator.recv(values, from).wait();
    slice.view = values.cpu();
    received.push_back(std::move(slice));
  }
  return received;
}

// Lays pieces of tensors into whole ones.
class Assembly {
 public:
  void add(const StateSlice& slice) {
    const Key key{slice.kind, slice.name};
    const bool whole = model::is_whole(slice);
    if (whole) {
      wholes_[key] = slice;
      return;
    }
    StateSlice& target = wholes_[key];
    if (!target.view.defined()) {
      target = model::whole(slice.name, slice.kind, at::zeros(slice.global, slice.view.options()), true);
    }
    model::put_piece(target.view, slice);
    filled_[key] += slice.view.numel();
  }

  std::vector<StateSlice> take() {
    std::vector<StateSlice> slices;
    for (auto& [key, slice] : wholes_) {
      const auto filled = filled_.find(key);
      require(filled == filled_.end() || filled->second == slice.view.numel(),
              concat("every element of ", slice.name, " has one owner"));
      slices.push_back(std::move(slice));
    }
    return slices;
  }

 private:
  std::map<Key, StateSlice> wholes_;
  std::map<Key, int64_t> filled_;  // elements of those that come in pieces
};

}  // namespace

std::vector<StateSlice> gather(comm::Communicator& communicator, const std::vector<StateSlice>& state,
                               at::Device device) {
  const at::NoGradGuard no_grad;
  const std::vector<StateSlice> owned = primary(state);
  Json list = Json::array();
  for (const StateSlice& slice : owned) list.push_back(description(slice));
  const std::string header = owned.empty() ? "" : list.dump();
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  at::Tensor sizes = at::empty({communicator.size()}, options);
  communicator.all_gather(at::full({1}, static_cast<int64_t>(header.size()), options), sizes).wait();
  sizes = sizes.cpu();
  if (communicator.rank() != 0) {
    if (!owned.empty()) send_all(communicator, header, owned, device);
    return {};
  }
  Assembly assembly;
  for (const StateSlice& slice : owned) assembly.add(slice);
  for (int64_t rank = 1; rank < communicator.size(); ++rank) {
    const auto header_bytes = sizes[rank].item<int64_t>();
    if (header_bytes == 0) continue;
    for (const StateSlice& slice : receive_all(communicator, rank, header_bytes, device)) assembly.add(slice);
  }
  return assembly.take();
}

std::vector<StateSlice> gather_weights(comm::Communicator& communicator, const std::vector<StateSlice>& state,
                                       at::Device device) {
  std::vector<StateSlice> weights = state;
  std::erase_if(weights, [](const StateSlice& slice) { return slice.kind == StateKind::optimizer; });
  return gather(communicator, weights, device);
}

void scatter(const std::vector<StateSlice>& whole, std::vector<StateSlice>& state) {
  const at::NoGradGuard no_grad;
  std::map<Key, const StateSlice*> by_name;
  for (const StateSlice& slice : whole) by_name[{slice.kind, slice.name}] = &slice;
  for (StateSlice& slice : state) {
    const auto found = by_name.find({slice.kind, slice.name});
    if (found == by_name.end()) throw CheckpointError(slice.name + " is missing from the state that was put together");
    slice.view.copy_(model::piece_of(found->second->view, slice));
  }
}

}  // namespace mgt::checkpoint
