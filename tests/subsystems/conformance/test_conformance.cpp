#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/systems/nonlinear_parts.hpp"

// Every catalogue type keeps every law, and every law can fail: each has a part that breaks it.

namespace portwave::test_conformance {
namespace {

void expect_all_hold(const Subsystem& part, const ConformanceOptions& options) {
  for (const LawReport& report : check_all(part, options)) {
    EXPECT_TRUE(report.holds) << part.signature().type << " breaks " << report.law << " by "
                              << report.worst << ": " << report.detail;
  }
}

/// Mechanisms turn many times in one step when they move a thousand times faster.
bool turns(const std::string& type) {
  const std::vector<std::string> mechanisms = {
      "pendulum",         "planar_arm", "cart_pendulum", "rigid_body", "synchronous_machine",
      "port_hamiltonian", "articulated"};
  return std::ranges::find(mechanisms, type) != mechanisms.end();
}

/// What turns has another rate soon after the start, by which no order can be told; so have teeth that their
/// damping holds where they are pressed together a thousand times as far as usual.
bool changes_its_rate(const std::string& type) {
  return turns(type) || type == "gear_with_backlash";
}

class CatalogueLaws : public ::testing::TestWithParam<std::string> {};

TEST_P(CatalogueLaws, Hold) {
  const PartType& type = *find_part_type(GetParam());
  ConformanceOptions options;
  // A convex H that is separable makes the port map nonexpansive.
  if (type.name == "duffing_oscillator") options.nonexpansive = true;
  options.steps_s = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
  // Mechanisms turn many times within ten seconds, beyond what Newton's method follows in one step.
  if (!turns(type.name)) options.steps_s.push_back(10.0);
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    options.seed = seed;
    expect_all_hold(*make_part(type.name, type.example)->port_hamiltonian(), options);
  }
}

/// What check_all does, but for rest under a load and the orders of stages, which are laws of usual states, and for
/// inexact_scatter: its error is stated in waves, and where a state is a thousand times the usual, the waves' round-off
/// is that of the state.
void expect_laws_hold_far_away(const Subsystem& part, const ConformanceOptions& options) {
  std::vector<LawReport> reports = {
      check_structure(part, options),         check_gradient(part, options),
      check_discrete_gradient(part, options), check_discrete_gradient_jacobian(part, options),
      check_energy_law(part, options),        check_frozen_map_purity(part, options),
      check_affine_form(part, options),       check_batch_equals_newton(part, options),
      check_lane_independence(part, options), check_damped_stages(part, options)};
  if (options.nonexpansive.value_or(part.is_linear())) {
    reports.push_back(check_nonexpansive(part, options));
  }
  if (!changes_its_rate(part.signature().type))
    reports.push_back(check_order_of_convergence(part, options));
  for (const LawReport& report : reports) {
    EXPECT_TRUE(report.holds) << part.signature().type << " breaks " << report.law << " by "
                              << report.worst << ": " << report.detail;
  }
}

/// Far from rest, in small and in large units.
TEST_P(CatalogueLaws, HoldFarFromRestAndInOtherUnits) {
  struct Scale {
    double state, wave, impedance;
  };
  const PartType& type = *find_part_type(GetParam());
  const auto part = make_part(type.name, type.example);
  std::vector<Scale> scales = {{1e3, 1.0, 1.0},  {1e3, 1e3, 1.0}, {1e-3, 1e-3, 1.0},
                               {1.0, 1e-6, 1.0}, {1.0, 1.0, 1e3}, {1.0, 1.0, 1e-3}};
  if (part->port_hamiltonian()->is_linear()) {
    scales.insert(scales.end(), {{1e9, 1e9, 1.0}, {1e-9, 1e-9, 1.0}});
  }
  for (const Scale& scale : scales) {
    SCOPED_TRACE(::testing::Message() << "states " << scale.state << ", waves " << scale.wave
                                      << ", impedances " << scale.impedance);
    ConformanceOptions options;
    options.seed = 5;
    options.trials = 3;
    options.state_scale = scale.state;
    options.wave_scale = scale.wave;
    options.impedance = scale.impedance;
    options.steps_s = {1e-6, 1e-5, 1e-4, 1e-3};
    if (scale.state < 10.0 || !turns(type.name)) {
      options.steps_s.insert(options.steps_s.end(), {1e-2, 1e-1, 1.0});
    }
    expect_laws_hold_far_away(*part->port_hamiltonian(), options);
  }
}

/// That the orders hold is told by Hold; here, of which types something was seen.
TEST_P(CatalogueLaws, OrdersOfStagesAreSeenOfAllThatMovesSmoothly) {
  const PartType& type = *find_part_type(GetParam());
  const auto component = make_part(type.name, type.example);
  const Subsystem& part = *component->port_hamiltonian();
  const bool still = part.signature().state_size() == 0 || type.name == "electrical_switch" ||
                     type.name == "park_transform";
  const std::vector<std::string> kinked = {"contact", "rotational_contact", "ground_contact",
                                           "gear_with_backlash"};
  EXPECT_EQ(part.is_smooth(), std::ranges::find(kinked, type.name) == kinked.end());
  // One stage is judged by the other law.
  const std::vector<std::string> all = {"order 4, 2 stages", "order 6, 3 stages",
                                        "order 1, 1 damped stage", "order 3, 2 damped stages",
                                        "order 5, 3 damped stages"};
  const bool is_seen = !still && part.is_smooth();
  EXPECT_EQ(check_orders_of_stages(part).rules, is_seen ? all : std::vector<std::string>{});
  EXPECT_TRUE(!is_seen || !check_order_of_convergence(part).detail.empty());
}

/// That their energy closes is told by Hold; here, for which stages. Friction by the normal force allows one alone.
TEST_P(CatalogueLaws, DampedStagesAreSeenOfAllThatMoves) {
  const PartType& type = *find_part_type(GetParam());
  const auto component = make_part(type.name, type.example);
  const Subsystem& part = *component->port_hamiltonian();
  ConformanceOptions options;
  options.steps_s = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
  const std::vector<std::string> rules = check_damped_stages(part, options).rules;
  for (int stages = 1; stages <= 3; ++stages) {
    for (const char* nodes : {"Gauss", "Radau"}) {
      const std::string rule = std::to_string(stages) + " damped stage" + (stages == 1 ? "" : "s") +
                               ", " + nodes + " nodes";
      const bool may_be =
          part.signature().state_size() > 0 && (stages == 1 || type.name != "ground_contact");
      EXPECT_EQ(std::ranges::find(rules, rule) != rules.end(), may_be) << rule;
    }
  }
}

/// That they never pull is told by Hold; here, of which parts and with which stages that was seen.
TEST_P(CatalogueLaws, PartsThatLetGoAreSeenToDoSo) {
  const PartType& type = *find_part_type(GetParam());
  const auto component = make_part(type.name, type.example);
  const Subsystem& part = *component->port_hamiltonian();
  const std::vector<std::string> all = {"1 stage",         "1 damped stage", "2 stages",
                                        "2 damped stages", "3 stages",       "3 damped stages"};
  std::vector<std::string> expected;
  if (!part.is_smooth()) {
    expected.assign(all.begin(), type.name == "ground_contact" ? all.begin() + 2 : all.end());
  }
  EXPECT_EQ(check_one_sided(part).rules, expected);
}

TEST_P(CatalogueLaws, StepsCanBeTakenBack) {
  const PartType& type = *find_part_type(GetParam());
  const LawReport report = check_rollback(*make_part(type.name, type.example));
  EXPECT_TRUE(report.holds) << report.worst << ": " << report.detail;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogueLaws, ::testing::ValuesIn(type_names()),
                         [](const auto& each) { return each.param; });

class NonlinearLaws : public ::testing::TestWithParam<DiscreteGradient> {
 protected:
  NonlinearLaws() {
    part_options_.discrete_gradient = GetParam();
    options_.steps_s = {1e-6, 1e-3, 1e-1, 1.0};
    options_.order = GetParam() == DiscreteGradient::itoh_abe ? 1.0 : 2.0;
  }
  NonlinearPortHamiltonian::Options part_options_;
  ConformanceOptions options_;
};

TEST_P(NonlinearLaws, HoldWithAndWithoutHessian) {
  for (const bool with_hessian : {true, false}) {
    SCOPED_TRACE(with_hessian ? "analytic Hessian" : "differences of the gradient");
    expect_all_hold(*testing::coupled_quartic(part_options_, with_hessian), options_);
  }
}

TEST_P(NonlinearLaws, HoldForAPartThatCancelsInsideH) {
  options_.order = 2.0;  // separable: Itoh-Abe is of second order too
  expect_all_hold(*testing::pendulum(part_options_), options_);
}

TEST_P(NonlinearLaws, HoldForAConvexPartWithFeedthrough) {
  options_.order = 2.0;
  options_.nonexpansive = true;
  expect_all_hold(*testing::stiffening_capacitor(part_options_), options_);
}

TEST_P(NonlinearLaws, HoldForMoreStatesThanTheStackHolds) {
  options_.trials = 2;
  expect_all_hold(*testing::quartic_chain(16, part_options_), options_);
}

INSTANTIATE_TEST_SUITE_P(Gradients, NonlinearLaws,
                         ::testing::Values(DiscreteGradient::gonzalez, DiscreteGradient::mean_value,
                                           DiscreteGradient::itoh_abe),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(StateDependentLaws, HoldForARigidBody) {
  ConformanceOptions options;
  options.steps_s = {1e-6, 1e-3, 1e-1, 1.0};
  expect_all_hold(*testing::rigid_body(), options);
}

// Controls. A part that lies in one respect and delegates the rest to an honest one.

class Delegating : public Subsystem {
 public:
  explicit Delegating(std::unique_ptr<Subsystem> honest)
      : Subsystem(honest->signature()), honest_(std::move(honest)) {}

  double storage(const double* x) const override { return honest_->storage(x); }
  void gradient(const double* x, double* g) const override { honest_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    honest_->discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    honest_->discrete_gradient_jacobian(x, x_next, j);
  }
  const Structure& structure() const override { return honest_->structure(); }
  std::vector<double> default_state() const override { return honest_->default_state(); }

 protected:
  const Subsystem& honest() const { return *honest_; }

 private:
  std::unique_ptr<Subsystem> honest_;
};

std::unique_ptr<Subsystem> honest_oscillator() {
  return linear_oscillator(
      {.mass_kg = 2.0, .stiffness_N_per_m = 3.0, .damping_Ns_per_m = 0.4, .allow_active = false});
}

std::unique_ptr<Subsystem> honest_quartic() { return testing::coupled_quartic(); }

ConformanceOptions moderate() {
  ConformanceOptions options;
  options.steps_s = {1e-3, 1e-1, 1.0};
  return options;
}

/// Each control first sees the honest part pass.
void expect_caught(const std::function<LawReport(const Subsystem&, const ConformanceOptions&)>& law,
                   const Subsystem& honest, const Subsystem& liar) {
  const LawReport good = law(honest, moderate());
  EXPECT_TRUE(good.holds) << good.law << ": " << good.detail;
  const LawReport bad = law(liar, moderate());
  EXPECT_FALSE(bad.holds) << bad.law << " was not caught, worst " << bad.worst;
  EXPECT_GT(bad.worst, 1.0);
  EXPECT_FALSE(bad.detail.empty());
}

/// Says that it is passive, but its damper drives.
class NegativeDamper : public Delegating {
 public:
  explicit NegativeDamper(double factor = 1.0)
      : Delegating(honest_oscillator()), structure_(honest().structure()) {
    structure_.R = -factor * structure_.R;
  }
  const Structure& structure() const override { return structure_; }

 private:
  Structure structure_;
};

TEST(ConformanceControl, StructureCatchesANegativeDamper) {
  expect_caught(check_structure, *honest_oscillator(), NegativeDamper());
}

TEST(ConformanceControl, EnergyLawCatchesANegativeDamper) {
  expect_caught(check_energy_law, *honest_oscillator(), NegativeDamper());
}

TEST(ConformanceControl, NonexpansivenessCatchesADamperThatBeatsTheInertia) {
  // |c| > 2m/h + kh/2 makes the one-step admittance negative.
  expect_caught(check_nonexpansive, *honest_oscillator(), NegativeDamper(100.0));
}

class WrongGradient : public Delegating {
 public:
  WrongGradient() : Delegating(honest_quartic()) {}
  void gradient(const double* x, double* g) const override {
    Delegating::gradient(x, g);
    g[1] *= 1.001;
  }
};

TEST(ConformanceControl, GradientCatchesAnErrorOfOneInAThousand) {
  expect_caught(check_gradient, *honest_quartic(), WrongGradient());
}

/// The midpoint gradient: consistent, but no discrete gradient of a quartic.
class MidpointGradient : public Delegating {
 public:
  MidpointGradient() : Delegating(honest_quartic()) {}
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    double mid[4];
    for (int i = 0; i < 4; ++i) mid[i] = 0.5 * (x[i] + x_next[i]);
    gradient(mid, g);
  }
};

/// With one stage it is in the part's own gradient. Gradients of more are corrected for the balance: that they are not
/// those of H, the law of gradients tells.
TEST(ConformanceControl, DampedStagesCatchWhatCreatesEnergy) {
  expect_caught(check_damped_stages, *honest_oscillator(), NegativeDamper());
  expect_caught(check_damped_stages, *honest_quartic(), MidpointGradient());
}

TEST(ConformanceControl, DiscreteGradientCatchesTheMidpoint) {
  expect_caught(check_discrete_gradient, *honest_quartic(), MidpointGradient());
}

TEST(ConformanceControl, EnergyLawCatchesTheMidpoint) {
  expect_caught(check_energy_law, *honest_quartic(), MidpointGradient());
}

/// The textbook formula, with the noise that it has as the step vanishes.
class NaiveGonzalez : public Delegating {
 public:
  NaiveGonzalez() : Delegating(honest_quartic()) {}
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    double mid[4], work = 0.0, length_squared = 0.0;
    for (int i = 0; i < 4; ++i) mid[i] = 0.5 * (x[i] + x_next[i]);
    gradient(mid, g);
    for (int i = 0; i < 4; ++i) {
      work += g[i] * (x_next[i] - x[i]);
      length_squared += (x_next[i] - x[i]) * (x_next[i] - x[i]);
    }
    if (length_squared == 0.0) return;
    const double c = (storage(x_next) - storage(x) - work) / length_squared;
    for (int i = 0; i < 4; ++i) g[i] += c * (x_next[i] - x[i]);
  }
};

