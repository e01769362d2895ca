// Port responses, scattering matrices and the impedance rules.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/linear_rate.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_tuning {
namespace {

using testing::wave_matrices;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// D of a linear part as its batch has it.
Eigen::MatrixXd batch_matrix(const WaveDiscretisation& waves, int part) {
  const PartSlot& slot = waves.slot(part);
  const StepBatch& batch = *waves.batch(slot.batch).batch;
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> D(batch.wave_size(),
                                                                           batch.wave_size());
  batch.affine_map()->affine_matrix(slot.lane, D.data());
  return D;
}

// Two ports are solved without memory from the heap, to the bits of Eigen's LU of any size.
TEST(Scattering, OfTwoPortsIsThatOfAnyNumberBitByBit) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-6.0, 6.0);
  for (int sample = 0; sample < 4000; ++sample) {
    Eigen::MatrixXd response(2, 2);
    for (double& value : response.reshaped()) {
      value = normal(generator) * std::pow(10.0, exponent(generator));
    }
    if (sample % 5 == 0) response(0, 1) = 0.0;
    const std::vector<double> gamma{std::pow(10.0, exponent(generator)), 0.7};
    for (const Causality first : {Causality::effort_in, Causality::flow_in}) {
      const Signature signature{
          "pair",
          {},
          {{"a", first, Domain::generic, 1}, {"b", Causality::flow_in, Domain::generic, 1}},
          {}};
      const double root = std::sqrt(gamma[0]);
      Eigen::VectorXd scale(2);
      scale << (first == Causality::effort_in ? root : 1.0 / root), 1.0 / std::sqrt(gamma[1]);
      const Eigen::MatrixXd scaled = scale.asDiagonal() * response * scale.asDiagonal();
      const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(2, 2);
      Eigen::MatrixXd expected = lu_solve(identity + scaled, identity - scaled);
      if (first == Causality::flow_in) expected.row(0) *= -1.0;
      expected.row(1) *= -1.0;
      EXPECT_TRUE((scattering_matrix(response, signature, gamma).array() == expected.array()).all())
          << response << ", seed 5, sample " << sample;
    }
  }
}

/// Largest difference between scattering_matrix and the batches' own, over all linear parts.
double scattering_gap(const System& system, double h, double impedance_factor = 1.0) {
  std::vector<double> impedance;
  for (std::size_t j = 0; j < system.scalar_ports().size(); ++j) {
    impedance.push_back(0.05 * std::pow(7.0, static_cast<double>(j % 5)));
  }
  const WaveDiscretisation waves(system, h, impedance);
  for (double& value : impedance) value *= impedance_factor;
  const PortResponses responses(system, h);
  const testing::WaveMatrices m = wave_matrices(responses, impedance);
  double gap = 0.0;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    if (!system.parts()[at(part)].component->capabilities().linear) continue;
    const Eigen::MatrixXd expected = batch_matrix(waves, part);
    const int first = system.first_scalar_port(part);
    gap = std::max(gap, (m.D.block(first, first, expected.rows(), expected.cols()) - expected)
                            .cwiseAbs()
                            .maxCoeff());
  }
  return gap;
}

TEST(Scattering, IsThatOfTheStepSolvers) {
  for (const double h : {1e-4, 1e-2, 1.0}) {
    EXPECT_LT(scattering_gap(testing::random_dense_tree(12, 10.0, 3), h), 1e-11) << h;
    EXPECT_LT(scattering_gap(testing::ring_of_junctions(), h), 1e-11) << h;
    EXPECT_LT(scattering_gap(testing::dc_motors(3, true), h), 1e-11) << h;
    EXPECT_LT(scattering_gap(testing::star_on_hub(9, 100.0), h), 1e-11) << h;
    EXPECT_LT(scattering_gap(testing::chain_of_blocks(2, 40), h), 1e-11) << h;  // sparse
  }
}

