// Step maps of several linear parts at a time: exact to a rounding, beside a second implementation; in
// the same bits whatever is solved for beside it, and left to it where lanes cannot solve exactly.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "linear/linear_sparsity.hpp"
#include "linear/step_maps.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_lane_step_maps {
namespace {

using Eigen::MatrixXd;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Draw {
  explicit Draw(std::uint64_t seed) : generator(seed) {}
  double operator()() { return normal(generator); }
  MatrixXd matrix(int rows, int columns) {
    return MatrixXd::NullaryExpr(rows, columns, [this] { return normal(generator); });
  }
  std::mt19937_64 generator;
  std::normal_distribution<double> normal;
};

struct Shape {
  int states = 6, ports = 2, inputs = 1;
  bool feedthrough = true;  ///< P, S and N
  double unit = 1.0;        ///< states are given in it, energies in joules
};

std::string input_name(int j) { return "u" + std::to_string(j); }

/// A passive part with everything that one can have, some entries of J and Q being zero: those that the
/// seed of its sparsity says.
std::unique_ptr<LinearPortHamiltonian> make_part(const Shape& shape, Draw& draw,
                                                 std::uint64_t sparsity = 7) {
  const int n = shape.states, m = shape.ports + shape.inputs;
  Draw places(sparsity);
  MatrixXd J = draw.matrix(n, n), L = draw.matrix(n, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      if (places() > 0.0) J(i, j) = J(j, i) = 0.0;
      L(i, j) = 0.0;
      if (places() > 0.5) L(j, i) = 0.0;
    }
  }
  // What dissipates is positive semidefinite: [R, P; Pᵀ, S].
  MatrixXd loss = 0.3 * draw.matrix(n + m, n + m);
  loss = (loss * loss.transpose()).eval();
  const MatrixXd N = draw.matrix(m, m);
  Structure structure = Structure::zero(n, m);
  structure.J = MatrixXd(J - J.transpose()).sparseView();
  structure.R = MatrixXd(loss.topLeftCorner(n, n)).sparseView();
  structure.G = (shape.unit * draw.matrix(n, m)).sparseView();
  if (shape.feedthrough) {
    structure.P = (shape.unit * loss.topRightCorner(n, m)).sparseView();
    structure.S = (shape.unit * shape.unit * loss.bottomRightCorner(m, m)).sparseView();
    structure.N = (shape.unit * shape.unit * (N - N.transpose())).sparseView();
  }
  Signature signature;
  signature.type = "random";
  for (int i = 0; i < n; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  for (int j = 0; j < shape.ports; ++j) {
    signature.ports.push_back(
        {.name = "p" + std::to_string(j),
         .causality = j % 2 == 0 ? Causality::effort_in : Causality::flow_in});
  }
  for (int j = 0; j < shape.inputs; ++j) signature.inputs.push_back({input_name(j), "1"});
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 SparseMatrix((L.transpose() * L).sparseView()));
}

class Parts {
 public:
  void add(std::unique_ptr<LinearPortHamiltonian> part, double step_s, double gamma) {
    const auto count = static_cast<std::size_t>(part->signature().wave_size());
    std::vector<double> impedance(count);
    for (std::size_t j = 0; j < count; ++j) impedance[j] = gamma * (1.0 + 0.5 * double(j));
    parts_.push_back({part.get(), port_closures(part->signature(), step_s, impedance.data())});
    owned_.push_back(std::move(part));
  }
  std::span<const LaneStepMaps::Part> all() const { return parts_; }
  const LaneStepMaps::Part& operator[](std::size_t i) const { return parts_[i]; }
  LinearSparsity sparsity() const {
    const LinearPortHamiltonian& first = *parts_[0].physics;
    return {first.Q(), first.structure(), first.signature().wave_size()};
  }

 private:
  std::vector<std::unique_ptr<LinearPortHamiltonian>> owned_;
  std::vector<LaneStepMaps::Part> parts_;
};

std::vector<StepMaps> lane_maps(const LinearSparsity& sparsity,
                                std::span<const LaneStepMaps::Part> parts, double step_s) {
  LaneStepMaps lanes(sparsity, parts[0].physics->signature().wave_size(), step_s);
  lanes.solve(parts);
  std::vector<StepMaps> out(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) lanes.take(static_cast<int>(i), out[i]);
  return out;
}

