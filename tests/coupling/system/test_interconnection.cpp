#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/system/interconnection.hpp"

namespace portwave::test_interconnection {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Named {
  std::string name;
  DiracStructure dirac;
};

std::vector<Named> all_junctions() {
  MatrixXd skew(3, 3);
  skew << 0, 1.5, -0.3, -1.5, 0, 2.0, 0.3, -2.0, 0;
  return {{"connection", DiracStructure::connection()},
          {"common_effort_3", DiracStructure::common_effort(3)},
          {"common_effort_7", DiracStructure::common_effort(7)},
          {"common_flow_2", DiracStructure::common_flow(2)},
          {"common_flow_5", DiracStructure::common_flow(5)},
          {"transformer", DiracStructure::transformer(-2.5)},
          {"gyrator", DiracStructure::gyrator(0.7)},
          {"skew_gain", DiracStructure::skew_gain(skew, {Causality::effort_in, Causality::flow_in,
                                                         Causality::effort_in})},
          {"free", DiracStructure::free()},
          {"fixed", DiracStructure::fixed()}};
}

/// Every junction once, over consecutive offsets of one wave vector.
std::vector<Junction> side_by_side(const std::vector<Named>& all, int& size) {
  std::vector<Junction> junctions;
  size = 0;
  for (const Named& named : all) {
    Junction junction{named.dirac, std::vector<int>(static_cast<std::size_t>(named.dirac.size()))};
    std::iota(junction.waves.begin(), junction.waves.end(), size);
    size += named.dirac.size();
    junctions.push_back(std::move(junction));
  }
  return junctions;
}

Interconnection couple(const std::vector<Junction>& junctions, const std::vector<double>& gamma) {
  return Interconnection(junctions, gamma);
}

std::vector<double> random_values(int count, std::uint64_t seed, bool positive) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> exponent(-2, 2);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(positive ? std::pow(10.0, exponent(generator)) : exponent(generator));
  }
  return values;
}

VectorXd gather(const std::vector<int>& offsets, const std::vector<double>& values) {
  VectorXd out(static_cast<Eigen::Index>(offsets.size()));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    out[static_cast<Eigen::Index>(i)] = values[static_cast<std::size_t>(offsets[i])];
  }
  return out;
}

bool is_orthogonal(const MatrixXd& P) {
  return (P.transpose() * P - MatrixXd::Identity(P.rows(), P.cols())).cwiseAbs().maxCoeff() < 1e-13;
}

TEST(Interconnection, AppliesTheOrthogonalWaveMapOfEveryJunction) {
  const std::vector<Named> all = all_junctions();
  int size = 0;
  const std::vector<Junction> junctions = side_by_side(all, size);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> gamma = random_values(size, seed, true);
    const Interconnection coupling(junctions, gamma);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const MatrixXd P = wave_map(junctions[i].dirac, gather(junctions[i].waves, gamma));
      const MatrixXd applied = coupling.block(static_cast<int>(i));
      EXPECT_LT((applied - P).cwiseAbs().maxCoeff(), 1e-13) << all[i].name << " seed=" << seed;
      EXPECT_TRUE(is_orthogonal(applied)) << all[i].name << " seed=" << seed;
    }
  }
}

// Between |P| x and that and what a reflection takes away again, x = |b|, in every form that loops have.
TEST(Interconnection, MagnitudesAreThoseOfTheTermsOfTheExchange) {
  std::vector<Named> all = all_junctions();
  int size = 0;
  std::vector<Junction> junctions = side_by_side(all, size);
  constexpr int kSide = 12;  // as many as make a run of their own
  for (const DiracStructure& dirac : {DiracStructure::connection(), DiracStructure::transformer(3),
                                      DiracStructure::common_effort(3)}) {
    for (int i = 0; i < kSide; ++i) {
      Junction junction{dirac, {}};
      for (int k = 0; k < dirac.size(); ++k) junction.waves.push_back(size + k * kSide + i);
      junctions.push_back(std::move(junction));
    }
    size += kSide * dirac.size();
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> gamma = random_values(size, seed, true);
    if (seed % 2 == 0) std::ranges::fill(gamma, 0.3);  // swaps, and normals that are shared
    const Interconnection coupling(junctions, gamma);
    const std::vector<double> b = random_values(size, seed + 200, false);
    std::vector<double> m(b.size(), -1.0);
    coupling.all().magnitudes(b.data(), m.data());
    for (std::size_t i = 0; i < junctions.size(); ++i) {
      const VectorXd x = gather(junctions[i].waves, b).cwiseAbs();
      const VectorXd least = coupling.block(static_cast<int>(i)).cwiseAbs() * x;
      const VectorXd own = gather(junctions[i].waves, m);
      EXPECT_GE((own - least * (1.0 - 1e-13)).minCoeff(), 0.0) << i << " seed=" << seed;
      EXPECT_GE((least + 2.0 * x - own * (1.0 - 1e-13)).minCoeff(), 0.0) << i << " seed=" << seed;
    }
  }
}

