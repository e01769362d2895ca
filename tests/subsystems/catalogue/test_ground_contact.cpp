// The ground pushes and never pulls, and its friction stays in Coulomb's cone against the slip, in every step, however
// the body is driven.

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_ground_contact {
namespace {

using Eigen::Vector3d;

constexpr double kFriction = 0.7;

std::shared_ptr<const Component> ground(const Vector3d& normal, double damping, bool rolls,
                                        double friction = kFriction) {
  return make_part("ground_contact",
                   {{"force_N", 100.0},
                    {"compression_m", 0.01},
                    {"damping_s_per_m", damping},
                    {"friction", friction},
                    {"creep_speed_m_per_s", 0.05},
                    {"normal", std::vector<double>{normal[0], normal[1], normal[2]}},
                    {"height_m", 0.2},
                    {"radius_m", 0.1},
                    {"rolls", rolls}});
}

/// How far steps leave the laws, over all of a drive by waves that follow a fixed sequence.
struct Seen {
  double least_normal = 0.0;  ///< N, beside its terms
  double most_beyond = 0.0;   ///< friction beyond μN, beside the same
  double most_along = 0.0;   ///< power of friction that goes into the body, beside the power of all
  double least_taken = 0.0;  ///< dissipation
  double worst_balance = 0.0;  ///< beside the energies of a step
  double largest_friction = 0.0, largest_normal = 0.0;
  int failures = 0;
};

struct Drive {
  double step_s = 1e-3, push_N = 1000.0;
  std::array<double, 6> impedance = {30, 30, 30, 30, 30, 30};
};

Seen drive(const Component& part, const Vector3d& n, double friction, const Drive& by) {
  const Component* parts[] = {&part};
  const auto batch = part.make_batch(parts);
  batch->prepare(by.step_s, by.impedance.data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, part.default_state().data(), record.data());
  const int p = batch->wave_size();
  std::vector<double> a(static_cast<std::size_t>(p)), b(a);
  Seen seen;
  for (int k = 0; k < 300; ++k) {
    batch->freeze({0, 1}, record.data(), nullptr);
    double in = 0.0, back = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double load =
          by.push_N * std::sin(0.37 * k + 1.3 * static_cast<double>(j)) * std::cos(0.011 * k * k);
      a[j] = load / std::sqrt(2.0 * by.impedance[j] / by.step_s);
    }
    StepEnergy energy;
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                       {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J,
                        &energy.numerical_dissipation_J});
    if (!status.ok()) {
      ++seen.failures;
      break;
    }
    Vector3d effort, flow;
    double terms = 1e-300, power = 1e-300;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double root = std::sqrt(by.impedance[j] / (2.0 * by.step_s));
      if (j < 3) {
        effort[static_cast<Eigen::Index>(j)] = root * (a[j] + b[j]);
        flow[static_cast<Eigen::Index>(j)] = root / by.impedance[j] * (a[j] - b[j]);
      }
      terms += root * (std::abs(a[j]) + std::abs(b[j]));
      in += 0.5 * a[j] * a[j];
      back += 0.5 * b[j] * b[j];
      power += (a[j] * a[j] + b[j] * b[j]) / by.step_s;
    }
    const double normal = -n.dot(effort);
    const Vector3d tangential = effort + normal * n, slip = flow - n.dot(flow) * n;
    seen.least_normal = std::min(seen.least_normal, normal / terms);
    seen.most_beyond =
        std::max(seen.most_beyond, (tangential.norm() - friction * std::max(normal, 0.0)) / terms);
    if (p == 3) seen.most_along = std::max(seen.most_along, -tangential.dot(slip) / power);
    seen.least_taken = std::min(seen.least_taken, energy.dissipated_J);
    const double defect = energy.change_J - (in - back) + energy.dissipated_J;
    seen.worst_balance =
        std::max(seen.worst_balance,
                 std::abs(defect) / (std::abs(energy.change_J) + in + back + energy.dissipated_J));
    seen.largest_friction = std::max(seen.largest_friction, tangential.norm());
    seen.largest_normal = std::max(seen.largest_normal, normal);
    record.swap(next);
  }
  return seen;
}

