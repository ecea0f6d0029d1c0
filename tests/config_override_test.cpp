// --set KEY=VALUE.
#include "config_schema.h"
#include "test.h"

#include "config/reader.h"

namespace mgt::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using config::Config;

const std::string kFile = "strategy: {name: zero, stage: 3, bucket_mb: 8}\nmodel: mlp\nmax_steps: 5\n";

}  // namespace

TEST_CASE("a whole section is replaced") {
  const config::Section strategy = resolved(kFile, {"strategy=ddp"}).section("strategy");
  CHECK(strategy.text("name") == "ddp");
  CHECK(strategy.number("bucket_mb") == 25);
  CHECK(resolved(kFile, {"strategy={name: zero, stage: 1}"}).section("strategy").integer("stage") == 1);
}

TEST_CASE("one option is changed and the rest stays") {
  const config::Section strategy = resolved(kFile, {"strategy.bucket_mb=4"}).section("strategy");
  CHECK(strategy.number("bucket_mb") == 4);
  CHECK(strategy.integer("stage") == 3);
}

TEST_CASE("an option of a section that the file gives as a scalar, or not at all") {
  const Config run = resolved(kFile, {"model.hidden=32", "optimizer.lr=0.5"});
  CHECK(run.section("model").text("name") == "mlp");
  CHECK(run.section("model").integer("hidden") == 32);
  CHECK(run.section("optimizer").number("lr") == 0.5);
}

TEST_CASE("a changed name leaves stale options, which are named with the way out") {
  CHECK_THAT(error_of(kFile, {"strategy.name=ddp"}),
             Equals("run.yaml:1:24: strategy.stage: ddp has no option stage, it belongs to zero; options of ddp: "
                    "bucket_mb; --set strategy=ddp drops what the file says there"));
  const config::Section strategy = resolved(kFile, {"strategy.name=ddp", "strategy.stage=null"}).section("strategy");
  CHECK(strategy.number("bucket_mb") == 8);
}

TEST_CASE("null takes a key back to its default") {
  CHECK_FALSE(resolved(kFile, {"max_steps=null"}).top().has("max_steps"));
  CHECK(resolved(kFile, {"strategy=~"}).section("strategy").text("name") == "single");
  CHECK_THAT(error_of(kFile, {"optimzer=null"}), Contains("optimzer: unknown key (did you mean optimizer?)"));
  CHECK_THAT(error_of(kFile, {"optimizer.momentun=null"}), Contains("did you mean momentum?"));
}

TEST_CASE("later overrides win") {
  CHECK(resolved(kFile, {"seed=1", "seed=2"}).top().integer("seed") == 2);
  CHECK(resolved(kFile, {"model.hidden=1", "model=lenet"}).section("model").integer("hidden") == 128);
}

TEST_CASE("an error in an override names it") {
  CHECK_THAT(error_of(kFile, {"optimizer.lr=fast"}),
             Equals("--set optimizer.lr=fast: optimizer.lr: must be a number, not 'fast'"));
  CHECK_THAT(error_of(kFile, {"lr=1"}),
             Equals("--set lr=1: lr: unknown key here; it belongs elsewhere: write optimizer.lr"));
  CHECK_THAT(error_of(kFile, {"stratgy.name=ddp"}), Contains("stratgy: unknown key (did you mean strategy?)"));
  CHECK_THAT(error_of(kFile, {"seed.x=1"}), Contains("seed.x: seed is one value, not a section"));
  CHECK_THAT(error_of(kFile, {"optimizer.lr.x=1"}), Contains("optimizer.lr.x: unknown key"));
  CHECK_THAT(error_of(kFile, {"optimizer={lr: 1, lr: 2}"}), Contains("optimizer.lr: the key stands here twice"));
  CHECK_THAT(error_of(kFile, {"optimizer=[sgd]"}), Contains("optimizer: must be a map of keys, not a list"));
  CHECK_THAT(error_of(kFile, {"model=*a"}), Contains("--set model=*a: "));
  CHECK_THAT(error_of("strategy: [ddp]", {"strategy.bucket_mb=4"}), Contains("run.yaml:1:11: strategy: must be a map"));
}

TEST_CASE("an override has the form KEY=VALUE") {
  for (const char* text : {"seed", "=1", "", "="})
    CHECK_THAT(error_of(kFile, {text}), Contains("not of the form KEY=VALUE"));
  for (const char* text : {"seed=", "seed= ", "seed=# 1"})
    CHECK_THAT(error_of(kFile, {text}), Contains("no value after '='"));
}

}  // namespace mgt::test
