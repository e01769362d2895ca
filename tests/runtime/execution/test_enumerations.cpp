#include <functional>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "portwave/runtime/execution/stepper.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "support/oscillator_pair.hpp"

namespace portwave {
namespace {

/// Where the options are refused; "" if they are not.
std::string refused_at(const std::function<void(StepperOptions&)>& change) {
  const Scenario scenario = testing::pair_scenario();
  StepperOptions options = testing::pair_options(3);
  change(options);
  try {
    Stepper stepper(scenario.system, options);
  } catch (const ConfigError& error) {
    return error.issues().front().where;
  }
  return {};
}

TEST(Enumerations, NumbersThatAreNoneOfThemAreRefused) {
  for (const int number : {-1, 99}) {
    const auto refused = [&](auto member) {
      return refused_at([&](StepperOptions& options) {
        auto& value = member(options);
        value = static_cast<std::remove_reference_t<decltype(value)>>(number);
      });
    };
    using Options = StepperOptions;
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.executor; }), "/executor");
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.certify; }), "/certify");
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.grain.kind; }), "/grain");
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.method.waves().kind; }), "/method/kind");
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.method.waves().impedance_kind; }),
              "/method/impedance");
    EXPECT_EQ(refused([](Options & o) -> auto& { return o.method.waves().start; }),
              "/method/start");
  }
  EXPECT_EQ(refused_at([](StepperOptions&) {}), "");
}

}  // namespace
}  // namespace portwave