TEST(GroundContact, StaysInTheConeInEveryStep) {
  const Vector3d normals[] = {{0, 0, 1}, {0, -1, 0}, Vector3d(0.2, -0.3, 0.9).normalized()};
  for (const Vector3d& n : normals) {
    for (const bool rolls : {false, true}) {
      for (const double damping : {0.0, 0.5, 20.0}) {
        for (const double step_s : {1e-5, 1e-3, 0.05}) {
          for (const std::array<double, 6>& impedance :
               {std::array<double, 6>{30, 30, 30, 30, 30, 30},
                {1, 3, 2, 0.1, 0.2, 0.3},
                {1e4, 2e4, 3e4, 300, 100, 200}}) {
            for (const bool damped_stage : {false, true}) {
              std::shared_ptr<const Component> part = ground(n, damping, rolls);
              if (damped_stage) part = staged_part(part, damped(gauss_stages(1)));
              SCOPED_TRACE(::testing::Message() << "n=" << n.transpose() << " rolls=" << rolls
                                                << " a=" << damping << " h=" << step_s << " gamma="
                                                << impedance[0] << " damped=" << damped_stage);
              const Seen seen = drive(*part, n, kFriction, {step_s, 1000.0, impedance});
              EXPECT_EQ(seen.failures, 0);
              // Spring and damper may be larger than what is left of them, whose rounding N is.
              EXPECT_GE(seen.least_normal, -1e-10);
              EXPECT_LE(seen.most_beyond, 1e-10);
              EXPECT_LE(seen.most_along, 1e-12);
              EXPECT_GE(seen.least_taken, 0.0);
              EXPECT_LE(seen.worst_balance, 1e-10);
              if (impedance[0] > 1e3) continue;  // what is hardly moved hardly touches
              EXPECT_GT(seen.largest_normal, 1.0);
              EXPECT_GT(seen.largest_friction, 0.5);
            }
          }
        }
      }
    }
  }
}

TEST(GroundContactControl, MoreFrictionLeavesTheCone) {
  const Seen seen =
      drive(*ground(Vector3d::UnitZ(), 0.5, false, 1.4), Vector3d::UnitZ(), kFriction, {});
  EXPECT_GT(seen.most_beyond, 1e-3);
}

TEST(GroundContact, WithoutFrictionIsAContact) {
  const auto slippery = ground(Vector3d::UnitZ(), 0.5, false, 0.0);
  const Subsystem& one = *slippery->port_hamiltonian();
  const auto wall = make_part("contact", {{"force_N", 100.0},
                                          {"compression_m", 0.01},
                                          {"damping_s_per_m", 0.5},
                                          {"gap_m", -0.3},
                                          {"side", std::string("negative")}});
  const Subsystem& other = *wall->port_hamiltonian();
  for (const double z : {0.35, 0.301, 0.2999, 0.28}) {
    for (const double dz : {-0.02, -1e-4, 3e-4, 0.05}) {
      const double x[] = {0.4, -0.7, z}, y[] = {0.5, 0.1, z + dz}, dx[] = {0.1, 0.8, dz};
      const double d = z, d_next = z + dz;
      double g[3] = {}, of_wall = 0.0;
      one.discrete_gradient(x, y, g);
      other.discrete_gradient(&d, &d_next, &of_wall);
      EXPECT_NEAR(g[2], of_wall, 1e-11);
      EXPECT_EQ(g[0], 0.0);
      Structure S = one.structure(), T = other.structure();
      one.structure_over(x, dx, 1e-3, S);
      other.structure_over(&d, &dz, 1e-3, T);
      EXPECT_NEAR(S.S.coeff(2, 2), T.S.coeff(0, 0), 1e-11);
      EXPECT_EQ(S.S.coeff(0, 0), 0.0);
    }
  }
}

/// On each flat direction friction is what the law says: at three speeds of slip.
TEST(GroundContact, FrictionIsTheLaw) {
  const auto part = ground(Vector3d::UnitZ(), 0.0, false);
  const Subsystem& own = *part->port_hamiltonian();
  const double h = 1e-3, pressed = 0.005;
  for (const double speed : {1e-4, 0.05, 2.0}) {
    const double x[] = {0, 0, 0.3 - pressed};
    const double dx[] = {0.6 * speed * h, -0.8 * speed * h, 0.0};
    Structure S = own.structure();
    own.structure_over(x, dx, h, S);
    const double friction = S.S.coeff(0, 0) * 0.6 * speed;
    EXPECT_NEAR(friction, 0.6 * kFriction * 1e4 * pressed * std::tanh(speed / 0.05), 1e-12);
    EXPECT_EQ(S.S.coeff(0, 0), S.S.coeff(1, 1));
    EXPECT_EQ(S.S.coeff(2, 2), 0.0);
  }
}