TEST(ConformanceControl, DiscreteGradientCatchesCancellation) {
  expect_caught(check_discrete_gradient, *honest_quartic(), NaiveGonzalez());
}

/// Without values of H, but with a correction that is all rounding where the step is short: ε of the
/// largest component of ∇H, divided by |Δx|, in all of them.
class RestlessGonzalez : public Delegating {
 public:
  RestlessGonzalez() : Delegating(honest_quartic()) {}
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    const double reach = 0.5 * std::sqrt(0.6);
    double mid[4], length_squared = 0.0, c = 0.0;
    for (int i = 0; i < 4; ++i) {
      mid[i] = 0.5 * (x[i] + x_next[i]);
      length_squared += (x_next[i] - x[i]) * (x_next[i] - x[i]);
    }
    gradient(mid, g);
    for (const double s : {-reach, reach}) {
      double point[4], there[4];
      for (int i = 0; i < 4; ++i) point[i] = mid[i] + s * (x_next[i] - x[i]);
      gradient(point, there);
      for (int i = 0; i < 4; ++i) c += 5.0 / 18.0 * (there[i] - g[i]) * (x_next[i] - x[i]);
    }
    if (length_squared < 1e-280) return;
    for (int i = 0; i < 4; ++i) g[i] += c / length_squared * (x_next[i] - x[i]);
  }
};

