// The full product of what a mesh is made of, where `mgt verify --all` takes options alone and in pairs: degrees of
// data, pipeline and tensor, stages of ZeRO and schedules, each in pieces, with Adam and clipped. It takes minutes:
// scripts/test --slow.
#include "test.h"
#include "verified.h"
#include "workplace.h"

#include <nlohmann/json.hpp>

#include "torch_pch.h"

using namespace mgt;

namespace {

struct Degrees {
  int64_t data, pipeline, tensor;
  int64_t world() const { return data * pipeline * tensor; }
};

std::vector<Degrees> degrees_up_to(int64_t most) {
  std::vector<Degrees> all;
  for (int64_t data = 1; data <= most; ++data) {
    for (int64_t pipeline = 1; data * pipeline <= most; ++pipeline) {
      for (int64_t tensor = 1; data * pipeline * tensor <= most; ++tensor) all.push_back({data, pipeline, tensor});
    }
  }
  return all;
}

std::vector<std::string> strategies(const Degrees& degrees) {
  std::vector<std::string> all;
  for (int64_t zero = 0; zero <= (degrees.data > 1 ? 3 : 0); ++zero) {
    for (const std::string schedule : {"1f1b", "gpipe", "interleaved"}) {
      all.push_back(concat("strategy={name: hybrid, data: ", degrees.data, ", pipeline: ", degrees.pipeline,
                           ", tensor: ", degrees.tensor, ", zero: ", zero, ", bucket_mb: 0.005, microbatches: 3",
                           ", schedule: ", schedule, "}"));
      if (degrees.pipeline == 1) break;
    }
  }
  return all;
}

// Returns how many of them the model allows.
int64_t check_products(const std::string& model, int64_t most, const std::string& backend) {
  verify::Verifier verifier(test::request(model + "\ndata: {name: synthetic, train: 200, test: 101}\n", {most}, 4));
  int64_t equal = 0;
  for (const Degrees& degrees : degrees_up_to(most)) {
    for (const std::string& strategy : strategies(degrees)) {
      const verify::Case one{.overrides = {strategy, "launch=threads", "comm.backend=" + backend,
                                           "optimizer={name: adam, lr: 0.01}", "clip.norm=0.1"},
                             .world = degrees.world()};
      if (test::is_equal(verifier, one)) ++equal;
    }
  }
  return equal;
}

}  // namespace

TEST_CASE("every product of degrees on up to 8 threads equals one device: LeNet (S-10, S-11, S-02)") {
  REQUIRE(check_products("model: lenet", 8, "local") == 136);
}

TEST_CASE("every product of degrees on up to 8 threads equals one device: LeNet-5 (S-10, S-11, S-02)") {
  REQUIRE(check_products("model: lenet5", 8, "local") == 140);
}

TEST_CASE("every product of degrees on up to 8 threads equals one device: three linear layers (S-10, S-11, S-02)") {
  REQUIRE(check_products("model: {name: mlp, hidden: [20, 13]}", 8, "local") == 96);
}

TEST_CASE("every product of degrees on up to 8 threads equals one device: a single linear layer (S-02)") {
  REQUIRE(check_products("model: {name: mlp, hidden: []}", 8, "local") == 96);
}

TEST_CASE("every product of degrees on up to 8 threads equals one device: a Transformer (S-10, S-11, S-02)") {
  REQUIRE(check_products("model: vit", 8, "local") > 100);
}

TEST_CASE("every product of degrees on up to 8 threads equals one device: ResNet-18 (S-10, S-11, S-02, S-55)") {
  REQUIRE(check_products("model: {name: resnet18, style: torchvision, bn: sync}", 8, "local") == 148);
}

TEST_CASE("every product of degrees on up to 4 threads over Gloo equals one device: LeNet (S-10, S-11, S-02)") {
  REQUIRE(check_products("model: lenet", 4, "gloo") > 30);
}

TEST_CASE("every product of degrees on up to 4 processes gives the bits that threads over Gloo give (M-02)") {
  const test::Workplace workplace;
  int number = 0;
  for (const Degrees& degrees : degrees_up_to(4)) {
    for (const std::string& strategy : strategies(degrees)) {
      const auto hash = [&](const std::string& launch) {
        const std::vector<std::string> settings = {"model={name: mlp, hidden: [12, 12, 12, 12, 12, 12, 12]}",
                                                   strategy,
                                                   concat("devices=", degrees.world()),
                                                   "launch=" + launch,
                                                   "comm.backend=gloo",
                                                   "epochs=1"};
        return workplace.summary(settings, concat("run", ++number))["weights_sha256"].get<std::string>();
      };
      INFO(strategy);
      REQUIRE(hash("processes") == hash("threads"));
    }
  }
}
