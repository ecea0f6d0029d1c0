#include "test.h"

#include "config/reader.h"
#include "core/error.h"
#include "optim/entry.h"

#include "torch_pch.h"

using namespace mgt;

namespace {

config::Config config_of(const std::string& section) {
  const config::Schema schema{.top = {}, .sections = {optim::section()}};
  return config::resolve(schema, {"test.yaml", "optimizer: " + section});
}

// One number followed by hand: `rule(parameter, gradient)` is one step of the textbook.
void follow(const std::string& section, const std::function<double(double, double)>& rule) {
  INFO(section);
  const config::Config config = config_of(section);
  at::Tensor parameter = at::full({1}, 1.0, at::kDouble);
  const auto optimizer = optim::make(config, optim::whole(parameter));
  double wanted = 1.0;
  for (int step = 0; step < 6; ++step) {
    const double gradient = 0.3 * wanted + 0.1 * step - 0.2;
    at::Tensor given = at::full({1}, gradient, at::kDouble);
    optimizer->step(parameter, given, 0.1, step);
    wanted = rule(wanted, gradient);
    REQUIRE(parameter.item<double>() == Approx(wanted).epsilon(1e-13));
  }
}

}  // namespace

TEST_CASE("SGD follows its formula (S-29, S-51)") {
  follow("sgd", [](double p, double g) { return p - 0.1 * g; });
  follow("{name: sgd, weight_decay: 0.01}", [](double p, double g) { return p - 0.1 * (g + 0.01 * p); });
  follow("{name: sgd, momentum: 0.9, dampening: 0.5}", [m = 0.0, first = true](double p, double g) mutable {
    m = first ? g : 0.9 * m + 0.5 * g;
    first = false;
    return p - 0.1 * m;
  });
  follow("{name: sgd, momentum: 0.9, nesterov: true}", [m = 0.0](double p, double g) mutable {
    m = 0.9 * m + g;
    return p - 0.1 * (g + 0.9 * m);
  });
}

TEST_CASE("Adam and AdamW follow their papers (S-51)") {
  const auto adam = [](bool decoupled, double decay) {
    return [=, m = 0.0, v = 0.0, t = 0](double p, double g) mutable {
      ++t;
      if (decoupled)
        p -= 0.1 * decay * p;
      else
        g += decay * p;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
      return p - 0.1 * m_hat / (std::sqrt(v_hat) + 1e-8);
    };
  };
  follow("adam", adam(false, 0));
  follow("{name: adam, weight_decay: 0.1}", adam(false, 0.1));
  follow("{name: adamw, weight_decay: 0.1}", adam(true, 0.1));
}

TEST_CASE("Nesterov without momentum is refused, and AdamW has no momentum") {
  const auto message = [](const std::string& section) -> std::string {
    try {
      config_of(section);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  REQUIRE_THAT(message("{name: sgd, nesterov: true}"), Catch::Matchers::Contains("optimizer.nesterov"));
  REQUIRE_THAT(message("{name: adamw, momentum: 0.9}"), Catch::Matchers::Contains("optimizer.momentum"));
}
