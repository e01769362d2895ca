// Parts that let go or stop: a contact pushes and never pulls, the contacts of a switch travel between
// two stops.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_one_sided_parts {
namespace {

/// Steps of a part from x, its ports driven by waves that follow a fixed sequence; the smallest effort
/// along `sign` at any port and step, and the largest.
struct Efforts {
  double least = 0.0, most = 0.0;
  double worst_balance = 0.0;  ///< beside the energies of its step
};

Efforts efforts_of(const Component& part, std::unique_ptr<StepBatch> batch, double start,
                   double step_s, double impedance, const std::vector<double>& direction,
                   double push_N) {
  const int p = batch->wave_size();
  batch->prepare(step_s, std::vector<double>(static_cast<std::size_t>(p), impedance).data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, &start, record.data());
  Efforts out;
  std::vector<double> a(static_cast<std::size_t>(p)), b(a);
  for (int k = 0; k < 200; ++k) {
    batch->freeze({0, 1}, record.data(), nullptr);
    const double load = push_N * std::sin(0.37 * k) * std::cos(0.011 * k * k);
    double in = 0.0, back = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      a[j] = load * direction[j] / std::sqrt(2.0 * impedance / step_s);
    }
    StepEnergy energy;
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                       {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J});
    EXPECT_TRUE(status.ok()) << part.signature().type << " in step " << k << " of " << step_s;
    if (!status.ok()) break;
    double effort = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      effort += direction[j] * std::sqrt(impedance / (2.0 * step_s)) * (a[j] + b[j]);
      in += 0.5 * a[j] * a[j];
      back += 0.5 * b[j] * b[j];
    }
    out.least = std::min(out.least, effort);
    out.most = std::max(out.most, effort);
    EXPECT_GE(energy.dissipated_J, 0.0);
    const double defect = energy.change_J - (in - back) + energy.dissipated_J;
    const double size = std::abs(energy.change_J) + in + back + energy.dissipated_J;
    out.worst_balance = std::max(out.worst_balance, std::abs(defect) / size);
    record.swap(next);
  }
  return out;
}

std::shared_ptr<const Component> contact(double damping_s_per_m, const std::string& law,
                                         const std::string& side,
                                         const std::vector<double>& normal) {
  return make_part("contact", {{"force_N", 100.0},
                               {"compression_m", 0.01},
                               {"damping_s_per_m", damping_s_per_m},
                               {"law", law},
                               {"side", side},
                               {"normal", normal}});
}

TEST(Contact, PushesAndNeverPulls) {
  for (const double damping : {0.0, 0.1, 2.0, 50.0}) {
    for (const char* law : {"linear", "hertz"}) {
      for (const double side : {1.0, -1.0}) {
        for (const std::vector<double>& normal :
             {std::vector<double>{}, {0.6, -0.8}, {0.0, 0.6, 0.8}}) {
          const auto part = contact(damping, law, side > 0.0 ? "positive" : "negative", normal);
          const std::vector<double> direction = normal.empty() ? std::vector<double>{1.0} : normal;
          for (const double step_s : {1e-5, 1e-3, 0.05}) {
            for (const double impedance : {0.1, 30.0, 1e4}) {
              std::vector<double> outward = direction;
              for (double& each : outward) each *= side;
              const Component* parts[] = {part.get()};
              const Efforts seen = efforts_of(*part, part->make_batch(parts), side * 0.01, step_s,
                                              impedance, outward, 1000.0);
              const std::string where = std::string(law) + ", a=" + std::to_string(damping) +
                                        ", h=" + std::to_string(step_s) +
                                        ", gamma=" + std::to_string(impedance);
              // Spring and damper may be far larger than what is left of them, whose rounding they are.
              const double speed = 1000.0 / impedance, reach = (0.01 + speed * step_s) / 0.01;
              const double terms_N =
                  1000.0 + 100.0 * reach * std::sqrt(reach) * (1.0 + damping * speed);
              EXPECT_GE(seen.least, -1e-13 * terms_N) << where;
              EXPECT_GT(seen.most, 1.0) << where;
              if (terms_N < 1e6) {
                EXPECT_LE(seen.worst_balance, 1e-10) << where;
              }
            }
          }
        }
      }
    }
  }
}

/// The contact of before: its resistance is that of the middle of the step, however fast it is left.
class Sticky final : public Subsystem {
 public:
  explicit Sticky(std::shared_ptr<const Component> part)
      : Subsystem(part->signature()), part_(std::move(part)), own_(*part_->port_hamiltonian()) {}
  double storage(const double* x) const override { return own_.storage(x); }
  void gradient(const double* x, double* g) const override { own_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    own_.discrete_gradient(x, y, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    own_.discrete_gradient_jacobian(x, y, j);
  }
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return own_.structure(); }
  void structure_at(const double* x, Structure& out) const override { own_.structure_at(x, out); }