TEST(ScatteringControl, OtherImpedancesScatterOtherwise) {
  EXPECT_GT(scattering_gap(testing::ring_of_junctions(), 1e-2, 1.01), 1e-4);
}

TEST(PortResponse, OfANonlinearPartIsItsSlope) {
  // S of a Duffing node, differentiated at the waves of a step that keeps its state.
  const System system = testing::duffing_grid(1, 1);
  const double h = 1e-5;  // x⁺ ≈ x
  const PortResponses responses(system, h);
  const std::vector<double> gamma = {0.3, 0.7, 2.0, 5.0};
  const Eigen::MatrixXd D =
      scattering_matrix(responses.of(0), system.parts()[0].component->signature(), gamma);
  WaveDiscretisation waves(system, h, gamma);
  AlignedVector record = waves.initial_record(), a(at(waves.wave_size()), 0.0), plus = a, minus = a;
  for (int j = 0; j < 4; ++j) {
    a[at(waves.wave_of_port(j))] = 1e-4;
    ASSERT_TRUE(waves.scatter_all(record.data(), a.data(), plus.data()).ok());
    a[at(waves.wave_of_port(j))] = -1e-4;
    ASSERT_TRUE(waves.scatter_all(record.data(), a.data(), minus.data()).ok());
    a[at(waves.wave_of_port(j))] = 0.0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t w = at(waves.wave_of_port(i));
      EXPECT_NEAR((plus[w] - minus[w]) / 2e-4, D(i, j), 1e-8) << i << "," << j;
    }
  }
}

TEST(PortResponse, FollowsTheState) {
  const System system = testing::duffing_linear_pair();
  PortResponses responses(system, 0.01);
  ASSERT_TRUE(responses.depends_on_state());
  const double at_start = responses.of(0)(0, 0);
  const std::vector<double> rest(3, 0.0);
  responses.linearise([&](int) { return std::span<const double>(rest); });
  EXPECT_NEAR(responses.of(0)(0, 0), 0.64974, 5e-6);
  EXPECT_GT(std::abs(responses.of(0)(0, 0) - at_start), 1e-6);
  const System linear = testing::lossless_pair();
  EXPECT_FALSE(PortResponses(linear, 0.01).depends_on_state());
}

TEST(PortResponse, SharedLinearPartsAreTakenOnce) {
  const std::shared_ptr<const Subsystem> mass =
      linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 5});
  SystemBuilder builder;
  builder.add("a", mass).add("b", mass).connect("a.coupling", "b.coupling");
  const System system = builder.build();
  const PortResponses responses(system, 0.01);
  EXPECT_EQ(&responses.of(0), &responses.of(1));
}

