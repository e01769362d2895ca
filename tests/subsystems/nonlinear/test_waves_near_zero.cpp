// Far from all motion in a long chain waves are subnormal numbers, which have few digits. Their steps must be found.

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::test_waves_near_zero {
namespace {

/// How many of the steps from rest under waves of these sizes fail.
int failures(const Component& part) {
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  constexpr int kLanes = 3;
  const std::vector<const Component*> parts(kLanes, &part);
  const auto batch = part.make_batch(parts);
  const auto waves = static_cast<std::size_t>(batch->wave_size());
  const auto stride = static_cast<std::size_t>(batch->stride());
  const std::vector<double> impedance(waves * stride, 1.7);
  batch->prepare(0.02, impedance.data());
  int failed = 0;
  for (const double size : {1e-300, 1e-306, 3e-309, 7e-315, 1e-320, 3 * kSmallest, kSmallest}) {
    AlignedVector record(batch->record_size()), next(batch->record_size());
    AlignedVector a(waves * stride, 0.0), b(waves * stride, 0.0);
    const std::vector<double> rest = part.default_state();
    for (int lane = 0; lane < kLanes; ++lane) {
      batch->set_state(lane, rest.data(), record.data());
      for (std::size_t k = 0; k < waves; ++k) {
        a[k * stride + static_cast<std::size_t>(lane)] =
            size * static_cast<double>(1 + lane) * (k % 2 == 0 ? 1.0 : -3.0);
      }
    }
    const LaneRange all{0, kLanes};
    for (int step = 0; step < 4; ++step) {
      batch->freeze(all, record.data(), nullptr);
      failed += batch->scatter(all, record.data(), a.data(), b.data()).ok() ? 0 : 1;
      for (int k = 0; k < 3; ++k) {
        failed += batch->inexact_scatter(all, record.data(), a.data(), b.data()).ok() ? 0 : 1;
      }
      failed +=
          batch->advance(all, record.data(), a.data(), next.data(), b.data(), {}).ok() ? 0 : 1;
      record.swap(next);
    }
  }
  return failed;
}

CataloguePart spring(const std::string& energy, const std::string& gradient = "mean_value") {
  return parts::port_hamiltonian({.states = {{"d", "m"}, {"e", "m"}},
                                  .ports = {{"left", Causality::flow_in, Domain::translation, 1},
                                            {"right", Causality::flow_in, Domain::translation, 1}},
                                  .energy = energy,
                                  .J = {{0, 0}, {0, 0}},
                                  .R = {{0, 0}, {0, 0.01}},
                                  .G = {{-1, 1}, {1, 0}},
                                  .discrete_gradient = gradient});
}

TEST(WavesNearZero, AreNoReasonForAStepToFail) {
  for (const char* const energy :
       {"25*d^2 + 100*d^4 + e^2", "25*d^2 + cosh(d) - 1 + e^2", "50*(sqrt(1 + d^2) - 1) + e^2",
        "50*(1 - cos(d)) + e^2", "25*d^2 + 25*e^2 + 10*d^2*e^2 + 20*d^4"}) {
    for (const char* const gradient : {"mean_value", "gonzalez", "itoh_abe"}) {
      const std::shared_ptr<const Component> part = spring(energy, gradient);
      EXPECT_EQ(failures(*part), 0) << energy << " by " << gradient;
    }
  }
}

TEST(WavesNearZero, NorForPartsOfTheCatalogue) {
  for (const PartType& type : catalogue()) {
    const std::unique_ptr<Component> part = make_part(type.name, type.example);
    if (part->signature().wave_size() == 0) continue;
    EXPECT_EQ(failures(*part), 0) << type.name;
  }
}

}  // namespace
}  // namespace portwave::test_waves_near_zero
