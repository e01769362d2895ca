// Derivatives that exported FMUs tell, beside differences of whole steps by an importer, and by hand.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"

namespace portwave::test_fmu_derivatives {
namespace {

using fmi::kDiscard;
using fmi::kError;
using fmi::kOk;
using testing::Exported;
using testing::exported_oscillators;
using testing::RawFmu;
using References = std::vector<std::uint32_t>;

int directional(RawFmu& raw, int version, const References& unknowns, const References& knowns,
                const std::vector<double>& seed, std::vector<double>& out) {
  out.assign(unknowns.size(), std::nan(""));
  if (version == 2) {
    using Function = int (*)(void*, const std::uint32_t*, std::size_t, const std::uint32_t*,
                             std::size_t, const double*, double*);
    return raw.function<Function>("fmi2GetDirectionalDerivative")(
        raw.instance(), unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(),
        out.data());
  }
  using Function = int (*)(void*, const std::uint32_t*, std::size_t, const std::uint32_t*,
                           std::size_t, const double*, std::size_t, double*, std::size_t);
  return raw.function<Function>("fmi3GetDirectionalDerivative")(
      raw.instance(), unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(),
      seed.size(), out.data(), out.size());
}

class FmuDerivatives : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<double> read(RawFmu& raw, const References& which) {
    std::vector<double> out;
    EXPECT_EQ(raw.get(which, out), kOk) << raw.log;
    return out;
  }
  std::vector<double> derivatives(RawFmu& raw, const References& unknowns, const References& knowns,
                                  const std::vector<double>& seed) const {
    std::vector<double> out;
    EXPECT_EQ(directional(raw, GetParam(), unknowns, knowns, seed, out), kOk) << raw.log;
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(Fmi, FmuDerivatives, ::testing::Values(2, 3));

/// A mass of 2 kg, whose port is free and whose force is an input.
std::unique_ptr<Exported> mass(int version, const std::string& more = "") {
  const std::string text = R"({"name": "mass", "time": {"step_s": 0.01, "end_s": 1}, "subsystems": [
    {"name": "mass", "type": "mass", "parameters": {"mass_kg": 2}, "inputs": {"force": {"kind": "settable"}}})" +
                           more + "]}";
  FmuExportOptions options;
  options.fmi = version;
  options.ports = {"mass.port"};
  options.outputs = {"mass.position", "mass.velocity", "energy.supplied"};
  options.parameters = {"mass.mass_kg"};
  return std::make_unique<Exported>(ScenarioText{text, "mass.json", {}}, options);
}

TEST_P(FmuDerivatives, AreThoseOfAMassByHand) {
  const auto fmu = mass(GetParam());
  const auto raw = fmu->started();
  constexpr double h = 0.02, m = 2.0;  // two macro-steps
  ASSERT_EQ(raw->set({(*fmu)["mass.force"]}, {3.0}), kOk);
  ASSERT_EQ(raw->step(0.0, h), kOk) << raw->log;
  const References unknowns = {(*fmu)["mass.velocity"], (*fmu)["mass.position"],
                               (*fmu)["mass.port.flow_integral"], (*fmu)["energy.supplied"]};
  const auto before = read(*raw, unknowns);
  const auto by_force = derivatives(*raw, unknowns, {(*fmu)["mass.force"]}, {1.0});
  EXPECT_NEAR(by_force[0], h / m, 1e-12);
  EXPECT_NEAR(by_force[1], h * h / (2.0 * m), 1e-14);
  EXPECT_NEAR(by_force[2], -h * h / (2.0 * m), 1e-14);
  EXPECT_NEAR(by_force[3], 3.0 * h * h / m, 1e-10);  // F²h²/2m
  // Effort takes away what force gives; a mass of another size has another speed.
  const auto both =
      derivatives(*raw, unknowns, {(*fmu)["mass.force"], (*fmu)["mass.port.effort"]}, {1.0, 0.5});
  EXPECT_NEAR(both[0], 0.5 * h / m, 1e-12);
  // One that is named twice has the sum of both seeds, also where that is nothing.
  const std::uint32_t force = (*fmu)["mass.force"];
  EXPECT_NEAR(derivatives(*raw, unknowns, {force, force}, {1.0, 0.5})[0], 1.5 * h / m, 1e-12);
  EXPECT_EQ(derivatives(*raw, unknowns, {force, force}, {1.0, -1.0})[0], 0.0);
  const auto by_mass = derivatives(*raw, unknowns, {(*fmu)["mass.mass_kg"]}, {1.0});
  EXPECT_NEAR(by_mass[0], -3.0 * h / (m * m), 1e-9);
  EXPECT_EQ(read(*raw, unknowns), before);  // bit by bit
  EXPECT_EQ(raw->log, "");
}

TEST_P(FmuDerivatives, AreThoseOfDifferencesOfWholeSteps) {
  const Exported& fmu = exported_oscillators(GetParam());
  const auto raw = fmu.started();
  const References unknowns = {fmu["A.q1"], fmu["A.v1"], fmu["B.q2"], fmu["B.v2"],
                               fmu["energy.stored"]};
  for (int n = 0; n < 20; ++n) ASSERT_EQ(raw->step(0.01 * n, 0.01), kOk);
  void* start = nullptr;
  ASSERT_EQ(raw->save(start), kOk);
  const auto stepped = [&](std::uint32_t known, double value) {
    EXPECT_EQ(raw->restore(start), kOk);
    EXPECT_EQ(raw->set({known}, {value}), kOk);
    EXPECT_EQ(raw->step(0.2, 0.03), kOk) << raw->log;
    return read(*raw, unknowns);
  };
  for (const auto& [name, value, change] :
       {std::tuple<const char*, double, double>{"B.force", 1.5, 0.1},
        {"A.mass_kg", 8.0, 1e-3},
        {"B.stiffness_N_per_m", 50.0, 1e-2}}) {
    const std::uint32_t known = fmu[name];
    const auto above = stepped(known, value + change), below = stepped(known, value - change);
    const auto here = stepped(known, value);
    const auto own = derivatives(*raw, unknowns, {known}, {1.0});
    EXPECT_EQ(read(*raw, unknowns), here) << name;
    double largest = 0.0;
    for (const double each : own) largest = std::max(largest, std::abs(each));
    EXPECT_GT(largest, 1e-5) << name;  // the control: it does matter
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double difference = (above[i] - below[i]) / (2.0 * change);
      EXPECT_NEAR(own[i], difference, 1e-5 * largest) << name << " " << i;
    }
    // What follows is the same as if nobody had asked.
    ASSERT_EQ(raw->step(0.23, 0.01), kOk);
    const auto after = read(*raw, unknowns);
    static_cast<void>(stepped(known, value));
    ASSERT_EQ(raw->step(0.23, 0.01), kOk);
    EXPECT_EQ(read(*raw, unknowns), after) << name;
  }
  EXPECT_EQ(raw->release(start), kOk);
}

TEST_P(FmuDerivatives, AreOfAStepThatThereWas) {
  const auto fmu = mass(GetParam());
  const auto raw = fmu->started();
  const References velocity = {(*fmu)["mass.velocity"]}, force = {(*fmu)["mass.force"]};
  std::vector<double> out;
  EXPECT_EQ(directional(*raw, GetParam(), velocity, force, {1.0}, out), kDiscard);
  EXPECT_NE(raw->log.find("derivatives are those of the last step"), std::string::npos) << raw->log;
  void* state = nullptr;
  ASSERT_EQ(raw->save(state), kOk);
  ASSERT_EQ(raw->step(0.0, 0.01), kOk);
  EXPECT_EQ(directional(*raw, GetParam(), velocity, force, {1.0}, out), kOk);
  EXPECT_EQ(out[0], derivatives(*raw, velocity, force, {1.0})[0]);  // again the same
  ASSERT_EQ(raw->restore(state), kOk);
  EXPECT_EQ(directional(*raw, GetParam(), velocity, force, {1.0}, out), kDiscard);
  ASSERT_EQ(raw->step(0.0, 0.01), kOk);
  // By what cannot be set, of what is no output, and of what there is not.
  EXPECT_EQ(directional(*raw, GetParam(), velocity, velocity, {1.0}, out), kError);
  EXPECT_EQ(directional(*raw, GetParam(), force, force, {1.0}, out), kError);
  EXPECT_EQ(directional(*raw, GetParam(), velocity, {99}, {1.0}, out), kError);
  EXPECT_EQ(directional(*raw, GetParam(), velocity, force, {std::nan("")}, out), kDiscard);
  EXPECT_EQ(derivatives(*raw, velocity, {}, {})[0], 0.0);
  EXPECT_EQ(raw->release(state), kOk);
}

TEST_P(FmuDerivatives, SayWhereThereIsAKink) {
  // A contact that a force of more than 0 N opens, and less closes.
  FmuExportOptions options;
  options.fmi = GetParam();
  options.outputs = {"mass.velocity"};
  const std::string text = R"({"name": "contact", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [
      {"name": "mass", "type": "mass", "parameters": {"mass_kg": 2},
       "inputs": {"force": {"kind": "settable"}}},
      {"name": "wall", "type": "contact",
       "parameters": {"force_N": 1e3, "compression_m": 1e-3}}],
    "couplings": [{"kind": "connection", "ports": ["mass.port", "wall.face"]}]})";
  const Exported fmu(ScenarioText{text, "contact.json", {}}, options);
  const auto raw = fmu.started();
  const References velocity = {fmu["mass.velocity"]}, force = {fmu["mass.force"]};
  ASSERT_EQ(raw->step(0.0, 0.01), kOk) << raw->log;
  std::vector<double> out;
  EXPECT_EQ(directional(*raw, GetParam(), velocity, force, {1.0}, out), kDiscard) << out[0];
  EXPECT_NE(raw->log.find("\"mass.velocity\" has no derivative"), std::string::npos) << raw->log;
  // The control: away from it there is one, on either side another one.
  std::vector<double> sides;
  for (const double own : {-5.0, 5.0}) {
    const auto other = fmu.started();
    ASSERT_EQ(other->set(force, {own}), kOk);
    ASSERT_EQ(other->step(0.0, 0.01), kOk);
    sides.push_back(derivatives(*other, velocity, force, {1.0})[0]);
  }
  EXPECT_GT(std::abs(sides[0] - sides[1]), 0.1 * std::abs(sides[1]));
}