TEST(PortResponse, NamesThePartWhoseStepIsSingular) {
  // q' = v, v' = kq (an inverted spring): (1/h)² = k/4.
  testing::LinearMatrices m(2, 1);
  m.Q.diagonal() << -4.0, 1.0;
  m.flow(0, 1, 1.0);
  m.G(1, 0) = 1.0;
  Signature signature{"inverted", {{"q", "m"}, {"v", "m/s"}}, {testing::effort_port("p")}, {}};
  Structure s = Structure::zero(2, 1);
  s.J = m.J.sparseView();
  s.G = m.G.sparseView();
  struct Inverted : LinearPortHamiltonian {
    using LinearPortHamiltonian::LinearPortHamiltonian;
    void discrete_gradient_jacobian(const double*, const double*,
                                    std::vector<Eigen::Triplet<double>>& out) const override {
      out.emplace_back(0, 0, -4.0);
      out.emplace_back(1, 1, 1.0);
    }
  };
  SystemBuilder builder;
  builder.add("pole", std::make_shared<Inverted>(
                          std::move(signature), std::move(s),
                          SparseMatrix(Eigen::MatrixXd::Identity(2, 2).sparseView())));
  builder.join(joint::Free{}, {"pole.p"});
  const System system = builder.build();
  try {
    PortResponses responses(system, 0.5);
    FAIL() << "must throw";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("\"pole\""), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(PortResponses(system, 0.25));
}

TEST(PortResponse, IsRefusedAlsoWhereTheSingularStateIsSeenByNoPort) {
  // q' = −R q with R = −2/h, beside a state that the port acts on.
  constexpr double kStep = 0.5;
  for (const double damping : {-2.0 / kStep, -1.0 / kStep}) {
    Structure s = Structure::zero(2, 1);
    Eigen::MatrixXd R = Eigen::MatrixXd::Zero(2, 2), G = Eigen::MatrixXd::Zero(2, 1);
    R(1, 1) = damping;
    G(0, 0) = 1.0;
    s.R = R.sparseView();
    s.G = G.sparseView();
    const LinearPortHamiltonian part(
        Signature{"hidden", {{"p", ""}, {"q", ""}}, {testing::effort_port("p")}, {}}, std::move(s),
        SparseMatrix(Eigen::MatrixXd::Identity(2, 2).sparseView()),
        LinearPortHamiltonian::Options{.allow_active = true});
    if (damping == -2.0 / kStep) {
      EXPECT_THROW(port_response(part, kStep), ConfigError);
    } else {
      EXPECT_DOUBLE_EQ(port_response(part, kStep)(0, 0), 0.5 * kStep);
    }
  }
}

TEST(Matched, ValuesOfTheReferencePair) {
  const auto B = linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50});
  EXPECT_NEAR(matched_impedances(*B, 0.01)[0], 800.25, 1e-9);
  const auto A = duffing_oscillator({.mass_kg = 8,
                                     .stiffness_N_per_m = 100,
                                     .cubic_stiffness_N_per_m3 = 8000,
                                     .coupling_stiffness_N_per_m = 120,
                                     .coupling_damping_Ns_per_m = 0.05});
  EXPECT_NEAR(matched_impedances(*A, 0.01)[0], 0.64974, 5e-6);
}

TEST(Matched, PortsWithoutAMatchTakeWhatTheySee) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 2}));
  builder.join(joint::Resistive{0.0}, {"a.coupling"});
  const System system = builder.build();
  const TunedImpedance tuned = tune_impedance(PortResponses(system, 0.01), ImpedanceKind::matched);
  ASSERT_EQ(tuned.by_port.size(), 2U);
  EXPECT_NEAR(tuned.by_port[0], 400.0, 1e-9);
  EXPECT_EQ(tuned.by_port[0], tuned.by_port[1]);
}

/// λ_min of sym(D) − DᵀD: firmly nonexpansive when ≥ 0.
double fne_margin(const PortResponses& responses, std::span<const double> impedance) {
  const Eigen::MatrixXd D = wave_matrices(responses, impedance).D;
  const Eigen::MatrixXd form = 0.5 * (D + D.transpose()) - D.transpose() * D;
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(form).eigenvalues().minCoeff();
}

TEST(Fne, OfTheReferencePair) {
  const System system = testing::duffing_linear_pair();
  PortResponses responses(system, 0.01);
  const std::vector<double> rest(3, 0.0);
  responses.linearise([&](int) { return std::span<const double>(rest); });
  EXPECT_GT(fne_margin(responses, std::vector<double>(2, 0.4)), 0.0);
  const double fails = fne_margin(responses, std::vector<double>(2, 0.65));
  EXPECT_LT(fails, 0.0);
  EXPECT_GT(fails, -1e-3);
}