TEST(InterconnectionControl, OrthogonalityCanFail) {
  EXPECT_FALSE(is_orthogonal((MatrixXd(2, 2) << 0, 1, 1, 1e-6).finished()));
}

TEST(Interconnection, ResolventInvertsTwoMinusP) {
  const std::vector<Named> all = all_junctions();
  int size = 0;
  const std::vector<Junction> junctions = side_by_side(all, size);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> gamma = random_values(size, seed, true);
    const Interconnection coupling(junctions, gamma);
    for (int i = 0; i < coupling.size(); ++i) {
      const MatrixXd P = coupling.block(i);
      const MatrixXd I = MatrixXd::Identity(P.rows(), P.cols());
      EXPECT_LT(((2 * I - P) * coupling.resolvent_block(i) - I).cwiseAbs().maxCoeff(), 1e-13)
          << all[static_cast<std::size_t>(i)].name << " seed=" << seed;
    }
  }
}

TEST(Interconnection, KeepsClosedForms) {
  using Form = JunctionForm;
  const auto form = [](const DiracStructure& dirac, std::vector<double> gamma) {
    std::vector<int> waves(gamma.size());
    std::iota(waves.begin(), waves.end(), 0);
    return couple({{dirac, waves}}, gamma).form(0);
  };
  EXPECT_EQ(form(DiracStructure::connection(), {0.4, 0.4}), Form::swap);
  EXPECT_EQ(form(DiracStructure::connection(), {0.4, 3.0}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::common_effort(5), {1, 2, 3, 4, 5}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::common_flow(4), {1, 0.2, 30, 4}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::transformer(3), {1, 0.2}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::free(), {0.7}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::fixed(), {0.7}), Form::reflection);
  EXPECT_EQ(form(DiracStructure::gyrator(3), {1, 0.2}), Form::dense);
}

TEST(Interconnection, KeepsClosedFormsWhenImpedancesAreFarApart) {
  const int k = 64;
  std::vector<double> gamma;
  std::vector<int> waves;
  for (int j = 0; j < k; ++j) {
    gamma.push_back(std::pow(10.0, -4.0 + 8.0 * ((7 * j) % k) / (k - 1.0)));
    waves.push_back(j);
  }
  const Interconnection coupling = couple({{DiracStructure::common_effort(k), waves}}, gamma);
  ASSERT_EQ(coupling.form(0), JunctionForm::reflection);
  VectorXd n(k);  // P = 2nnᵀ − I, n_j ∝ γ_j^−½
  for (int j = 0; j < k; ++j) n[j] = 1.0 / std::sqrt(gamma[static_cast<std::size_t>(j)]);
  n.normalize();
  const MatrixXd expected = 2.0 * n * n.transpose() - MatrixXd::Identity(k, k);
  EXPECT_LT((coupling.block(0) - expected).cwiseAbs().maxCoeff(), 1e-15);
}

