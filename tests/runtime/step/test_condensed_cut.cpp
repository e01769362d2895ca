#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/system/cut.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/descriptor/second_order.hpp>

#include "support/systems/large_structures.hpp"

namespace portwave::test_condensed_cut {
namespace {

using PartPointer = std::shared_ptr<const DescriptorPortHamiltonian>;

constexpr int kSide = 34;  // 1156 coordinates: pieces are condensed from 1000 on

Port force(const std::string& name) { return {name, Causality::effort_in, Domain::generic, 1}; }

/// A plate by finite differences, K = L Lᵀ: not diagonally dominant. `damping`: 0 none, 1 Rayleigh's,
/// 2 dashpots to the ground that are no multiple of M or K, 3 also gyroscopic.
SecondOrderForm plate(int damping, bool consistent) {
  constexpr int n = kSide * kSide;
  std::vector<Eigen::Triplet<double>> L, M, D, G;
  for (int i = 0; i < n; ++i) {
    const int x = i % kSide;
    L.emplace_back(i, i, 4.0);
    M.emplace_back(i, i, 1.0 + 0.1 * (i % 3));
    if (damping >= 2) D.emplace_back(i, i, 0.3 * (i % 4));
    for (const int j : {x > 0 ? i - 1 : -1, x + 1 < kSide ? i + 1 : -1, i - kSide, i + kSide}) {
      if (j < 0 || j >= n) continue;
      L.emplace_back(i, j, -1.0);
      if (consistent) M.emplace_back(i, j, 0.1);
      if (damping == 3 && j == i + 1) {
        D.emplace_back(i, j, 0.2);
        D.emplace_back(j, i, -0.2);
      }
    }
  }
  const auto matrix = [](const auto& entries) {
    SparseMatrix out(n, n);
    out.setFromTriplets(entries.begin(), entries.end());
    return out;
  };
  const SparseMatrix laplacian = matrix(L);
  SecondOrderForm form{
      .M = matrix(M), .D = matrix(D), .K = 40.0 * (laplacian * laplacian), .B = {}};
  if (damping == 1) form.D = SparseMatrix(0.2 * form.M + 1e-3 * form.K);
  // Ports in the middle of a piece, on the middle line, over two far corners; a load everywhere.
  std::vector<std::pair<int, double>> everywhere;
  for (int i = 0; i < n; ++i) everywhere.emplace_back(i, 0.01 * (i % 7));
  form.B = testing::columns(n, {{{5 * kSide + 5, 1.0}},
                                {{kSide / 2 * kSide + kSide / 2, 0.5}},
                                {{0, 1.0}, {n - 1, -1.0}},
                                everywhere});
  return form;
}

PartPointer part_of(const SecondOrderForm& form) {
  return testing::second_order_part(form, {force("inside"), force("middle"), force("corners")},
                                    {{"load", "N"}});
}

int condensed_pieces(const Cut& cut) {
  int count = 0;
  for (const CutPiece& piece : cut.pieces) {
    const auto* own = dynamic_cast<const DescriptorPortHamiltonian*>(piece.component.get());
    if (own != nullptr && own->condensed() != nullptr) ++count;
  }
  return count;
}

System system_of(const PartPointer& part, const Cut* cut) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  for (int i = 0; i < part->signature().state_size(); ++i) {
    options.initial_state.push_back(0.01 * std::sin(0.01 * i * i));
  }
  options.inputs.emplace("load", Signal::sine_product(2.0, {{3.0, 0.3}}));
  if (cut != nullptr) {
    add_pieces(builder, "plate", *part, *cut, options);
    join_pieces(builder, "plate", *cut);
  } else {
    builder.add("plate", part, options);
  }
  const auto path = [&](int port) {
    return cut != nullptr ? path_of("plate", *cut, cut->ports[static_cast<std::size_t>(port)])
                          : "plate." + part->signature().ports[static_cast<std::size_t>(port)].name;
  };
  builder.add("other", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 30.0}),
              {.initial_state = {0.1, -0.2}});
  builder.connect(path(0), "other.coupling");
  builder.join(joint::Resistive{0.7}, {path(1)});
  builder.join(joint::Free{}, {path(2)});
  return builder.build();
}

struct Motion {
  std::vector<double> state;
  EnergyTotals energy;
  double other = 0.0;
  std::string reason;
};