TEST(Fne, IsTheLargestScalingOfTheMatch) {
  const std::vector<System> systems = [] {
    std::vector<System> out;
    out.push_back(testing::star_on_hub(8, 10.0));
    out.push_back(testing::ring_of_junctions());
    out.push_back(testing::random_mass_tree(12, 10.0, 5));
    out.push_back(testing::duffing_grid(3, 3));
    out.push_back(testing::chain_of_blocks(3, 5));
    return out;
  }();
  for (std::size_t s = 0; s < systems.size(); ++s) {
    for (const double h : {1e-3, 1e-2, 0.1}) {
      const PortResponses responses(systems[s], h);
      const TunedImpedance tuned = tune_impedance(responses, ImpedanceKind::fne);
      ASSERT_FALSE(tuned.by_port.empty()) << s << " h=" << h << ": " << tuned.problem;
      EXPECT_GT(fne_margin(responses, tuned.by_port), -1e-10) << s << " h=" << h;
      std::vector<double> larger = tuned.by_port;
      for (double& value : larger) value *= 1.01;
      EXPECT_LT(fne_margin(responses, larger), -1e-6) << s << " h=" << h;
    }
  }
}

TEST(Fne, NamesThePartThatHasNone) {
  // A part that is a gyrator: no loss and no storage, f = Y e with Y skew.
  testing::LinearMatrices m(0, 2);
  Structure s = Structure::zero(0, 2);
  s.N.insert(0, 1) = 1.0;
  s.N.insert(1, 0) = -1.0;
  Signature signature{"gyrator", {}, {testing::effort_port("p"), testing::effort_port("q")}, {}};
  SystemBuilder builder;
  builder.add("mass", linear_oscillator({.mass_kg = 2}));
  builder.add("turner", std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s),
                                                                SparseMatrix(0, 0)));
  builder.connect("mass.coupling", "turner.p");
  builder.join(joint::Free{}, {"turner.q"});
  const System system = builder.build();
  const PortResponses responses(system, 0.01);
  const TunedImpedance tuned = tune_impedance(responses, ImpedanceKind::fne);
  EXPECT_TRUE(tuned.by_port.empty());
  EXPECT_NE(tuned.problem.find("\"turner\""), std::string::npos) << tuned.problem;
  WaveCoupling method;
  method.impedance_kind = ImpedanceKind::fne;
  EXPECT_THROW(choose_method(responses, method), ConfigError);
}

TEST(Leaf, BothPortsOfAConnectionTakeTheSideThatInteractsLess) {
  const System system = testing::star_on_hub(6, 10.0);
  const PortResponses responses(system, 0.01);
  const std::vector<double> leaf = tune_impedance(responses, ImpedanceKind::leaf).by_port;
  for (int limb = 1; limb <= 6; ++limb) {
    const int port = system.first_scalar_port(limb);
    EXPECT_NEAR(leaf[at(port)],
                matched_impedances(*system.parts()[at(limb)].port_hamiltonian(), 0.01)[0], 1e-12);
    EXPECT_EQ(leaf[at(port)], leaf[at(limb - 1)]);
  }
}

TEST(Leaf, TiesGoToTheLinearPart) {
  const System system = testing::duffing_linear_pair();
  const std::vector<double> leaf =
      tune_impedance(PortResponses(system, 0.01), ImpedanceKind::leaf).by_port;
  EXPECT_NEAR(leaf[0], 800.25, 1e-9);
  EXPECT_EQ(leaf[0], leaf[1]);
}

TEST(Leaf, CrossesTransformersAndGyrators) {
  for (const bool gyrator : {false, true}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1}));
    builder.add("B", linear_oscillator({.mass_kg = 3}));
    if (gyrator) {
      builder.join(joint::Gyrator{4.0}, {"A.coupling", "B.coupling"});
    } else {
      builder.join(joint::Transformer{4.0}, {"A.coupling", "B.coupling"});
    }
    const System system = builder.build();
    const std::vector<double> leaf =
        tune_impedance(PortResponses(system, 0.01), ImpedanceKind::leaf).by_port;
    EXPECT_NEAR(leaf[0], 200.0, 1e-9);
    EXPECT_NEAR(leaf[1], gyrator ? 16.0 / 200.0 : 200.0 / 16.0, 1e-9) << gyrator;
  }
}