 private:
  std::shared_ptr<const Component> part_;
  const Subsystem& own_;
};

TEST(ContactControl, TheResistanceOfTheMiddlePulls) {
  const Sticky sticky(contact(2.0, "linear", "positive", {}));
  const Subsystem* parts[] = {&sticky};
  EXPECT_LT(efforts_of(sticky, make_newton_batch(parts), 0.01, 1e-3, 30.0, {1.0}, 1000.0).least,
            -10.0);
}

/// The effort of a step from x by Δx, e = ∇̄H + rΔx/h.
double effort_of(const Subsystem& part, double x, double dx, double step_s) {
  const double next = x + dx;
  double g = 0.0;
  part.discrete_gradient(&x, &next, &g);
  Structure structure = part.structure();
  part.structure_over(&x, &dx, step_s, structure);
  return g + structure.S.coeff(0, 0) * dx / step_s;
}

/// By how much the effort falls at the most as Δx grows, beside its largest: then a wave relation could have
/// several solutions.
double largest_fall(const Subsystem& part, double reach, double step_s) {
  double fall = 0.0, most = 0.0;
  for (const double x : {-2.3 * reach, -0.4 * reach, 0.0, 0.7 * reach, 3.0 * reach}) {
    double highest = -1e300;
    for (int i = -800; i <= 800; ++i) {
      const double effort = effort_of(part, x, 0.01 * reach * i, step_s);
      highest = std::max(highest, effort);
      fall = std::max(fall, highest - effort);
      most = std::max(most, std::abs(effort));
    }
  }
  return fall / most;
}

TEST(Contact, TheEffortRisesWithTheWayOfAStep) {
  for (const char* side : {"positive", "negative", "both"}) {
    for (const char* law : {"linear", "hertz"}) {
      for (const double step_s : {1e-4, 0.01, 1.0}) {
        const auto part = make_part("contact", {{"force_N", 100.0},
                                                {"compression_m", 0.01},
                                                {"gap_m", 0.004},
                                                {"damping_s_per_m", 2.0},
                                                {"side", std::string(side)},
                                                {"law", std::string(law)}});
        EXPECT_LE(largest_fall(*part->port_hamiltonian(), 0.01, step_s), 1e-14)
            << side << " " << law << " h=" << step_s;
      }
    }
  }
}

TEST(ContactControl, TheResistanceOfTheMiddleLetsItFall) {
  const Sticky sticky(contact(2.0, "linear", "positive", {}));
  EXPECT_GT(largest_fall(sticky, 0.01, 0.01), 1e-3);
}

TEST(Contact, OnBothSidesIsTheSumOfTwo) {
  for (const char* law : {"linear", "hertz"}) {
    const auto of_side = [&](const char* side) {
      return make_part("rotational_contact", {{"torque_Nm", 50.0},
                                              {"angle_rad", 0.1},
                                              {"gap_rad", 0.3},
                                              {"damping_s_per_rad", 0.4},
                                              {"side", std::string(side)},
                                              {"law", std::string(law)}});
    };
    const auto both = of_side("both"), up = of_side("positive"), down = of_side("negative");
    for (const double x : {-0.9, -0.31, 0.0, 0.29, 0.5}) {
      for (const double dx : {-1.7, -0.1, 1e-9, 0.2, 1.1}) {
        const double sum = effort_of(*up->port_hamiltonian(), x, dx, 0.01) +
                           effort_of(*down->port_hamiltonian(), x, dx, 0.01);
        EXPECT_NEAR(effort_of(*both->port_hamiltonian(), x, dx, 0.01), sum, 1e-12 * std::abs(sum))
            << law << " x=" << x << " dx=" << dx;
      }
      EXPECT_EQ(both->port_hamiltonian()->storage(&x),
                up->port_hamiltonian()->storage(&x) + down->port_hamiltonian()->storage(&x));
    }
  }
}

TEST(Contact, OnBothSidesHasFacesOnBothSidesOfZero) {
  const auto refusal = [](const char* type, const char* force, const char* way, const char* gap) {
    try {
      (void)make_part(type, {{force, 1.0}, {way, 1.0}, {gap, -0.1}, {"side", std::string("both")}});
    } catch (const ConfigError& error) {
      return error.issues().front().where;
    }
    return std::string();
  };
  EXPECT_EQ(refusal("contact", "force_N", "compression_m", "gap_m"), "/gap_m");
  EXPECT_EQ(refusal("rotational_contact", "torque_Nm", "angle_rad", "gap_rad"), "/gap_rad");
  EXPECT_NO_THROW(
      (void)make_part("contact", {{"force_N", 1.0}, {"compression_m", 1.0}, {"gap_m", -0.1}}));
}