std::vector<double> numbers(const StepMaps& maps) {
  std::vector<double> out;
  const auto add = [&out](const auto& M) { out.insert(out.end(), M.data(), M.data() + M.size()); };
  add(maps.Phi_minus_I);
  add(maps.Psi);
  add(maps.Psi_u);
  add(maps.C);
  add(maps.D_minus_sigma);
  add(maps.C_u);
  add(maps.sigma);
  return out;
}

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Wide;  // NOLINT(modernize-use-using): takes no __extension__
#else
using Wide = long double;
#endif
using WideRows = std::vector<std::vector<Wide>>;

/// A⁻¹B by elimination with row pivoting.
WideRows solved(WideRows A, WideRows B) {
  const auto size = [](Wide value) { return value < 0 ? -value : value; };
  const std::size_t n = A.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t i = k; i < n; ++i) {
      if (size(A[i][k]) > size(A[best][k])) best = i;
    }
    std::swap(A[k], A[best]);
    std::swap(B[k], B[best]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const Wide factor = A[i][k] / A[k][k];
      for (std::size_t j = k; j < n; ++j) A[i][j] -= factor * A[k][j];
      for (std::size_t j = 0; j < B[i].size(); ++j) B[i][j] -= factor * B[k][j];
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (Wide& value : B[k]) value /= A[k][k];
  }
  return B;
}

/// The same maps in twice the digits of a double, from the equations of the implicit midpoint rule:
///   (x⁺ − x)/h = (J − R) z + (G − P) u,  z = Q (x + x⁺)/2,  y = (G + P)ᵀ z + (S + N) u,
/// e + γf = s a and b = a − (2γ/s) f at each port.
StepMaps wide_maps(const LaneStepMaps::Part& part, double step_s) {
  const Structure& st = part.physics->structure();
  const MatrixXd JR = st.J - st.R, B = st.G - st.P, C = MatrixXd(st.G + st.P).transpose(),
                 D = st.S + st.N, Q = part.physics->Q();
  const Eigen::Index n = Q.rows(), p = std::ssize(part.closures), q = B.cols() - p;
  const auto at = [](Eigen::Index i) { return static_cast<std::size_t>(i); };
  const auto of_gradient = [&](const MatrixXd& M, Eigen::Index i, Eigen::Index j) {
    Wide sum = 0;
    for (Eigen::Index k = 0; k < n; ++k) sum += Wide(M(i, k)) * Wide(Q(k, j));
    return sum;
  };
  // Unknowns: δ = (x⁺ − x)/2, then the inputs of the ports. Right: x, a, external inputs.
  WideRows A(at(n + p), std::vector<Wide>(at(n + p), 0));
  WideRows right(at(n + p), std::vector<Wide>(at(n + p + q), 0));
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      right[at(i)][at(j)] = of_gradient(JR, i, j);
      A[at(i)][at(j)] = (i == j ? Wide(2) / Wide(step_s) : Wide(0)) - right[at(i)][at(j)];
    }
    for (Eigen::Index j = 0; j < p; ++j) A[at(i)][at(n + j)] = -Wide(B(i, j));
    for (Eigen::Index j = 0; j < q; ++j) right[at(i)][at(n + p + j)] = Wide(B(i, p + j));
  }
  for (Eigen::Index k = 0; k < p; ++k) {
    const PortClosure& port = part.closures[at(k)];
    const Wide beta = port.beta;
    for (Eigen::Index j = 0; j < n; ++j) {
      A[at(n + k)][at(j)] = beta * of_gradient(C, k, j);
      right[at(n + k)][at(j)] = -A[at(n + k)][at(j)];
    }
    for (Eigen::Index j = 0; j < p; ++j) {
      A[at(n + k)][at(n + j)] = beta * Wide(D(k, j)) + (j == k ? Wide(port.alpha) : Wide(0));
    }
    right[at(n + k)][at(n + k)] = port.s;
    for (Eigen::Index j = 0; j < q; ++j) {
      right[at(n + k)][at(n + p + j)] = -beta * Wide(D(k, p + j));
    }
  }
  const WideRows solution = solved(A, right);
  MatrixXd delta(n, n + p + q), outgoing(p, n + p + q), other(p, n + p + q);
  for (Eigen::Index c = 0; c < n + p + q; ++c) {
    for (Eigen::Index i = 0; i < n; ++i) {
      delta(i, c) = static_cast<double>(2 * solution[at(i)][at(c)]);
    }
    for (Eigen::Index k = 0; k < p; ++k) {
      const PortClosure& port = part.closures[at(k)];
      const Wide u = solution[at(n + k)][at(c)];
      const Wide y =
          ((c == n + k ? Wide(port.s) : Wide(0)) - Wide(port.alpha) * u) / Wide(port.beta);
      const Wide flow = port.effort_in ? y : u, effort = port.effort_in ? u : y;
      outgoing(k, c) = static_cast<double>(-2 * Wide(port.impedance) / Wide(port.s) * flow);
      other(k, c) = static_cast<double>(2 / Wide(port.s) * effort);
    }
  }
  StepMaps maps;
  maps.sigma.resize(p);
  for (Eigen::Index k = 0; k < p; ++k) {  // b = a − … or b = −a + …, whichever reflects less
    const bool by_flow = std::abs(outgoing(k, n + k)) <= std::abs(other(k, n + k));
    maps.sigma[k] = by_flow ? 1.0 : -1.0;
    if (!by_flow) outgoing.row(k) = other.row(k);
  }
  maps.Phi_minus_I = delta.leftCols(n);
  maps.Psi = delta.middleCols(n, p);
  maps.Psi_u = delta.rightCols(q);
  maps.C = outgoing.leftCols(n);
  maps.D_minus_sigma = outgoing.middleCols(n, p);
  maps.C_u = outgoing.rightCols(q);
  return maps;
}