Motion run(const PartPointer& part, const Cut* cut, double h, int steps, int threads = 1) {
  const System system = system_of(part, cut);
  Stepper stepper(system, {.step_s = h,
                           .start = Start::as_given,
                           .method = CouplingMethod::automatic(1e-13),
                           .threads = threads});
  stepper.step(steps);
  Motion out{
      {}, stepper.energy(), stepper.state(system.find_part("other"))[0], stepper.method().reason};
  if (cut == nullptr) {
    const auto x = stepper.state(0);
    out.state.assign(x.begin(), x.end());
  } else {
    for (const Cut::Place& place : cut->states) {
      out.state.push_back(stepper.state(place.piece)[static_cast<std::size_t>(place.state)]);
    }
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  const EnergyTotals& e = out.energy;
  EXPECT_NEAR(e.final_J - e.initial_J, e.supplied_J - e.dissipated_J - e.mismatch_J,
              1e-11 * e.max_J);
  return out;
}

void expect_same(const Motion& a, const Motion& b, double tolerance) {
  double size = 0.0, gap = 0.0;
  for (std::size_t i = 0; i < a.state.size(); ++i) {
    size = std::max(size, std::abs(a.state[i]));
    gap = std::max(gap, std::abs(a.state[i] - b.state[i]));
  }
  EXPECT_LE(gap, tolerance * size);
  EXPECT_NEAR(a.other, b.other, tolerance);
  EXPECT_NEAR(a.energy.final_J, b.energy.final_J, 10 * tolerance * a.energy.max_J);
  EXPECT_NEAR(a.energy.dissipated_J, b.energy.dissipated_J, 10 * tolerance * a.energy.max_J);
  EXPECT_NEAR(a.energy.supplied_J, b.energy.supplied_J, 10 * tolerance * a.energy.max_J);
}

TEST(CondensedCut, StepsAsTheUncutPlate) {
  for (const bool consistent : {false, true}) {
    for (const int damping : {0, 1, 2}) {
      const PartPointer part = part_of(plate(damping, consistent));
      const Cut cut = cut_part(*part, 4);
      EXPECT_GE(condensed_pieces(cut), 5) << "four pieces and what lies between";
      for (const double h : {1e-3, 3e-2}) {
        SCOPED_TRACE(fmt::format("damping {} consistent {} h {}", damping, consistent, h));
        const Motion pieces = run(part, &cut, h, 12);
        expect_same(run(part, nullptr, h, 12), pieces, 1e-9);
        EXPECT_NE(pieces.reason.find("interface equation"), std::string::npos) << pieces.reason;
      }
    }
  }
}

TEST(CondensedCutControl, AnotherStiffnessMovesOtherwise) {
  const PartPointer part = part_of(plate(1, false));
  SecondOrderForm other = plate(1, false);
  other.K.coeffRef(500, 500) *= 1.01;
  const PartPointer stiffer = part_of(other);
  const Cut cut = cut_part(*stiffer, 4);
  const Motion a = run(part, nullptr, 1e-2, 12), b = run(stiffer, &cut, 1e-2, 12);
  double gap = 0.0;
  for (std::size_t i = 0; i < a.state.size(); ++i)
    gap = std::max(gap, std::abs(a.state[i] - b.state[i]));
  EXPECT_GT(gap, 1e-7);
}

TEST(CondensedCut, IsTheSameOnAnyNumberOfThreads) {
  const PartPointer part = part_of(plate(1, false));
  const Cut cut = cut_part(*part, 5);
  EXPECT_EQ(run(part, &cut, 1e-2, 10, 1).state, run(part, &cut, 1e-2, 10, 2).state);
}

// What is left as it was.
TEST(CondensedCut, PiecesWithFewPortsAreCutAsBefore) {
  const Cut beam = cut_part(*testing::second_order_part(testing::beam_form({.elements = 600}),
                                                        {force("tip")}, {{"load", "N"}}),
                            4);
  EXPECT_EQ(condensed_pieces(beam), 0);
}

TEST(ProportionalDamping, IsFoundWhereItIs) {
  const auto found = proportional_damping(plate(1, true));
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->of_mass, 0.2, 1e-12);
  EXPECT_NEAR(found->of_stiffness, 1e-3, 1e-15);
  EXPECT_FALSE(proportional_damping(plate(2, true)).has_value());
  EXPECT_FALSE(proportional_damping(plate(3, false)).has_value());
  const auto none = proportional_damping(plate(0, false));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->of_mass, 0.0);
  EXPECT_EQ(none->of_stiffness, 0.0);
}

/// M of a chain of `n` bars with consistent masses, of which bar `gone` has none but for its ends'.
SecondOrderForm chain(int n, bool is_singular) {
  std::vector<Eigen::Triplet<double>> M, K;
  for (int i = 0; i < n; ++i) {
    M.emplace_back(i, i, is_singular && i == 7 ? 0.0 : 4.0);
    K.emplace_back(i, i, 2.0);
    if (i + 1 == n || (is_singular && (i == 6 || i == 7))) continue;
    M.emplace_back(i, i + 1, 1.5);
    M.emplace_back(i + 1, i, 1.5);
  }
  SecondOrderForm form{SparseMatrix(n, n), SparseMatrix(n, n), SparseMatrix(n, n),
                       testing::columns(n, {{{0, 1.0}}})};
  form.M.setFromTriplets(M.begin(), M.end());
  form.K.setFromTriplets(K.begin(), K.end());
  return form;
}

// No rank is judged where M is plainly definite; where it is not, it still is.
TEST(LargeSecondOrder, SingularMassesAreRefusedAtAnySize) {
  for (const int n : {40, 3000}) {
    EXPECT_TRUE(validate(chain(n, false), n, 1).empty()) << n;
    const Issues issues = validate(chain(n, true), n, 1);
    ASSERT_EQ(issues.size(), 1U) << n;
    EXPECT_EQ(issues[0].where, "/M");
    EXPECT_NE(issues[0].what.find(fmt::format("singular (rank {} of {})", n - 1, n)),
              std::string::npos)
        << issues[0].what;
  }
}

TEST(LargeSecondOrder, EveryDefectIsFoundBesideTheOthers) {
  SecondOrderForm form = chain(3000, false);
  form.K.coeffRef(5, 5) = -1.0;
  form.D.coeffRef(9, 9) = -1.0;
  form.M.coeffRef(0, 1) = 3.0;
  const Issues issues = validate(form, 3000, 1);
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].where, "/M");
  EXPECT_EQ(issues[1].where, "/D");
  EXPECT_EQ(issues[2].where, "/K");
}

}  // namespace
}  // namespace portwave::test_condensed_cut
