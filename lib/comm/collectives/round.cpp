#include "comm/collectives/round.h"

#include "torch_pch.h"
#include <ATen/Dispatch.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace mgt::comm {
namespace {

// A message to be added comes in segments, so that one is added while the next is on its way, and stays in the cache.
constexpr int64_t kSegmentBytes = 1 << 20;

std::vector<at::Tensor> segments(const at::Tensor& piece) {
  const int64_t length = kSegmentBytes / static_cast<int64_t>(piece.element_size());
  std::vector<at::Tensor> cut;
  for (int64_t begin = 0; begin < piece.numel(); begin += length) {
    cut.push_back(piece.narrow(0, begin, std::min(length, piece.numel() - begin)));
  }
  return cut;
}

std::vector<std::unique_ptr<Pending>> send_all(Link& link, const std::vector<at::Tensor>& messages, int64_t to) {
  std::vector<std::unique_ptr<Pending>> sent;
  for (const at::Tensor& message : messages) sent.push_back(link.send(message, to));
  return sent;
}

// On the calling thread alone: at::add would wake a team of threads beside the one that computes.
void add(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, sum.scalar_type(), "add", [&] {
    const scalar_t* first = a.const_data_ptr<scalar_t>();
    std::transform(first, first + a.numel(), b.const_data_ptr<scalar_t>(), sum.mutable_data_ptr<scalar_t>(),
                   std::plus<scalar_t>());
  });
}

}  // namespace

at::Tensor parts(const at::Tensor& vector, int64_t count, Range which) {
  const int64_t begin = split(vector.numel(), count, which.begin).begin;
  return vector.narrow(0, begin, split(vector.numel(), count, which.end - 1).end - begin);
}

at::Tensor part(const at::Tensor& vector, int64_t count, int64_t index) {
  const int64_t wrapped = (index % count + count) % count;
  return parts(vector, count, {wrapped, wrapped + 1});
}

void exchange(Link& link, const at::Tensor& out, int64_t to, const at::Tensor& in, int64_t from) {
  std::unique_ptr<Pending> received, sent;
  if (in.numel() > 0) received = link.recv(in, from);
  if (out.numel() > 0) sent = link.send(out, to);
  if (received) received->wait();
  if (sent) sent->wait();
}

void exchange_and_add(Link& link, const at::Tensor& out, int64_t to, const at::Tensor& own, const at::Tensor& sum,
                      int64_t from) {
  const std::vector<at::Tensor> mine = segments(own), sums = segments(sum);
  const at::Tensor incoming = mine.empty() ? own : at::empty({2, mine.front().numel()}, own.options());
  const auto receive = [&](std::size_t index) {
    return link.recv(incoming[static_cast<int64_t>(index % 2)].narrow(0, 0, mine[index].numel()), from);
  };
  std::unique_ptr<Pending> next;
  if (!mine.empty()) next = receive(0);
  const auto sent = send_all(link, segments(out), to);
  for (std::size_t index = 0; index < mine.size(); ++index) {
    const auto arriving = std::move(next);
    if (index + 1 < mine.size()) next = receive(index + 1);
    arriving->wait();
    add(sums[index], mine[index], incoming[static_cast<int64_t>(index % 2)]);
  }
  for (const auto& message : sent) message->wait();
}

}  // namespace mgt::comm
