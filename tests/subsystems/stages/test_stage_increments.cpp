// What batches with stages say of how their stages moved: that it adds up to the step, and that
// batches that solve the same step in different ways say the same.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_stage_increments {
namespace {

struct Moved {
  std::vector<double> start, end, increments;  // of lane 0, of all lanes by row
};

/// One step of `batch`, all of whose lanes start alike and see the same waves.
Moved moved(StepBatch& batch, unsigned seed, double step_s) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> some(-1.0, 1.0);
  const int p = batch.wave_size(), n = batch.state_size(), lanes = batch.lanes();
  std::vector<double> gamma(static_cast<std::size_t>(batch.wave_count()), 1.0);
  std::vector<double> a(gamma.size(), 0.0), b(gamma.size(), 0.0);
  Moved out;
  for (int i = 0; i < n; ++i) out.start.push_back(0.3 * some(random));
  for (int j = 0; j < p; ++j) {
    const double impedance = std::exp(some(random)), wave = some(random);
    for (int l = 0; l < lanes; ++l) {
      gamma[static_cast<std::size_t>(j * batch.stride() + l)] = impedance;
      a[static_cast<std::size_t>(j * batch.stride() + l)] = wave;
    }
  }
  batch.expect({.stage_increments = true});
  batch.prepare(step_s, gamma.data());
  AlignedVector record(batch.record_size(), 0.0), next(batch.record_size(), 0.0);
  for (int l = 0; l < lanes; ++l) batch.set_state(l, out.start.data(), record.data());
  const LaneRange all{0, lanes};
  batch.freeze(all, record.data(), nullptr);
  EXPECT_TRUE(batch.scatter(all, record.data(), a.data(), b.data()).ok());
  EXPECT_TRUE(batch.advance(all, record.data(), a.data(), next.data(), b.data(), {}).ok());
  out.end.resize(out.start.size());
  batch.get_state(lanes - 1, next.data(), out.end.data());
  AlignedVector increments(static_cast<std::size_t>(stages_of(batch) * n * batch.stride()), 0.0);
  stage_increments(batch, all, record.data(), a.data(), next.data(), increments.data());
  for (int row = 0; row < stages_of(batch) * n; ++row) {
    out.increments.push_back(
        increments[static_cast<std::size_t>(row * batch.stride() + lanes - 1)]);
  }
  return out;
}

/// x⁺ − x = Σ √bᵢ δᵢ
void expect_to_add_up(const Moved& of, int stages) {
  const StageRule& rule = gauss_stages(stages);
  for (std::size_t i = 0; i < of.start.size(); ++i) {
    double sum = 0.0;
    for (int k = 0; k < stages; ++k) {
      const auto stage = static_cast<std::size_t>(k);
      sum += std::sqrt(rule.b[stage]) * of.increments[stage * of.start.size() + i];
    }
    EXPECT_NEAR(sum, of.end[i] - of.start[i], 1e-13) << "state " << i;
  }
}

void expect_equal(const Moved& one, const Moved& other, double tolerance) {
  ASSERT_EQ(one.increments.size(), other.increments.size());
  for (std::size_t i = 0; i < one.increments.size(); ++i) {
    EXPECT_NEAR(one.increments[i], other.increments[i], tolerance) << "row " << i;
  }
}

/// A part without the solver of its own, so that the general one steps it.
class WithoutOwnSolver final : public Component {
 public:
  explicit WithoutOwnSolver(std::shared_ptr<const Component> part)
      : Component(part->signature()), part_(std::move(part)) {}
  Capabilities capabilities() const override { return part_->capabilities(); }
  const Subsystem* port_hamiltonian() const override { return part_->port_hamiltonian(); }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const>) const override {
    const Component* own[] = {part_.get()};
    return part_->make_batch(own);
  }

 private:
  std::shared_ptr<const Component> part_;
};

/// The same linear part with dense or sparse step maps.
std::shared_ptr<const Component> linear_part(StepMapStorage storage) {
  const auto chain = mass_spring_damper_chain({.masses = 3, .damping_Ns_per_m = 0.2});
  return std::make_shared<const LinearPortHamiltonian>(
      chain->signature(), chain->structure(), *chain->linear_form().Q,
      LinearPortHamiltonian::Options{.storage = storage});
}

Moved moved_with_stages(const std::shared_ptr<const Component>& part, int stages, int lanes) {
  const auto staged = staged_part(part, stages);
  const std::vector<const Component*> components(static_cast<std::size_t>(lanes), staged.get());
  const auto batch = staged->make_batch(components);
  EXPECT_EQ(stages_of(*batch), stages);
  const Moved own = moved(*batch, 7, 0.05);
  expect_to_add_up(own, stages);
  return own;
}

TEST(StageIncrements, OfEveryBatchAddUpAndAgree) {
  using Part = std::shared_ptr<const Component>;
  const std::pair<Part, Part> pairs[] = {
      {duffing_oscillator({}), std::make_shared<const WithoutOwnSolver>(duffing_oscillator({}))},
      {duffing_node({}), std::make_shared<const WithoutOwnSolver>(duffing_node({}))},
      {linear_part(StepMapStorage::dense), linear_part(StepMapStorage::sparse)}};
  for (const int stages : {2, 3}) {
    for (const auto& [part, other] : pairs) {
      SCOPED_TRACE(part->signature().type + ", " + std::to_string(stages) + " stages");
      const Moved alone = moved_with_stages(part, stages, 1);
      expect_equal(alone, moved_with_stages(other, stages, 1), 1e-12);
      expect_equal(alone, moved_with_stages(part, stages, 11), 1e-15);
    }
  }
}

/// One stage: the difference of the states.
TEST(StageIncrements, OfOneStageAreTheStep) {
  const std::shared_ptr<const Subsystem> part = duffing_node({});
  const std::vector<const Component*> lanes(9, part.get());
  const auto batch = part->make_batch(lanes);
  EXPECT_EQ(stages_of(*batch), 1);
  const Moved own = moved(*batch, 3, 0.02);
  for (std::size_t i = 0; i < own.start.size(); ++i) {
    EXPECT_EQ(own.increments[i], own.end[i] - own.start[i]);
  }
}

TEST(StageIncrements, TheInverseOfTheButcherMatrix) {
  for (const int stages : {1, 2, 3}) {
    const StageRule& rule = gauss_stages(stages);
    for (int i = 0; i < stages; ++i) {
      for (int j = 0; j < stages; ++j) {
        double sum = 0.0;
        for (int k = 0; k < stages; ++k) {
          sum +=
              rule.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] * rule.inverse(k, j);
        }
        EXPECT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-14) << stages << " " << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_stage_increments
