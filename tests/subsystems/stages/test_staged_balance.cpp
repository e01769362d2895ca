// Several stages of parts whose energy is no polynomial: quadrature of their gradients is not exact, the balance is.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_staged_balance {
namespace {

/// A mass of 1 kg on a spring given by its energy V(x), with a free hook.
std::shared_ptr<const Component> on_spring(const std::string& V) {
  return make_part(
      "port_hamiltonian",
      {{"states", std::vector<StateVariable>{{"x", "m"}, {"p", "kg m/s"}}},
       {"ports", std::vector<Port>{{"hook", Causality::effort_in, Domain::translation, 1}}},
       {"energy", "p^2/2 + " + V},
       {"J", MatrixRows{{0.0, 1.0}, {-1.0, 0.0}}},
       {"G", MatrixRows{{0.0}, {1.0}}}});
}

struct Balance {
  double worst = 0.0;  ///< of change − supply + dissipation, beside the energies of its step
  double most_numerical_J = 0.0;
  std::vector<double> end;
  int failed = 0;
};

/// `steps` steps under waves that push a little.
Balance balance_of(const Component& plain, const StageRule& rule, double step_s, int steps,
                   std::vector<double> x) {
  const auto part =
      staged_part(std::shared_ptr<const Component>(&plain, [](const Component*) {}), rule);
  const Component* parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const auto p = static_cast<std::size_t>(batch->wave_size());
  batch->prepare(step_s, std::vector<double>(p, 0.7).data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x.data(), record.data());
  std::vector<double> a(p), b(p), from = x;
  Balance out;
  const Subsystem& physics = *plain.port_hamiltonian();
  for (int k = 0; k < steps; ++k) {
    for (std::size_t j = 0; j < p; ++j)
      a[j] = 0.1 * std::sqrt(step_s) * std::sin(0.37 * k + static_cast<double>(j));
    batch->freeze({0, 1}, record.data(), nullptr);
    StepEnergy energy;
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                       {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J,
                        &energy.numerical_dissipation_J});
    if (!status.ok()) {
      ++out.failed;
      break;
    }
    record.swap(next);
    batch->get_state(0, record.data(), x.data());
    double supplied = 0.0, waves = 0.0;
    for (std::size_t j = 0; j < p; ++j) {
      supplied += 0.5 * (a[j] * a[j] - b[j] * b[j]);
      waves += 0.5 * (a[j] * a[j] + b[j] * b[j]);
    }
    const double before = physics.storage(from.data()), after = physics.storage(x.data());
    // H is known to ε of its terms at usual states, and is corrected no further.
    const double size = std::abs(before) + std::abs(after) + waves + energy.dissipated_J +
                        0.1 * physics.storage_terms();
    out.worst =
        std::max(out.worst, std::abs(after - before - supplied + energy.dissipated_J) / size);
    out.most_numerical_J = std::max(out.most_numerical_J, energy.numerical_dissipation_J);
    from = x;
  }
  out.end = x;
  return out;
}

TEST(StagedBalance, ClosesWhereTheEnergyIsNoPolynomial) {
  for (const char* V :
       {"10*sqrt(1 + 100*x^2)", "log(1 + 50*x^2)", "exp(3*x) - 3*x", "5*x^2/(1 + 9*abs(x)^3)"}) {
    const auto part = on_spring(V);
    for (int stages = 2; stages <= kMostStages; ++stages) {
      for (const bool is_damped : {false, true}) {
        const StageRule plain = stage_rule(stages, StageNodes::gauss);
        const StageRule rule = is_damped ? damped(plain) : plain;
        for (const double step_s : {1e-3, 0.01, 0.05, 0.2}) {
          SCOPED_TRACE(std::string(V) + ", " + std::to_string(stages) +
                       " stages, h = " + std::to_string(step_s) + (is_damped ? ", damped" : ""));
          const Balance seen = balance_of(*part, rule, step_s, 100, {0.9, 0.2});
          EXPECT_EQ(seen.failed, 0);
          EXPECT_LE(seen.worst, 2e-13);
          if (!is_damped) {
            EXPECT_EQ(seen.most_numerical_J, 0.0);
          }
        }
      }
    }
  }
}

/// A part without the solvers of its own, so that the general one steps it.
class WithoutOwnSolver final : public Component {
 public:
  explicit WithoutOwnSolver(std::shared_ptr<const Component> part)
      : Component(part->signature()), part_(std::move(part)) {}
  Capabilities capabilities() const override { return part_->capabilities(); }
  const Subsystem* port_hamiltonian() const override { return part_->port_hamiltonian(); }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return part_->make_batch(parts);
  }

 private:
  std::shared_ptr<const Component> part_;
};