TEST(Interconnection, RecognisesAReflectionInAMixedKernel) {
  // A 0-junction whose kernel rows are mixed, so that none is a plain balance.
  const DiracStructure plain = DiracStructure::common_effort(3);
  const MatrixXd mix = (MatrixXd(3, 3) << 1, 2, 0, 0, 1, -1, 1, 0, 1).finished();
  const DiracStructure mixed{mix * plain.E, mix * plain.F};
  const std::vector<double> gamma = {1, 2, 3};
  const Interconnection a = couple({{plain, {0, 1, 2}}}, gamma);
  const Interconnection b = couple({{mixed, {0, 1, 2}}}, gamma);
  EXPECT_EQ(b.form(0), JunctionForm::reflection);
  EXPECT_LT((a.block(0) - b.block(0)).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(Interconnection, GyratorWithMatchedImpedancesHasTheClosedResolvent) {
  const double r = 3.0;
  const Interconnection coupling =
      couple({{DiracStructure::gyrator(r), {0, 1}}}, std::vector<double>{1.5, r * r / 1.5});
  const MatrixXd P = coupling.block(0);
  const MatrixXd I = MatrixXd::Identity(2, 2);
  EXPECT_LT((P * P + I).cwiseAbs().maxCoeff(), 1e-14);
  EXPECT_LT((coupling.resolvent_block(0) - (2 * I + P) / 5).cwiseAbs().maxCoeff(), 1e-15);
}

TEST(Interconnection, DouglasRachfordUpdateIsItsDefinition) {
  const std::vector<Named> all = all_junctions();
  int size = 0;
  const std::vector<Junction> junctions = side_by_side(all, size);
  for (const double relaxation : {0.3, 1.0, 1.9}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const std::vector<double> gamma = random_values(size, seed, true);
      const Interconnection coupling(junctions, gamma);
      const std::vector<double> b = random_values(size, seed + 100, false);
      const std::vector<double> u = random_values(size, seed + 200, false);
      std::vector<double> updated = u;
      coupling.all().resolve(relaxation, b.data(), updated.data());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<int>& waves = junctions[i].waves;
        const MatrixXd P = wave_map(junctions[i].dirac, gather(waves, gamma));
        const MatrixXd I = MatrixXd::Identity(P.rows(), P.cols());
        const VectorXd bi = gather(waves, b), ui = gather(waves, u);
        const VectorXd expected = ui + relaxation * ((2 * I - P).lu().solve(2 * bi - ui) - bi);
        EXPECT_LT((gather(waves, updated) - expected).cwiseAbs().maxCoeff(), 1e-13)
            << all[i].name << " lambda=" << relaxation << " seed=" << seed;
      }
    }
  }
}

TEST(Interconnection, AveragedUpdateIsItsDefinition) {
  const std::vector<Named> all = all_junctions();
  int size = 0;
  const std::vector<Junction> junctions = side_by_side(all, size);
  for (const double relaxation : {0.1, 0.5, 0.9, 1.0}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const std::vector<double> gamma = random_values(size, seed, true);
      const Interconnection coupling(junctions, gamma);
      const std::vector<double> b = random_values(size, seed + 100, false);
      const std::vector<double> u = random_values(size, seed + 200, false);
      std::vector<double> updated = u, exchanged(u.size());
      coupling.all().average(relaxation, b.data(), updated.data());
      coupling.exchange(b.data(), exchanged.data());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<int>& waves = junctions[i].waves;
        const MatrixXd P = wave_map(junctions[i].dirac, gather(waves, gamma));
        const VectorXd bi = gather(waves, b), ui = gather(waves, u);
        const VectorXd expected = ui + relaxation * (P * bi - ui);
        EXPECT_LT((gather(waves, updated) - expected).cwiseAbs().maxCoeff(), 1e-13)
            << all[i].name << " theta=" << relaxation << " seed=" << seed;
      }
      if (relaxation == 1.0) {
        EXPECT_EQ(updated, exchanged) << "seed=" << seed;
      }
    }
  }
}

/// `count` junctions of one kind, position by position side by side, or all over the place.
std::vector<Junction> many(const DiracStructure& dirac, int count, bool scattered) {
  std::vector<int> offsets(static_cast<std::size_t>(count * dirac.size()));
  std::iota(offsets.begin(), offsets.end(), 0);
  if (scattered) std::shuffle(offsets.begin(), offsets.end(), std::mt19937_64(21));
  std::vector<Junction> junctions;
  for (int i = 0; i < count; ++i) {
    std::vector<int> own;
    for (int k = 0; k < dirac.size(); ++k) {
      own.push_back(offsets[static_cast<std::size_t>(k * count + i)]);
    }
    junctions.emplace_back(dirac, own);
  }
  return junctions;
}