TEST(ConformanceControl, RestUnderLoadCatchesACorrectionThatIsRounding) {
  ConformanceOptions options = moderate();
  options.trials = 12;
  EXPECT_TRUE(check_rest_under_load(*honest_quartic(), options).holds);
  const LawReport bad = check_rest_under_load(RestlessGonzalez(), options);
  EXPECT_FALSE(bad.holds) << bad.worst;
  EXPECT_NE(bad.detail.find("not_converged"), std::string::npos) << bad.detail;
}

/// H does not depend on the first coordinate.
TEST(StateDependentLaws, HoldWhereHLacksACoordinate) {
  for (const auto kind :
       {DiscreteGradient::gonzalez, DiscreteGradient::mean_value, DiscreteGradient::itoh_abe}) {
    for (const double quartic : {0.0, 0.7}) {
      Hamiltonian H;
      H.value = [quartic](const double* x) {
        return 0.5 * x[1] * x[1] / 3.0 + quartic * x[1] * x[1] * x[1] * x[1];
      };
      H.gradient = [quartic](const double* x, double* g) {
        g[0] = 0.0;
        g[1] = x[1] / 3.0 + 4.0 * quartic * x[1] * x[1] * x[1];
      };
      Structure s = Structure::zero(2, 1);
      s.J.insert(0, 1) = 1.0;
      s.J.insert(1, 0) = -1.0;
      s.R.insert(1, 1) = 0.2;
      s.G.insert(1, 0) = 1.0;
      NonlinearPortHamiltonian::Options part;
      part.discrete_gradient = kind;
      ConformanceOptions options = moderate();
      options.trials = 20;
      expect_all_hold(
          NonlinearPortHamiltonian({"free_mass",
                                    {{"q", "m"}, {"p", "kg m/s"}},
                                    {{"push", Causality::effort_in, Domain::translation, 1}},
                                    {}},
                                   std::move(s), std::move(H), part),
          options);
    }
  }
}

