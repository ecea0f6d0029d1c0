// One rank's stage of a pipeline: its chunks of the model, and the pieces of a batch that are on their way through
// them, in the order of a schedule. With one stage it is accumulation. Belongs to its rank's thread.
#pragma once

#include "strategy/entry.h"
#include "strategy/mesh/axes.h"
#include "strategy/mesh/pieces.h"
#include "strategy/mesh/schedule.h"
#include "strategy/mesh/shared_model.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace mgt::strategy {

class Stage {
 public:
  // `cut`: the blocks of each part of the model, stages x chunks of them.
  Stage(const Context& context, const Sharing& sharing, const Pipeline& pipeline, const std::vector<Range>& cut,
        Axes& axes);

  // Forward and backward over this rank's rows, piece by piece; gradients are reduced over the data axis. Returns this
  // rank's part of the mean loss over `samples`, which is the last stage's.
  double train(const data::Batch& own, int64_t samples, const Pieces& pieces);

  EvalCounts evaluate(const data::Batch& own);  // of the last stage; nothing elsewhere

  const std::vector<std::unique_ptr<SharedModel>>& chunks() const { return chunks_; }

  double idle_s() const { return idle_s_; }  // with other stages' messages while training, since construction
  int64_t most_in_flight() const { return most_in_flight_; }  // pieces whose activations were held at once

 private:
  struct Flow {
    at::Tensor input;   // a leaf whose gradient goes to the stage before; undefined in the first part
    at::Tensor output;  // of the last part: the loss
  };
  struct Message {
    std::optional<comm::Work> work;  // none for an empty tensor
    at::Tensor tensor;
  };

  void forward(const data::Batch& rows, int64_t samples, const Action& action, bool statistics_follow);
  void backward(const Action& action, bool last);
  bool passes(const data::Batch& rows, const Action& action) const;
  void ask(const data::Batch& rows, const Action& action);
  at::Tensor receive();
  void send(comm::Communicator& lane, const at::Tensor& tensor, int64_t to_part);
  void wait_for_sent();
  int64_t part_of(int64_t chunk) const { return chunk * axes_.stages() + axes_.stage(); }
  bool is_last_part(int64_t part) const { return part + 1 == static_cast<int64_t>(cut_.size()); }
  SharedModel& chunk(int64_t index) { return *chunks_[static_cast<std::size_t>(index)]; }

  const model::Model& model_;
  at::TensorOptions options_;
  Pipeline pipeline_;
  std::vector<Range> cut_;
  std::vector<model::Shape> shapes_;  // of one sample, after each block
  Axes& axes_;
  std::vector<std::unique_ptr<SharedModel>> chunks_;
  std::map<std::pair<int64_t, int64_t>, Flow> flows_;  // by chunk and piece
  std::deque<Message> asked_;                          // of other stages, in the order of actions
  std::vector<Message> sent_;                          // in this step
  std::vector<double> losses_;                         // of this step, by piece
  double idle_s_ = 0;
  int64_t most_in_flight_ = 0;
};

}  // namespace mgt::strategy