/// How far entries are off, at most, in roundings of the entry, or of a billionth of the largest in its
/// column where that is more: so far down a correction of one part in 1e13 leaves its square. What is added
/// to ±a counts from a billionth of it on.
double difference(const StepMaps& exact, const StepMaps& maps) {
  double worst = 0.0;
  const auto compare = [&worst](const MatrixXd& M, const MatrixXd& N, double least = 0.0) {
    for (Eigen::Index j = 0; M.rows() > 0 && j < M.cols(); ++j) {
      const double floor = 1e-9 * std::max(M.col(j).cwiseAbs().maxCoeff(), least);
      for (Eigen::Index i = 0; i < M.rows(); ++i) {
        const double size = kEpsilon * std::max(std::abs(M(i, j)), floor);
        const double off = std::abs(M(i, j) - N(i, j));
        if (off > 0.0) worst = std::max(worst, off / size);
      }
    }
  };
  compare(exact.Phi_minus_I, maps.Phi_minus_I);
  compare(exact.Psi, maps.Psi);
  compare(exact.Psi_u, maps.Psi_u);
  compare(exact.C, maps.C);
  compare(exact.D_minus_sigma, maps.D_minus_sigma, 1.0);
  compare(exact.C_u, maps.C_u);
  compare(exact.sigma, maps.sigma);
  return worst;
}

TEST(LaneStepMaps, AreExact) {
  for (const Shape& shape :
       {Shape{}, Shape{.states = 10, .ports = 2, .inputs = 0, .feedthrough = false},
        Shape{.states = 1, .ports = 1, .inputs = 0}, Shape{.states = 0, .ports = 2, .inputs = 1},
        Shape{.states = 5, .ports = 0, .inputs = 2}, Shape{.states = 13, .ports = 5, .inputs = 3},
        Shape{.unit = 1e9}, Shape{.unit = 1e-9}}) {
    for (const double step_s : {1e-9, 1e-3, 1.0, 1e6}) {
      for (const double gamma : {1.0, 1e-6, 1e9}) {
        Draw draw(3);
        Parts parts;
        for (int i = 0; i < 5; ++i) parts.add(make_part(shape, draw), step_s, gamma);
        const std::vector<StepMaps> maps = lane_maps(parts.sparsity(), parts.all(), step_s);
        for (std::size_t i = 0; i < maps.size(); ++i) {
          const StepMaps exact = wide_maps(parts[i], step_s);
          const StepMaps own = step_maps(*parts[i].physics, parts[i].closures, step_s);
          EXPECT_LE(difference(exact, maps[i]), 1.0)
              << shape.states << " states, unit " << shape.unit << ", h " << step_s << ", γ "
              << gamma << ", part " << i;
          EXPECT_LE(difference(exact, own), 1.0) << "by itself";
        }
      }
    }
  }
}