class WrongJacobian : public Delegating {
 public:
  WrongJacobian() : Delegating(honest_quartic()) {}
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    Delegating::discrete_gradient_jacobian(x, x_next, j);
    j.emplace_back(0, 1, 0.01);
  }
};

TEST(ConformanceControl, JacobianCatchesAWrongEntry) {
  expect_caught(check_discrete_gradient_jacobian, *honest_quartic(), WrongJacobian());
}

TEST(ConformanceControl, OrderCatchesAFirstOrderGradient) {
  expect_caught(check_order_of_convergence, *honest_quartic(),
                *testing::coupled_quartic({.discrete_gradient = DiscreteGradient::itoh_abe}));
}

/// Kinks everywhere: stages gain nothing.
class KinkedGradient : public Delegating {
 public:
  KinkedGradient() : Delegating(honest_quartic()) {}
  void gradient(const double* x, double* g) const override {
    Delegating::gradient(x, g);
    g[0] += std::abs(std::sin(40.0 * x[0]));
  }
};

TEST(ConformanceControl, OrdersOfStagesCatchKinks) {
  expect_caught(check_orders_of_stages, *honest_quartic(), KinkedGradient());
}

/// Delegates a batch, and lets `spoil` have a go at every b.
class SpoiledBatch : public StepBatch {
 public:
  using Spoil = std::function<void(int lanes, int calls, double& b)>;

