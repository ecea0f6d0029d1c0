#include "strategy/mesh/stage.h"

#include "core/clock.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {
namespace {

// Gloo carries a message once the receiver has asked for it: so a stage asks while the action before is computed. NCCL
// carries a pair's messages in the order in which they were started, and a receive that is early would hold up a send.
std::size_t actions_ahead(at::Device device) { return device.is_cpu() ? 1 : 0; }

// Stages begin with parts of one model: all ranks take the first one's seed.
uint64_t common_seed(const Context& context, comm::Communicator& world) {
  at::Tensor seed = at::full({1}, static_cast<int64_t>(context.seed), at::kLong).to(context.devices.front());
  world.broadcast(seed, 0).wait();
  return static_cast<uint64_t>(seed.item<int64_t>());
}

// What a part of the model on the data axis is made of.
Context along_data(const Context& context, Axes& axes) {
  return {context.config,  context.model,      context.devices,
          axes.data(),     context.dtype,      common_seed(context, axes.world()),
          context.threads, context.micro_batch};
}

// Adds the time that it lives.
class Timer {
 public:
  explicit Timer(double& total_s) : total_s_(total_s) {}
  ~Timer() { total_s_ += real_clock().now_s() - began_s_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& total_s_;
  double began_s_ = real_clock().now_s();
};

}  // namespace

Stage::Stage(const Context& context, const Sharing& sharing, const Pipeline& pipeline, const std::vector<Range>& cut,
             Axes& axes)
    : model_(context.model),
      options_(at::TensorOptions().dtype(context.dtype).device(context.devices.front())),
      pipeline_(pipeline),
      cut_(cut),
      shapes_(context.model.shapes()),
      axes_(axes) {
  const Context part = along_data(context, axes);
  for (int64_t index = 0; index < pipeline.chunks; ++index) {
    chunks_.push_back(
        std::make_unique<SharedModel>(part, sharing, cut_[static_cast<std::size_t>(part_of(index))], axes.slices()));
  }
}

double Stage::train(const data::Batch& own, int64_t samples, const Pieces& pieces) {
  const int64_t count = pieces.count(samples);
  losses_.assign(static_cast<std::size_t>(count), 0);
  std::vector<data::Batch> rows;  // by piece
  for (int64_t piece = 0; piece < count; ++piece) rows.push_back(pieces.piece(own, samples, piece));
  for (const auto& model : chunks_) model->begin_step();
  const std::vector<Action> actions = actions_of(pipeline_, axes_.stage(), count);
  std::size_t asked = 0, until = actions_ahead(options_.device());
  for (const Action& action : actions) {
    for (++until; asked < std::min(until, actions.size()); ++asked) {
      ask(rows[static_cast<std::size_t>(actions[asked].piece)], actions[asked]);
    }
    if (action.kind == Action::Kind::forward)
      forward(rows[static_cast<std::size_t>(action.piece)], samples, action, pieces.statistics_follow(action.piece));
    else
      backward(action, /*last=*/action.piece == count - 1);
  }
  for (const auto& model : chunks_) model->finish_gradients();
  wait_for_sent();
  return pieces.sum(losses_);
}

void Stage::forward(const data::Batch& rows, int64_t samples, const Action& action, bool statistics_follow) {
  SharedModel& model = chunk(action.chunk);
  const int64_t part = part_of(action.chunk);
  if (passes(rows, action)) {
    model.pass_forward();
    return;
  }
  Flow flow;
  const at::Tensor input = part == 0 ? rows.inputs : receive();
  if (part > 0) flow.input = input.set_requires_grad(true);
  flow.output = model.forward(input, model.training(statistics_follow));
  if (is_last_part(part)) {
    flow.output = model::summed_loss(model_.loss, flow.output, rows.targets) / static_cast<double>(samples);
    losses_[static_cast<std::size_t>(action.piece)] = flow.output.item<double>();
  } else {
    send(axes_.activations(), flow.output.detach(), part + 1);
  }
  flows_[{action.chunk, action.piece}] = std::move(flow);
  most_in_flight_ = std::max(most_in_flight_, static_cast<int64_t>(flows_.size()));
}

void Stage::backward(const Action& action, bool last) {
  SharedModel& model = chunk(action.chunk);
  const int64_t part = part_of(action.chunk);
  model.begin_backward(last);
  const auto found = flows_.find({action.chunk, action.piece});
  if (found == flows_.end()) {
    model.pass_backward();
    model.end_backward();
    return;
  }
  Flow flow = std::move(found->second);
  flows_.erase(found);
  const at::Tensor gradient = is_last_part(part) ? at::Tensor() : receive();
  if (flow.output.requires_grad()) flow.output.backward(gradient);
  model.end_backward();
  if (flow.input.defined()) send(axes_.gradients(), flow.input.grad(), part - 1);
}

EvalCounts Stage::evaluate(const data::Batch& own) {
  const at::NoGradGuard no_grad;
  const double idle_while_training_s = idle_s_;
  EvalCounts counts;
  for (int64_t index = 0; index < pipeline_.chunks; ++index) {
    const int64_t part = part_of(index);
    if (own.size() == 0) {
      chunk(index).pass_forward();
      continue;
    }
    ask(own, {Action::Kind::forward, index, 0});
    const at::Tensor output = chunk(index).forward(part == 0 ? own.inputs : receive(), chunk(index).evaluating());
    if (!is_last_part(part))
      send(axes_.activations(), output, part + 1);
    else
      counts = {.correct = model::count_correct(output, own.targets), .total = own.size()};
  }
  wait_for_sent();
  idle_s_ = idle_while_training_s;
  return counts;
}

bool Stage::passes(const data::Batch& rows, const Action& action) const {
  return rows.size() == 0 && !chunks_[static_cast<std::size_t>(action.chunk)]->joins_others();
}

// Begins to receive what the action needs of another stage.
void Stage::ask(const data::Batch& rows, const Action& action) {
  const int64_t part = part_of(action.chunk);
  const bool forward = action.kind == Action::Kind::forward;
  if (passes(rows, action) || (forward ? part == 0 : is_last_part(part))) return;
  const Range blocks = cut_[static_cast<std::size_t>(part)];
  model::Shape shape = shapes_[static_cast<std::size_t>((forward ? blocks.begin : blocks.end) - 1)];
  shape.insert(shape.begin(), rows.size());
  Message message{.work = {}, .tensor = at::empty(shape, options_)};
  const Timer timer(idle_s_);
  comm::Communicator& lane = forward ? axes_.activations() : axes_.gradients();
  const int64_t from_part = forward ? part - 1 : part + 1;
  if (message.tensor.numel() > 0) message.work = lane.recv(message.tensor, from_part % axes_.stages());
  asked_.push_back(std::move(message));
}

at::Tensor Stage::receive() {
  const Timer timer(idle_s_);
  Message message = std::move(asked_.front());
  asked_.pop_front();
  if (message.work) message.work->wait();
  return message.tensor;
}

// Sent tensors are kept until the end of the step. To wait for one earlier could be for ever: two stages may send each
// other what neither receives before it has done what comes first.
void Stage::send(comm::Communicator& lane, const at::Tensor& tensor, int64_t to_part) {
  if (tensor.numel() == 0) return;
  const Timer timer(idle_s_);
  const at::Tensor message = tensor.contiguous();
  sent_.push_back({lane.send(message, to_part % axes_.stages()), message});
}

void Stage::wait_for_sent() {
  const Timer timer(idle_s_);
  for (Message& sent : sent_) sent.work->wait();
  sent_.clear();
}

}  // namespace mgt::strategy