TEST(LaneStepMaps, AnotherPartHasOthers) {
  Draw draw(3);
  Parts parts;
  for (int i = 0; i < 2; ++i) parts.add(make_part({}, draw), 0.1, 1.0);
  const std::vector<StepMaps> maps = lane_maps(parts.sparsity(), parts.all(), 0.1);
  EXPECT_GT(difference(maps[0], maps[1]), 1e10);
  // A relative change of 1e-15 of one closure already shows.
  LaneStepMaps::Part nudged = parts[0];
  for (PortClosure& port : nudged.closures) port.impedance *= 1.0 + 1e-15;
  const StepMaps there = step_maps(*nudged.physics, nudged.closures, 0.1);
  EXPECT_GT(difference(maps[0], there), 1.0);
}

TEST(LaneStepMaps, HaveTheSameBitsWhateverIsBeside) {
  constexpr double kStep = 0.05;
  Draw draw(5);
  Parts parts;
  for (int i = 0; i < kLaneGroup; ++i) parts.add(make_part({}, draw), kStep, std::exp(draw()));
  const LinearSparsity sparsity = parts.sparsity();
  const std::vector<StepMaps> all = lane_maps(sparsity, parts.all(), kStep);
  const std::vector<StepMaps> some = lane_maps(sparsity, parts.all().subspan(2, 3), kStep);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StepMaps alone = lane_maps(sparsity, parts.all().subspan(i, 1), kStep)[0];
    EXPECT_EQ(numbers(all[i]), numbers(alone)) << i;
    if (i >= 2 && i < 5) {
      EXPECT_EQ(numbers(all[i]), numbers(some[i - 2])) << i;
    }
    if (i > 0) {
      EXPECT_NE(numbers(all[i]), numbers(all[i - 1])) << i;
    }
  }
}

/// Two states without a port that lose −2/h: their step has a pivot of zero, and a solution.
std::unique_ptr<LinearPortHamiltonian> without_a_pivot(double step_s, double coupling) {
  Structure structure = Structure::zero(2, 1);
  MatrixXd J = MatrixXd::Zero(2, 2), R = MatrixXd::Zero(2, 2), G = MatrixXd::Ones(2, 1);
  J << 0.0, coupling, -coupling, 0.0;
  R(0, 0) = R(1, 1) = -2.0 / step_s;
  structure.J = J.sparseView();
  structure.R = R.sparseView();
  structure.G = G.sparseView();
  Signature signature;
  signature.type = "active";
  signature.states = {{"x0", "1"}, {"x1", "1"}};
  signature.inputs = {{"u", "1"}};
  return std::make_unique<LinearPortHamiltonian>(
      std::move(signature), std::move(structure),
      SparseMatrix(MatrixXd::Identity(2, 2).sparseView()),
      LinearPortHamiltonian::Options{.allow_active = true});
}

TEST(LaneStepMaps, LeaveToOnePartWhatTheyCannotSolve) {
  constexpr double kStep = 0.5;
  Parts parts;
  for (const double coupling : {1.0, 2.0}) parts.add(without_a_pivot(kStep, coupling), kStep, 1.0);
  const std::vector<StepMaps> maps = lane_maps(parts.sparsity(), parts.all(), kStep);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const double coupling = i == 0 ? 1.0 : 2.0;
    // (2/h) δ = (J − R)(x + δ) and R = −2/h: J δ = −(J + 2/h) x.
    MatrixXd J(2, 2);
    J << 0.0, coupling, -coupling, 0.0;
    const MatrixXd expected = -2.0 * J.inverse() * (J + 2.0 / kStep * MatrixXd::Identity(2, 2));
    EXPECT_LE((maps[i].Phi_minus_I - expected).norm(), 1e-14 * expected.norm());
  }
}

TEST(LaneStepMaps, RefuseASingularStep) {
  constexpr double kStep = 0.5;
  Parts parts;
  parts.add(without_a_pivot(kStep, 1.0), kStep, 1.0);
  parts.add(without_a_pivot(kStep, 0x1p-1022), kStep, 1.0);
  const LinearSparsity sparsity = parts.sparsity();
  LaneStepMaps lanes(sparsity, 0, kStep);
  lanes.solve(parts.all());
  StepMaps maps;
  EXPECT_NO_THROW(lanes.take(0, maps));
  EXPECT_THROW(lanes.take(1, maps), ConfigError);
}