  SpoiledBatch(std::unique_ptr<StepBatch> honest, Spoil spoil)
      : StepBatch(honest->lanes(), honest->state_size(), honest->wave_size(), honest->input_size()),
        honest_(std::move(honest)),
        spoil_(std::move(spoil)) {}

  void prepare(double h, const double* impedance) override { honest_->prepare(h, impedance); }
  int lane_group() const override { return honest_->lane_group(); }
  std::size_t record_size() const override { return honest_->record_size(); }
  void set_state(int lane, const double* x, double* record) const override {
    honest_->set_state(lane, x, record);
  }
  void get_state(int lane, const double* record, double* x) const override {
    honest_->get_state(lane, record, x);
  }
  void freeze(LaneRange range, double* record, const double* input) const override {
    honest_->freeze(range, record, input);
  }
  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    const LaneStatus status = honest_->scatter(range, record, a, b);
    spoil(range, b);
    return status;
  }
  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    const LaneStatus status = honest_->advance(range, record, a, next, b, energy);
    spoil(range, b);
    return status;
  }
  const AffineMap* affine_map() const override { return honest_->affine_map(); }

 private:
  void spoil(LaneRange range, double* b) const {
    ++calls_;
    for (int l = range.first; l < range.last; ++l) spoil_(lanes(), calls_, b[l]);
  }
  std::unique_ptr<StepBatch> honest_;
  Spoil spoil_;
  mutable int calls_ = 0;  // what a batch must not have
};