TEST(GroundContact, TellsWhenItOpensWhereItsNormalIsAnAxis) {
  const auto levels = [](const Vector3d& n) {
    return ground(n, 0.0, false)->port_hamiltonian()->state_levels();
  };
  ASSERT_EQ(levels({0, 0, 1}).size(), 1U);
  EXPECT_EQ(levels({0, 0, 1})[0].state, 2);
  EXPECT_DOUBLE_EQ(levels({0, 0, 1})[0].level, 0.3);
  EXPECT_EQ(levels({0, 0, 1})[0].falling, "closes");
  EXPECT_EQ(levels({0, -2, 0})[0].state, 1);
  EXPECT_DOUBLE_EQ(levels({0, -2, 0})[0].level, -0.3);
  EXPECT_EQ(levels({0, -2, 0})[0].rising, "closes");
  EXPECT_TRUE(levels({0, 0.6, 0.8}).empty());
}

TEST(GroundContact, NamesWhatIsWrong) {
  const auto refusal = [](Parameters more) {
    Parameters all = {
        {"force_N", 1.0}, {"compression_m", 1.0}, {"friction", 0.5}, {"creep_speed_m_per_s", 0.1}};
    for (auto& [name, value] : more) all[name] = value;
    try {
      (void)make_part("ground_contact", all);
    } catch (const ConfigError& error) {
      return error.issues().front().where;
    }
    return std::string();
  };
  EXPECT_EQ(refusal({{"normal", std::vector<double>{0, 0, 0}}}), "/normal");
  EXPECT_EQ(refusal({{"normal", std::vector<double>{1}}}), "/normal");
  EXPECT_EQ(refusal({{"friction", -0.1}}), "/friction");
  EXPECT_EQ(refusal({}), "");
}

/// Its structure has half as much friction as the steps of its batch.
class SlipperyInItsEquations final : public Subsystem {
 public:
  explicit SlipperyInItsEquations(std::shared_ptr<const Component> honest)
      : Subsystem(honest->signature()),
        honest_(std::move(honest)),
        own_(*honest_->port_hamiltonian()) {}
  double storage(const double* x) const override { return own_.storage(x); }
  void gradient(const double* x, double* g) const override { own_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    own_.discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    own_.discrete_gradient_jacobian(x, x_next, j);
  }
  std::vector<double> default_state() const override { return own_.default_state(); }
  std::vector<double> typical_state() const override { return own_.typical_state(); }
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return own_.structure(); }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    own_.structure_over(x, dx, step_s, out);
    out.S *= 0.5;
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const>) const override {
    const Component* const honest[] = {honest_.get()};
    return honest_->make_batch(honest);
  }

 private:
  std::shared_ptr<const Component> honest_;
  const Subsystem& own_;
};

/// Newton's method does not find the steps of friction that creeps far slower than the part is driven.
TEST(ConformanceControlOfGround, FrictionOfOtherEquationsIsCaughtWithoutNewton) {
  ConformanceOptions moderate;
  moderate.steps_s = {1e-3, 1e-1, 1.0};
  const std::shared_ptr<const Component> sticky =
      make_part("ground_contact", {{"force_N", 20.0},
                                   {"compression_m", 0.5},
                                   {"damping_s_per_m", 0.1},
                                   {"friction", 0.6},
                                   {"creep_speed_m_per_s", 1e-3}});
  const Subsystem& honest = *sticky->port_hamiltonian();
  const LawReport good = check_batch_equals_newton(honest, moderate);
  EXPECT_TRUE(good.holds) << good.detail;
  EXPECT_FALSE(check_batch_equals_newton(SlipperyInItsEquations(sticky), moderate).holds);
}

}  // namespace
}  // namespace portwave::test_ground_contact