TEST(GearWithBacklash, CarriesTheTorqueOfItsTeethToBothShafts) {
  for (const double ratio : {4.0, -2.5}) {
    const auto part = make_part(
        "gear_with_backlash",
        {{"torque_Nm", 30.0}, {"angle_rad", 0.01}, {"backlash_rad", 0.006}, {"ratio", ratio}});
    const Subsystem& gear = *part->port_hamiltonian();
    EXPECT_EQ(gear.structure().G.coeff(0, 0), 1.0 / ratio);
    EXPECT_EQ(gear.structure().G.coeff(0, 1), -1.0);
    for (const double twist : {-0.013, -0.002, 0.0, 0.003, 0.0131}) {
      double torque = 0.0;
      gear.gradient(&twist, &torque);
      const double way = std::max(0.0, std::abs(twist) - 0.003);
      EXPECT_NEAR(torque, std::copysign(3000.0 * way, twist), 1e-12) << twist;
    }
    ASSERT_EQ(gear.state_levels().size(), 2U);
    EXPECT_EQ(gear.state_levels()[0].level, 0.003);
    EXPECT_EQ(gear.state_levels()[1].level, -0.003);
  }
}

/// The travel after `steps` steps at a speed.
double travel_after(const Component& part, double start, double speed_per_s, double step_s,
                    int steps) {
  const Component* parts[] = {&part};
  const auto batch = part.make_batch(parts);
  batch->prepare(step_s,
                 std::vector<double>(static_cast<std::size_t>(batch->wave_size()), 2.0).data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, &start, record.data());
  const auto stages = static_cast<std::size_t>(part.stages());
  const std::size_t all = static_cast<std::size_t>(batch->input_size());
  std::vector<double> input(all), a(static_cast<std::size_t>(batch->wave_size()), 0.3), b(a);
  for (std::size_t i = 0; i < all; ++i) {
    const double share = gauss_stages(part.stages()).b[i % stages] / part.substeps();
    input[i] = std::sqrt(share) * speed_per_s;
  }
  for (int k = 0; k < steps; ++k) {
    batch->freeze({0, 1}, record.data(), input.data());
    EXPECT_TRUE(batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {}).ok());
    record.swap(next);
    double x = 0.0;
    batch->get_state(0, record.data(), &x);
    EXPECT_GE(x, 0.0);
    EXPECT_LE(x, 1.0);
  }
  double x = 0.0;
  batch->get_state(0, record.data(), &x);
  return x;
}

TEST(ElectricalSwitch, TravelsBetweenItsStopsWithAnyStagesAndSubsteps) {
  const std::shared_ptr<const Component> plain =
      make_part("electrical_switch", {{"on_S", 10.0}, {"off_S", 1e-6}});
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (const int substeps : {1, 4}) {
      if (stages == 1 && substeps > 1) continue;
      const auto part = stages == 1 ? plain : staged_part(plain, stages, substeps);
      SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(substeps) + " substeps");
      EXPECT_NEAR(travel_after(*part, 0.25, 100.0, 1e-3, 5), 0.75, 1e-14);
      EXPECT_EQ(travel_after(*part, 0.25, 100.0, 1e-3, 9), 1.0);
      EXPECT_EQ(travel_after(*part, 1.0, 1e6, 1e-3, 9), 1.0);
      EXPECT_EQ(travel_after(*part, 0.25, -1e6, 1e-3, 9), 0.0);
      // It comes back from where it stopped.
      EXPECT_NEAR(travel_after(*part, travel_after(*part, 0.5, -1e3, 1e-3, 50), 100.0, 1e-3, 3),
                  0.3, 1e-14);
    }
  }
}

TEST(ElectricalSwitch, RefusesToStartBeyondItsStops) {
  const auto part = make_part("electrical_switch", {{"on_S", 10.0}, {"off_S", 1e-6}});
  for (const double travel : {0.0, 0.4, 1.0})
    EXPECT_TRUE(part->check_initial_state(&travel).empty());
  for (const double travel : {-0.1, 1.1}) {
    ASSERT_EQ(part->check_initial_state(&travel).size(), 1U);
    EXPECT_EQ(part->check_initial_state(&travel)[0].where, "/initial_state");
  }
}

}  // namespace
}  // namespace portwave::test_one_sided_parts