class SpoiledPart : public Delegating {
 public:
  explicit SpoiledPart(SpoiledBatch::Spoil spoil)
      : Delegating(honest_oscillator()), spoil_(std::move(spoil)) {}
  bool is_linear() const override { return true; }
  std::string batch_key() const override { return "spoiled"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    const std::vector<const Component*> honest_parts(parts.size(), &honest());
    return std::make_unique<SpoiledBatch>(honest().make_batch(honest_parts), spoil_);
  }

 private:
  SpoiledBatch::Spoil spoil_;
};

TEST(ConformanceControl, PurityCatchesAMapWithMemory) {
  struct Memory {
    const char* what;
    int call;
    double extra;  // 0: one bit
  };
  for (const Memory& memory : {Memory{"a scatter, by more than a warm start may do", 4, 1e-9},
                               Memory{"a commit after other solves", 5, 0.0},
                               Memory{"the first solve after freezing again", 6, 0.0}}) {
    SCOPED_TRACE(memory.what);
    expect_caught(check_frozen_map_purity, SpoiledPart([](int, int, double&) {}),
                  SpoiledPart([memory](int, int calls, double& b) {
                    if (calls != memory.call) return;
                    b = memory.extra == 0.0 ? std::nextafter(b, 1e9) : b + memory.extra;
                  }));
  }
}

TEST(ConformanceControl, InexactScatterCatchesAnErrorThatStays) {
  expect_caught(check_inexact_scatter, SpoiledPart([](int, int, double&) {}),
                SpoiledPart([](int, int calls, double& b) { b += calls > 4 ? 1e-3 : 0.0; }));
}

TEST(ConformanceControl, AffineFormCatchesAnotherOffset) {
  expect_caught(check_affine_form, *honest_oscillator(),
                SpoiledPart([](int, int, double& b) { b += 1e-9; }));
}

TEST(ConformanceControl, NewtonCatchesAnInaccurateBatch) {
  expect_caught(check_batch_equals_newton, *honest_oscillator(),
                SpoiledPart([](int, int, double& b) { b += 1e-8; }));
}

TEST(ConformanceControl, LaneIndependenceCatchesOneBit) {
  expect_caught(check_lane_independence, SpoiledPart([](int, int, double&) {}),
                SpoiledPart([](int lanes, int, double& b) {
                  if (lanes > 1) b = std::nextafter(b, 1e9);
                }));
}

TEST(ConformanceControl, RollbackCatchesABatchThatCountsItsSteps) {
  const LawReport good = check_rollback(*honest_oscillator());
  EXPECT_TRUE(good.holds) << good.detail;
  EXPECT_FALSE(
      check_rollback(SpoiledPart([](int, int calls, double& b) { b += 1e-3 * calls; })).holds);
}

TEST(ConformanceControl, AFailedSolveIsNoPass) {
  const auto part = testing::coupled_quartic({.max_newton_steps = 1});
  const LawReport report = check_energy_law(*part, moderate());
  EXPECT_FALSE(report.holds);
  EXPECT_NE(report.detail.find("not_converged"), std::string::npos) << report.detail;
}

}  // namespace
}  // namespace portwave::test_conformance
