// What Duffing parts say that a step may have rounded off: by the terms of their energies, as parts that
// know nothing of it are judged, for all lanes of a group and one by one.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::test_duffing_rounding {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// |H| + Σ|∂H/∂xᵢ xᵢ|, from the part's own equations.
double terms_of(const Subsystem& part, const std::vector<double>& x) {
  std::vector<double> gradient(x.size());
  part.gradient(x.data(), gradient.data());
  double sum = std::abs(part.storage(x.data()));
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::abs(gradient[i] * x[i]);
  return sum;
}

using Made = std::unique_ptr<Subsystem> (*)(const DuffingOscillatorParameters&);

void expect_terms(Made make, int lanes, double offset, double wave) {
  std::mt19937_64 generator(17);
  std::normal_distribution<double> normal;
  std::vector<std::unique_ptr<Subsystem>> own;
  std::vector<const Component*> parts;
  for (int l = 0; l < lanes; ++l) {
    DuffingOscillatorParameters p;
    p.mass_kg = 1.0 + 0.1 * l;
    p.stiffness_N_per_m = 40.0 - l;
    p.damping_Ns_per_m = 0.2;
    p.cubic_stiffness_N_per_m3 = 3.0 + l;
    p.coupling_stiffness_N_per_m = 20.0;
    p.coupling_damping_Ns_per_m = 0.1;
    own.push_back(make(p));
    parts.push_back(own.back().get());
  }
  const auto batch = parts[0]->make_batch(parts);
  std::vector<double> impedance(static_cast<std::size_t>(batch->wave_count()), 0.7);
  batch->prepare(0.01, impedance.data());
  AlignedVector record(batch->record_size(), 0.0), next = record;
  AlignedVector a(static_cast<std::size_t>(batch->wave_count()), 0.0), b = a;
  const auto states = static_cast<std::size_t>(batch->state_size());
  for (int l = 0; l < lanes; ++l) {
    std::vector<double> x(states);
    for (double& value : x) value = offset + normal(generator);
    batch->set_state(l, x.data(), record.data());
    for (int j = 0; j < batch->wave_size(); ++j) {
      a[static_cast<std::size_t>(j * batch->stride() + l)] = wave * normal(generator);
    }
  }
  batch->freeze({0, lanes}, record.data(), nullptr);
  ASSERT_TRUE(batch->advance({0, lanes}, record.data(), a.data(), next.data(), b.data(), {}).ok());
  for (int l = 0; l < lanes; ++l) {
    double stored = 0.0, incident = 0.0;
    for (const AlignedVector* of : {&record, &next}) {
      std::vector<double> x(states);
      batch->get_state(l, of->data(), x.data());
      stored += terms_of(*own[static_cast<std::size_t>(l)], x);
    }
    for (int j = 0; j < batch->wave_size(); ++j) {
      const double own_wave = a[static_cast<std::size_t>(j * batch->stride() + l)];
      incident += own_wave * own_wave;
    }
    const double expected = 64.0 * kEpsilon * std::max(stored, incident);
    const double told =
        batch->roundings()->step_rounding(l, record.data(), a.data(), next.data()).value();
    EXPECT_NEAR(told, expected, 1e-13 * expected) << "lane " << l;
    std::array<double, kLaneGroup> bound{};
    ASSERT_TRUE(batch->roundings()->step_rounding_bounds(l, record.data(), a.data(), next.data(),
                                                         bound.data()));
    const int first = l / batch->lane_group() * batch->lane_group();
    EXPECT_EQ(bound[static_cast<std::size_t>(l - first)], told);
    std::array<double, kLaneGroup> group{};
    if (lanes == 1) continue;
    ASSERT_TRUE(
        batch->roundings()->step_roundings(l, record.data(), a.data(), next.data(), group.data()));
    EXPECT_EQ(group[static_cast<std::size_t>(l - first)], told);
  }
}

TEST(DuffingRounding, IsThatOfTheTermsOfItsEnergies) {
  for (const int lanes : {1, 11}) {
    for (const double offset : {0.0, 1e6}) {
      for (const double wave : {1e-3, 1.0, 1e9}) {
        expect_terms(duffing_node, lanes, offset, wave);
        expect_terms(duffing_oscillator, lanes, offset, wave);
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_duffing_rounding