/// Entries of P and D on the diagonal, one per scalar port: which end of the edge is
/// reflection-free.
TEST(Adapted, EveryEdgeOfATreeIsWithoutReflectionAtOneEnd) {
  for (const bool on_bus : {false, true}) {
    const System system = testing::dc_motors(5, on_bus);
    const PortResponses responses(system, 1e-3);
    const std::vector<double> gamma = tune_impedance(responses, ImpedanceKind::adapted).by_port;
    const testing::WaveMatrices m = wave_matrices(responses, gamma);
    for (Eigen::Index j = 0; j < m.P.rows(); ++j) {
      EXPECT_LT(std::min(std::abs(m.P(j, j)), std::abs(m.D(j, j))), 1e-10)
          << system.port_label(static_cast<int>(j));
    }
    // so waves go to the root and back, and no further
    EXPECT_LT(testing::peaceman_rachford_rate(m), 0.05);
    const auto matched = tune_impedance(responses, ImpedanceKind::matched).by_port;
    EXPECT_GT(testing::peaceman_rachford_rate(wave_matrices(responses, matched)), 0.5);
  }
}

TEST(Adapted, ATreeOfLinearPartsIsSolvedInFinitelyManyEvaluations) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const System system = testing::random_dense_tree(15, 10.0, seed);
    const PortResponses responses(system, 1e-2);
    const auto m =
        wave_matrices(responses, tune_impedance(responses, ImpedanceKind::adapted).by_port);
    Eigen::MatrixXd power = Eigen::MatrixXd::Identity(m.P.rows(), m.P.cols());
    for (int k = 0; k < 32; ++k) power = m.P * m.D * power;
    EXPECT_LT(power.cwiseAbs().maxCoeff(), 1e-10) << seed;
  }
}

TEST(Adapted, LoopsTakeFinitePositiveValues) {
  const System system = testing::duffing_grid(4, 5);
  const auto tuned = tune_impedance(PortResponses(system, 1e-2), ImpedanceKind::adapted);
  ASSERT_EQ(tuned.by_port.size(), system.scalar_ports().size());
  for (const double value : tuned.by_port) EXPECT_TRUE(value > 0.0 && std::isfinite(value));
}

TEST(Across, NonlinearPartsTakeWhatTheySeeAndLinearOnesTheirMatch) {
  const System system = testing::duffing_linear_pair();
  const PortResponses responses(system, 0.01);
  const std::vector<double> matched = tune_impedance(responses, ImpedanceKind::matched).by_port;
  const std::vector<double> across = tune_impedance(responses, ImpedanceKind::across).by_port;
  const bool is_first_linear = system.parts()[0].component->capabilities().linear;
  const std::size_t linear = is_first_linear ? 0 : 1;
  EXPECT_EQ(across[linear], matched[linear]);
  EXPECT_NEAR(across[1 - linear], matched[linear], 1e-12 * matched[linear]);
  EXPECT_GT(std::abs(matched[1 - linear] - matched[linear]), 0.1 * matched[linear]) << "a control";
}

TEST(Across, IsTheMatchWhereTwoNonlinearPartsMeet) {
  const System grid = testing::duffing_grid(3, 3);
  const PortResponses responses(grid, 0.01);
  EXPECT_EQ(tune_impedance(responses, ImpedanceKind::across).by_port,
            tune_impedance(responses, ImpedanceKind::matched).by_port);
}