// Runs of junctions that lie side by side are vectorised; those of scattered ones are not. Both
// give the bits of junctions one by one.
TEST(Interconnection, UpdatesDoNotDependOnHowJunctionsLie) {
  constexpr int kCount = 37;
  for (const Named& named : all_junctions()) {
    for (const bool equal : {true, false}) {
      for (const bool scattered : {false, true}) {
        const std::vector<Junction> junctions = many(named.dirac, kCount, scattered);
        const int size = kCount * named.dirac.size();
        std::vector<double> gamma = random_values(size, 31, true);
        if (equal) std::fill(gamma.begin(), gamma.end(), 0.7);
        const Interconnection coupling(junctions, gamma);
        const std::vector<double> b = random_values(size, 32, false);
        const std::vector<double> start = random_values(size, 33, false);
        for (const InnerUpdate& rule :
             {InnerUpdate{&peaceman_rachford(), 0.4}, InnerUpdate{&peaceman_rachford(), 1.0},
              InnerUpdate{&douglas_rachford(), 1.3}}) {
          std::vector<double> whole = start, single = start;
          coupling.update(rule, b.data(), whole.data());
          for (int i = 0; i < kCount; ++i) {
            coupling.compile(std::vector<int>{i}).update(rule, b.data(), single.data());
          }
          EXPECT_EQ(whole, single) << named.name << " equal=" << equal << " scattered=" << scattered
                                   << " " << rule.rule()->name() << " " << rule.relaxation();
        }
      }
    }
  }
}

/// Impedances of one Interconnection after another: some of them other ones, all alike, junctions
/// between equal ones, and back.
std::vector<std::vector<double>> changes_of_impedance(int size) {
  const auto random = [size](std::uint64_t seed) { return random_values(size, seed, true); };
  const std::vector<double> alike(static_cast<std::size_t>(size), 0.7);
  std::vector<std::vector<double>> out{random(41), alike, random(41), random(42)};
  for (int i = 0; i < size; i += 5) out.back()[static_cast<std::size_t>(i)] *= 3.0;
  out.push_back(out.back());
  std::copy_n(alike.begin(), size / 2, out.back().begin());
  out.push_back(alike);
  for (double& value : out.back()) value *= 1.01;
  return out;
}

// Weights are written into what is there, and loops compiled anew where a junction has another form.
TEST(Interconnection, WithOtherImpedancesIsTheOneMadeWithThem) {
  for (const Named& named : all_junctions()) {
    for (const bool scattered : {false, true}) {
      const std::vector<Junction> junctions = many(named.dirac, 24, scattered);
      const int size = 24 * named.dirac.size();
      const std::vector<double> b = random_values(size, 43, false);
      const std::vector<int> piece{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17};
      std::vector<int> reversed(static_cast<std::size_t>(size));
      for (int w = 0; w < size; ++w) reversed[static_cast<std::size_t>(w)] = size - 1 - w;
      const std::vector<std::vector<double>> changes = changes_of_impedance(size);
      Interconnection coupling(junctions, changes.front());
      CompiledJunctions own = coupling.compile(piece), mirrored = coupling.compile(piece, reversed);
      for (std::size_t i = 1; i < changes.size(); ++i) {
        coupling.set_impedance(changes[i]);
        coupling.recompile(own, piece);
        coupling.recompile(mirrored, piece, reversed);
        const Interconnection fresh(junctions, changes[i]);
        const auto results = [&](const CompiledJunctions& compiled) {
          std::vector<double> u = random_values(size, 44, false), a(u.size(), 0.0);
          compiled.resolve(1.2, b.data(), u.data());
          compiled.average(0.4, b.data(), u.data());
          compiled.exchange(b.data(), a.data());
          u.insert(u.end(), a.begin(), a.end());
          return u;
        };
        EXPECT_EQ(results(coupling.all()), results(fresh.all())) << named.name << " change " << i;
        EXPECT_EQ(results(own), results(fresh.compile(piece))) << named.name << " change " << i;
        EXPECT_EQ(results(mirrored), results(fresh.compile(piece, reversed)))
            << named.name << " change " << i;
        for (int j = 0; j < coupling.size(); ++j) {
          EXPECT_EQ(coupling.form(j), fresh.form(j)) << named.name << " change " << i;
        }
      }
    }
  }
}