TEST(FmuAdjointDerivatives, AreTheTransposeOfDirectionalOnes) {
  const Exported& fmu = exported_oscillators(3);
  const auto raw = fmu.started();
  ASSERT_EQ(raw->step(0.0, 0.02), kOk);
  const References unknowns = {fmu["A.v1"], fmu["B.v2"]},
                   knowns = {fmu["B.force"], fmu["A.mass_kg"]};
  std::vector<double> matrix, column;
  for (const std::uint32_t known : knowns) {
    ASSERT_EQ(directional(*raw, 3, unknowns, {known}, {1.0}, column), kOk) << raw->log;
    matrix.insert(matrix.end(), column.begin(), column.end());
  }
  using Function = int (*)(void*, const std::uint32_t*, std::size_t, const std::uint32_t*,
                           std::size_t, const double*, std::size_t, double*, std::size_t);
  const auto adjoint = raw->function<Function>("fmi3GetAdjointDerivative");
  const std::vector<double> seed = {2.0, -3.0};
  std::vector<double> out(2);
  ASSERT_EQ(
      adjoint(raw->instance(), unknowns.data(), 2, knowns.data(), 2, seed.data(), 2, out.data(), 2),
      kOk);
  EXPECT_EQ(out[0], 2.0 * matrix[0] - 3.0 * matrix[1]);
  EXPECT_EQ(out[1], 2.0 * matrix[2] - 3.0 * matrix[3]);
  EXPECT_NE(out[0], 0.0);
  // Lengths have to fit.
  EXPECT_EQ(
      adjoint(raw->instance(), unknowns.data(), 2, knowns.data(), 2, seed.data(), 1, out.data(), 2),
      kError);
  EXPECT_EQ(
      adjoint(raw->instance(), unknowns.data(), 2, knowns.data(), 2, nullptr, 2, out.data(), 2),
      kError);
}

}  // namespace
}  // namespace portwave::test_fmu_derivatives