/// A mass whose lever arm grows with its place, and which has no answer beyond `limit`; each such question
/// is counted.
System mass_on_a_lever(double limit, int& beyond) {
  Hamiltonian H;
  H.value = [](const double* x) { return 0.5 * (x[0] * x[0] + x[1] * x[1]); };
  H.gradient = [](const double* x, double* g) {
    g[0] = x[0];
    g[1] = x[1];
  };
  NonlinearPortHamiltonian::Options options;
  options.typical_state = {1.0, 1.0};
  options.structure_at = [limit, &beyond](const double* x, Structure& out) {
    if (std::abs(x[0]) > limit) {
      ++beyond;
      throw std::runtime_error("the lever ends here");
    }
    out.G.coeffRef(1, 0) = 1.0 + x[0];
  };
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  SystemBuilder builder;
  builder.add("mass", std::make_unique<NonlinearPortHamiltonian>(
                          Signature{"mass_on_a_lever",
                                    {{"x", "m"}, {"p", "kg m/s"}},
                                    {{"port", Causality::effort_in, Domain::translation, 1}},
                                    {}},
                          std::move(structure), std::move(H), std::move(options)));
  builder.join(joint::Free{}, {"mass.port"});
  return builder.build();
}

TEST(Responses, DoNotAskForMoreThanAPartCanAnswer) {
  int beyond = 0, never = 0;
  const System limited = mass_on_a_lever(1.5, beyond), unlimited = mass_on_a_lever(1e9, never);
  beyond = 0;
  const PortResponses own(limited, 0.01), other(unlimited, 0.01);
  EXPECT_EQ(tune_impedance(own, ImpedanceKind::matched).by_port,
            tune_impedance(other, ImpedanceKind::matched).by_port);
  EXPECT_GT(beyond, 0) << "the control: twice its usual state is beyond";
  EXPECT_EQ(never, 0);
}

TEST(Names, OfMethodsAndRules) {
  EXPECT_EQ(to_string(WaveUpdate::douglas_rachford), "douglas-rachford");
  EXPECT_EQ(to_string(WaveUpdate::peaceman_rachford), "peaceman-rachford");
  EXPECT_EQ(to_string(WaveUpdate::automatic), "auto");
  EXPECT_EQ(to_string(ImpedanceKind::given), "given");
  EXPECT_EQ(to_string(ImpedanceKind::fne), "fne");
  EXPECT_EQ(to_string(ImpedanceKind::matched), "matched");
  EXPECT_EQ(to_string(ImpedanceKind::leaf), "leaf");
  EXPECT_EQ(to_string(ImpedanceKind::adapted), "adapted");
  EXPECT_EQ(to_string(ImpedanceKind::across), "across");
  EXPECT_EQ(to_string(ImpedanceKind::automatic), "auto");
}

/// Capacitors behind resistors, tied by transformers that have no impedance of their own.
System behind_transformers(double ohm) {
  SystemBuilder builder;
  for (const int i : {0, 1}) {
    const std::string own = std::to_string(i);
    builder.add("c" + own, make_part("capacitor", {{"capacitance_F", (1.0 + i) / ohm}}));
    builder.add("r" + own, make_part("resistor", {{"resistance_ohm", (2.0 + i) * ohm}}));
    builder.add("t" + own, make_part("electrical_transformer", {{"ratio", 1.0}}));
    builder.join(joint::CommonFlow{},
                 {"c" + own + ".terminals", "r" + own + ".terminals", "t" + own + ".primary"});
  }
  builder.add("between", make_part("electrical_transformer", {{"ratio", 2.0}}));
  builder.connect("t0.secondary", "between.primary");
  builder.connect("between.secondary", "t1.secondary");
  return builder.build();
}

// Where no part of a joint has a match, the impedance is of the size of others: no unit is better than another.
TEST(Tuning, ImpedancesWithoutAMatchHaveTheUnitsOfOthers) {
  for (const ImpedanceKind kind : {ImpedanceKind::matched, ImpedanceKind::leaf}) {
    const auto of = [kind](double ohm) {
      const System system = behind_transformers(ohm);
      return tune_impedance(PortResponses(system, 0.01), kind).by_port;
    };
    const std::vector<double> one = of(1.0);
    for (const double unit : {0x1p-30, 0x1p-10, 0x1p20, 0x1p30}) {
      const std::vector<double> other = of(unit);
      ASSERT_EQ(other.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_NEAR(other[i] / (unit * one[i]), 1.0, 1e-12) << i << " " << unit;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_tuning