TEST(Interconnection, PiecesEqualTheWholeBitByBit) {
  int size = 0;
  const std::vector<Junction> junctions = side_by_side(all_junctions(), size);
  const std::vector<double> gamma = random_values(size, 3, true);
  const Interconnection coupling(junctions, gamma);
  const std::vector<double> b = random_values(size, 4, false);
  std::vector<double> whole_a(b.size()), whole_u = random_values(size, 5, false);
  std::vector<double> piece_a(b.size()), piece_u = whole_u;
  coupling.exchange(b.data(), whole_a.data());
  coupling.all().resolve(1.2, b.data(), whole_u.data());
  for (int first = 0; first < coupling.size(); first += 3) {
    std::vector<int> piece(static_cast<std::size_t>(std::min(3, coupling.size() - first)));
    std::iota(piece.begin(), piece.end(), first);
    const CompiledJunctions compiled = coupling.compile(piece);
    compiled.exchange(b.data(), piece_a.data());
    compiled.resolve(1.2, b.data(), piece_u.data());
  }
  EXPECT_EQ(whole_a, piece_a);
  EXPECT_EQ(whole_u, piece_u);
}

TEST(Interconnection, JunctionsLargerThanTheStackBufferWork) {
  const int k = 130;
  MatrixXd skew = MatrixXd::Zero(k, k);
  std::mt19937_64 generator(9);
  std::normal_distribution<double> normal;
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < i; ++j) skew(j, i) = -(skew(i, j) = normal(generator));
  }
  std::vector<Causality> causalities(static_cast<std::size_t>(k), Causality::flow_in);
  std::vector<int> waves(static_cast<std::size_t>(k));
  std::iota(waves.begin(), waves.end(), 0);
  const std::vector<double> gamma = random_values(k, 2, true);
  const Interconnection coupling =
      couple({{DiracStructure::skew_gain(skew, causalities), waves}}, gamma);
  const MatrixXd P = coupling.block(0);
  const MatrixXd I = MatrixXd::Identity(k, k);
  EXPECT_LT(((2 * I - P) * coupling.resolvent_block(0) - I).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(Interconnection, RefusesWavesThatAreNotInExactlyOneJunction) {
  const DiracStructure connection = DiracStructure::connection();
  const std::vector<double> gamma = {1, 1, 1};
  EXPECT_THROW(couple({{connection, {0, 1}}}, gamma), ConfigError);
  EXPECT_THROW(couple({{connection, {0, 1}}, {connection, {1, 2}}}, gamma), ConfigError);
  EXPECT_THROW(couple({{connection, {0, 3}}}, gamma), ConfigError);
}

TEST(Interconnection, LeavesPaddingAlone) {
  const std::vector<double> gamma = {1, 7, 3, 7};
  const std::vector<Junction> junctions = {{DiracStructure::connection(), {0, 1}}};
  const std::vector<int> offset_of = {0, 2};
  const Interconnection coupling(junctions, offset_of, gamma);
  const std::vector<double> b = {0.5, NAN, -0.25, NAN};
  std::vector<double> a(4, 11.0), u = {0.1, 13.0, 0.2, 13.0};
  coupling.exchange(b.data(), a.data());
  coupling.all().resolve(1.0, b.data(), u.data());
  EXPECT_EQ(a[1], 11.0);
  EXPECT_EQ(a[3], 11.0);
  EXPECT_EQ(u[1], 13.0);
  EXPECT_EQ(u[3], 13.0);
  EXPECT_TRUE(std::isfinite(a[0]) && std::isfinite(u[2]));
  coupling.all().average(0.5, b.data(), u.data());
  EXPECT_EQ(u[1], 13.0);
  EXPECT_EQ(u[3], 13.0);
  EXPECT_TRUE(std::isfinite(u[0]) && std::isfinite(u[2]));
}

}  // namespace
}  // namespace portwave::test_interconnection