/// What a batch of all parts and batches of each by itself make of one step.
struct Step {
  std::vector<double> x, b, energies;
};

Step step_of(std::span<const Component* const> parts, std::span<const double> x,
             std::span<const double> a, std::span<const double> u, double step_s) {
  testing::LaneMajor batch(parts[0]->make_batch(parts));
  const int lanes = batch.lanes();
  std::vector<double> gamma(a.size());
  for (std::size_t i = 0; i < gamma.size(); ++i) gamma[i] = 0.5 + 0.25 * a[i] * a[i];
  batch.prepare(step_s, gamma.data());
  batch.freeze({0, lanes}, x.data(), u.data());
  Step out{std::vector<double>(x.size()), std::vector<double>(a.size()), {}};
  std::vector<StepEnergy> energy(static_cast<std::size_t>(lanes));
  EXPECT_TRUE(batch.advance({0, lanes}, a.data(), out.x.data(), out.b.data(), energy.data()).ok());
  for (const StepEnergy& e : energy) {
    out.energies.insert(out.energies.end(), {e.change_J, e.external_supply_J, e.dissipated_J});
  }
  return out;
}

// Sparsities alternate, and some parts have entries that are there and are zero.
TEST(LaneStepMaps, BatchesOfSeveralSparsitiesStepAsEachPart) {
  constexpr double kStep = 0.02;
  for (const int stages : {1, 2}) {
    Draw draw(11);
    std::vector<std::shared_ptr<const Component>> owned;
    std::vector<const Component*> parts;
    for (int i = 0; i < 19; ++i) {
      std::shared_ptr<const Component> part =
          make_part({}, draw, static_cast<std::uint64_t>(i % 3));
      if (stages > 1) part = staged_part(std::move(part), stages);
      parts.push_back(part.get());
      owned.push_back(std::move(part));
    }
    const auto n = static_cast<std::size_t>(parts[0]->signature().state_size());
    const auto p = static_cast<std::size_t>(parts[0]->signature().wave_size());
    const auto q = static_cast<std::size_t>(parts[0]->signature().input_size());
    const auto drawn = [&draw](std::size_t count) {
      std::vector<double> out(count);
      for (double& value : out) value = draw();
      return out;
    };
    const std::vector<double> x = drawn(n * parts.size()), a = drawn(p * parts.size()),
                              u = drawn(q * parts.size());
    const Step all = step_of(parts, x, a, u, kStep);
    double moved = 0.0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto of = [i](const std::vector<double>& all_of, std::size_t each) {
        return std::vector<double>(all_of.begin() + static_cast<std::ptrdiff_t>(i * each),
                                   all_of.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
      };
      const Step one = step_of(std::span(parts).subspan(i, 1), of(x, n), of(a, p), of(u, q), kStep);
      EXPECT_EQ(of(all.x, n), one.x) << stages << " stages, part " << i;
      EXPECT_EQ(of(all.b, p), one.b) << stages << " stages, part " << i;
      EXPECT_EQ(of(all.energies, 3), one.energies) << stages << " stages, part " << i;
      for (const double energy : one.energies) moved += std::abs(energy);
    }
    EXPECT_GT(moved, 1.0);
  }
}

TEST(LaneStepMaps, ASparsityFitsOnlyPartsWithTheSameEntries) {
  Draw draw(2);
  const auto first = make_part({}, draw, 1), alike = make_part({}, draw, 1),
             other = make_part({}, draw, 2);
  const LinearSparsity sparsity(first->Q(), first->structure(), 2);
  EXPECT_TRUE(sparsity.fits(alike->Q(), alike->structure()));
  EXPECT_FALSE(sparsity.fits(other->Q(), other->structure()));
  // An entry that is there but zero is another sparsity: it makes no coefficient.
  Structure with_zero = alike->structure();
  with_zero.J.valuePtr()[0] = 0.0;
  EXPECT_FALSE(sparsity.fits(alike->Q(), with_zero));
}

}  // namespace
}  // namespace portwave::test_lane_step_maps