/// Waves and loss of one step under `a`.
std::vector<double> answer_of(std::shared_ptr<const Component> plain, const StageRule& rule,
                              const std::vector<double>& a) {
  const auto part = staged_part(std::move(plain), rule);
  const Component* parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  batch->prepare(1e-3, std::vector<double>(a.size(), 0.7).data());
  AlignedVector record(batch->record_size()), next(record);
  std::vector<double> b(a.size());
  batch->freeze({0, 1}, record.data(), nullptr);
  StepEnergy energy;
  EXPECT_TRUE(batch
                  ->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                            {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J})
                  .ok());
  b.push_back(energy.dissipated_J);
  return b;
}

// The stages of what has no state are solved one by one.
TEST(StagedResistances, AgreeWithTheGeneralSolver) {
  const std::shared_ptr<const Component> all[] = {
      make_part("diode", {{"saturation_current_A", 1e-9}}),
      make_part("valve", {{"nominal_flow_m3_per_s", 0.01},
                          {"nominal_pressure_Pa", 1.0},
                          {"laminar_pressure_Pa", 0.1}}),
      make_part("coulomb_damper", {{"friction_N", 2.0}, {"creep_speed_m_per_s", 0.01}})};
  for (const std::shared_ptr<const Component>& part : all) {
    const auto general = std::make_shared<const WithoutOwnSolver>(part);
    for (int stages = 2; stages <= kMostStages; ++stages) {
      for (const StageRule& rule :
           {stage_rule(stages, StageNodes::gauss), damped(stage_rule(stages, StageNodes::radau))}) {
        for (const double size : {1e-6, 0.01, 1.0}) {
          std::vector<double> a;
          for (int i = 0; i < stages; ++i) a.push_back(size * (1.0 - 0.7 * i));
          const std::vector<double> own = answer_of(part, rule, a);
          const std::vector<double> other = answer_of(general, rule, a);
          const std::vector<double> apart =
              answer_of(part,
                        stage_rule(stages, rule == gauss_stages(stages) ? StageNodes::radau
                                                                        : StageNodes::gauss),
                        a);
          double off = 0.0;
          for (std::size_t i = 0; i < own.size(); ++i) {
            const double scale = i < a.size() ? size : size * size;
            EXPECT_NEAR(own[i], other[i], 1e-12 * scale) << part->signature().type << ' ' << size;
            off = std::max(off, std::abs(own[i] - apart[i]) / scale);
          }
          if (size == 1.0) {
            EXPECT_GT(off, 1e-6) << part->signature().type;  // control: weights count
          }
        }
      }
    }
  }
}

/// The correction does not cost the order: beside steps a thousand times as short.
TEST(StagedBalance, KeepsTheOrderOfItsStages) {
  const auto part = on_spring("10*sqrt(1 + 100*x^2)");
  const auto end_of = [&](int stages, double step_s) {
    const int steps = static_cast<int>(std::lround(0.4 / step_s));
    const auto staged = staged_part(part, stage_rule(stages, StageNodes::gauss));
    const Component* parts[] = {staged.get()};
    const auto batch = staged->make_batch(parts);
    const auto p = static_cast<std::size_t>(batch->wave_size());
    batch->prepare(step_s, std::vector<double>(p, 0.7).data());
    AlignedVector record(batch->record_size()), next(batch->record_size());
    double x[] = {0.5, 0.0};
    batch->set_state(0, x, record.data());
    const std::vector<double> a(p, 0.0);
    std::vector<double> b(p);
    for (int k = 0; k < steps; ++k) {
      batch->freeze({0, 1}, record.data(), nullptr);
      EXPECT_TRUE(batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {}).ok());
      record.swap(next);
    }
    batch->get_state(0, record.data(), x);
    return std::vector<double>{x[0], x[1]};
  };
  const std::vector<double> reference = end_of(3, 1e-4);
  for (int stages = 2; stages <= 3; ++stages) {
    const auto error_of = [&](double step_s) {
      const std::vector<double> end = end_of(stages, step_s);
      return std::hypot(end[0] - reference[0], 0.01 * (end[1] - reference[1]));
    };
    const double order = std::log2(error_of(4e-3) / error_of(2e-3));
    EXPECT_GE(order, 2.0 * stages - 0.6) << stages;
  }
}

}  // namespace
}  // namespace portwave::test_staged_balance
