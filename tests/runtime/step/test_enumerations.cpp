#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_enumerations {
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

TEST(Enumerations, NorAreThoseOfMethodsWithoutWavesAndOfWatches) {
  for (const int number : {-1, 99}) {
    const auto refused = [&](auto method, auto member) {
      return refused_at([&](StepperOptions& options) {
        auto& value = member(method);
        value = static_cast<std::remove_reference_t<decltype(value)>>(number);
        options.method = method;
      });
    };
    using Dynamic = DynamicIteration;
    EXPECT_EQ(refused(
                  Dynamic{}, [](Dynamic & m) -> auto& { return m.kind; }),
              "/method/kind");
    EXPECT_EQ(refused(
                  Dynamic{}, [](Dynamic & m) -> auto& { return m.integrator; }),
              "/method/integrator");
    EXPECT_EQ(refused(
                  Dynamic{}, [](Dynamic & m) -> auto& { return m.metric; }),
              "/method/metric");
    EXPECT_EQ(refused(
                  Splitting{}, [](Splitting & m) -> auto& { return m.kind; }),
              "/method/kind");
    EXPECT_EQ(refused(
                  Splitting{}, [](Splitting & m) -> auto& { return m.coupling_flow; }),
              "/method/coupling_flow");
    EXPECT_EQ(refused_at([&](StepperOptions& options) {
                options.watches.resize(1);
                options.watches[0].direction = static_cast<Watch::Direction>(number);
              }),
              "/events/0/direction");
    EXPECT_EQ(refused_at([&](StepperOptions& options) {
                options.watches.resize(1);
                options.watches[0].of.kind = static_cast<Sensor::Kind>(number);
              }),
              "/events/0/of");
    EXPECT_THROW((void)block::trajectory({{0.0, 1.0}}, static_cast<block::TrajectoryShape>(number)),
                 ConfigError);
  }
}

TEST(Enumerations, NorAreThoseOfRecorders) {
  const testing::TemporaryFolder folder;
  for (const int number : {-1, 99}) {
    RecordingOptions format;
    format.format = static_cast<ResultFormat>(number);
    EXPECT_THROW(FileRecorder(folder / "out", format), ConfigError);
    RecordingOptions quantity;
    quantity.quantities.resize(1);
    quantity.quantities[0].kind = static_cast<Quantity::Kind>(number);
    EXPECT_THROW(FileRecorder(folder / "out", quantity), ConfigError);
  }
  RecordingOptions endless;
  endless.last_s = std::numeric_limits<double>::infinity();
  EXPECT_THROW(FileRecorder(folder / "out", endless), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_NO_THROW(FileRecorder(folder / "out", RecordingOptions{}));
}

}  // namespace
}  // namespace portwave::test_enumerations
