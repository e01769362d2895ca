#pragma once

// The cut chain of peers/quasi_newton_coupling.hpp as the engine sees it, and whole: as one system
// of masses that is never cut. The two share nothing but the numbers of the pieces.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include "peers/chain.hpp"
#include "peers/quasi_newton_coupling.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "precision_reference.hpp"

namespace portwave::bench {

/// At rest, every mass displaced by up to 0.1 m.
inline CutChain at_rest(std::vector<Piece> pieces, CutAt cut) {
  CutChain chain;
  chain.pieces = std::move(pieces);
  chain.cut = cut;
  for (std::size_t p = 0; p < chain.pieces.size(); ++p) {
    for (std::size_t i = 0; i < chain.pieces[p].masses; ++i) {
      const bool shared = cut == CutAt::mass && p > 0 && i == 0;
      chain.q.push_back(shared ? chain.q.back() : 0.2 * evenly(chain.q.size(), 2) - 0.1);
      chain.v.push_back(0.0);
    }
  }
  return chain;
}

/// Masses of odd pieces are `mass_ratio` times those of even ones.
inline CutChain cut_chain(std::size_t count, CutAt cut, double mass_ratio) {
  std::vector<Piece> pieces(count);
  for (std::size_t p = 1; p < count; p += 2) pieces[p].mass_kg *= mass_ratio;
  return at_rest(std::move(pieces), cut);
}

/// The same of single masses on hardening springs, those of the Duffing–linear pair of arXiv
/// 2603.16424.
inline CutChain duffing_chain(std::size_t count, double mass_ratio) {
  std::vector<Piece> pieces(count, {.masses = 1,
                                    .mass_kg = 8,
                                    .ground_stiffness_N_per_m = 100,
                                    .cubic_stiffness_N_per_m3 = 8000,
                                    .coupling_stiffness_N_per_m = 120});
  for (std::size_t p = 1; p < count; p += 2) pieces[p].mass_kg *= mass_ratio;
  return at_rest(std::move(pieces), CutAt::spring);
}

inline std::string piece_name(std::size_t p) { return "piece" + std::to_string(p); }

/// One part per piece.
inline System cut_chain_system(const CutChain& chain) {
  SystemBuilder builder;
  const std::size_t last = chain.cuts();
  const ChainEnd even = chain.cut == CutAt::spring ? ChainEnd::spring : ChainEnd::mass;
  std::size_t at = 0;
  for (std::size_t p = 0; p <= last; ++p) {
    const Piece& piece = chain.pieces[p];
    const ChainEnd own = p % 2 == 0 ? even : ChainEnd::mass;
    const ChainEnd left = p > 0 ? own : ChainEnd::mass, right = p < last ? own : ChainEnd::mass;
    std::vector<double> state;
    for (std::size_t i = at; i < at + piece.masses; ++i) {
      state.push_back(chain.q[i]);
      state.push_back(chain.v[i]);
    }
    if (left == ChainEnd::spring) state.push_back(chain.q[at - 1] - chain.q[at]);
    at += piece.masses;
    if (right == ChainEnd::spring) state.push_back(chain.q[at] - chain.q[at - 1]);
    builder.add(
        piece_name(p),
        mass_spring_damper_chain({.masses = static_cast<int>(piece.masses),
                                  .mass_kg = piece.mass_kg,
                                  .stiffness_N_per_m = piece.stiffness_N_per_m,
                                  .damping_Ns_per_m = piece.damping_Ns_per_m,
                                  .ground_stiffness_N_per_m = piece.ground_stiffness_N_per_m,
                                  .coupling_stiffness_N_per_m = piece.coupling_stiffness_N_per_m,
                                  .left_end = left,
                                  .right_end = right}),
        {.initial_state = state});
  }
  for (std::size_t c = 0; c < last; ++c) {
    const std::vector<std::string> ports = {piece_name(c) + ".right", piece_name(c + 1) + ".left"};
    if (chain.cut == CutAt::spring) builder.connect(ports[0], ports[1]);
    if (chain.cut == CutAt::mass) builder.join(joint::CommonFlow{}, ports);
  }
  builder.join(joint::Free{}, {piece_name(0) + ".left"});
  builder.join(joint::Free{}, {piece_name(last) + ".right"});
  return builder.build();
}

/// A mass on a hardening spring, as a user would write it, with a port for every neighbour: at the
/// end of a spring, or at the mass itself.
///   H = ½ m v² + ½ k q² + ¼ k₃ q⁴ + ½ k_c Σ δ²,  state (q, v, δ of every spring)
inline std::shared_ptr<const Subsystem> duffing_piece(const Piece& piece, bool springs,
                                                      const std::vector<std::string>& ports) {
  const double m = piece.mass_kg, k = piece.ground_stiffness_N_per_m,
               k3 = piece.cubic_stiffness_N_per_m3, kc = piece.coupling_stiffness_N_per_m;
  const int count = static_cast<int>(ports.size()), states = springs ? 2 + count : 2;
  Signature signature;
  signature.type = springs ? "duffing_with_springs" : "duffing";
  signature.states = {{"q", "m"}, {"v", "m/s"}};
  Structure structure = Structure::zero(states, count);
  structure.J.insert(0, 1) = 1.0 / m;
  structure.J.insert(1, 0) = -1.0 / m;
  structure.R.insert(1, 1) = piece.damping_Ns_per_m / (m * m);
  for (int i = 0; i < count; ++i) {
    const std::string& port = ports[static_cast<std::size_t>(i)];
    signature.ports.push_back(
        {port, springs ? Causality::flow_in : Causality::effort_in, Domain::translation, 1});
    if (!springs) structure.G.insert(1, i) = -1.0 / m;
    if (!springs) continue;
    signature.states.push_back({port + "_elongation", "m"});
    structure.J.insert(1, 2 + i) = 1.0 / m;
    structure.J.insert(2 + i, 1) = -1.0 / m;
    structure.G.insert(2 + i, i) = 1.0;
  }
  Hamiltonian energy;
  energy.value = [=](const double* x) {
    double twice = m * x[1] * x[1] + (k + 0.5 * k3 * x[0] * x[0]) * x[0] * x[0];
    for (int i = 2; i < states; ++i) twice += kc * x[i] * x[i];
    return 0.5 * twice;
  };
  energy.gradient = [=](const double* x, double* g) {
    g[0] = (k + k3 * x[0] * x[0]) * x[0];
    g[1] = m * x[1];
    for (int i = 2; i < states; ++i) g[i] = kc * x[i];
  };
  energy.hessian = [=](const double* x, double* hessian) {
    std::fill_n(hessian, states * states, 0.0);
    hessian[0] = k + 3.0 * k3 * x[0] * x[0];
    hessian[states + 1] = m;
    for (int i = 2; i < states; ++i) hessian[i * states + i] = kc;
  };
  return std::make_shared<NonlinearPortHamiltonian>(
      std::move(signature), std::move(structure), std::move(energy),
      NonlinearPortHamiltonian::Options{.discrete_gradient = DiscreteGradient::mean_value,
                                        .polynomial_degree = 4,
                                        .typical_state = {}});
}

/// One part per mass.
inline System duffing_chain_system(const CutChain& chain) {
  SystemBuilder builder;
  const std::size_t last = chain.cuts();
  for (std::size_t p = 0; p <= last; ++p) {
    const bool springs = p % 2 == 0;
    std::vector<std::string> ports;
    std::vector<double> state = {chain.q[p], chain.v[p]};
    if (p > 0) ports.emplace_back("left");
    if (p > 0 && springs) state.push_back(chain.q[p - 1] - chain.q[p]);
    if (p < last) ports.emplace_back("right");
    if (p < last && springs) state.push_back(chain.q[p + 1] - chain.q[p]);
    builder.add(piece_name(p), duffing_piece(chain.pieces[p], springs, ports),
                {.initial_state = state});
  }
  for (std::size_t c = 0; c < last; ++c) {
    builder.connect(piece_name(c) + ".right", piece_name(c + 1) + ".left");
  }
  return builder.build();
}

struct Trajectory {
  std::vector<double> q, v;  ///< piece by piece
};

inline Trajectory read_engine(const Stepper& engine, const CutChain& chain) {
  Trajectory end;
  for (std::size_t p = 0; p < chain.pieces.size(); ++p) {
    const auto state = engine.state(static_cast<int>(p));
    for (std::size_t i = 0; i < chain.pieces[p].masses; ++i) {
      end.q.push_back(state[2 * i]);
      end.v.push_back(state[2 * i + 1]);
    }
  }
  return end;
}

/// The chain whole: M q″ + R q′ + K q + k₃ q³ = 0.
class WholeChain {
 public:
  explicit WholeChain(const CutChain& chain) {
    for (std::size_t p = 0; p < chain.pieces.size(); ++p) {
      const bool shared = chain.cut == CutAt::mass && p > 0;
      for (std::size_t i = 0; i < chain.pieces[p].masses; ++i) {
        if (!(shared && i == 0)) ++size_;
        place_.push_back(size_ - 1);
      }
    }
    M_ = R_ = K_ = Eigen::MatrixXd::Zero(size_, size_);
    cubic_ = Eigen::ArrayXd::Zero(size_);
    std::size_t at = 0;
    for (std::size_t p = 0; p < chain.pieces.size(); ++p) {
      const Piece& piece = chain.pieces[p];
      for (std::size_t i = at; i < at + piece.masses; ++i) {
        M_(place_[i], place_[i]) += piece.mass_kg;
        R_(place_[i], place_[i]) += piece.damping_Ns_per_m;
        K_(place_[i], place_[i]) += piece.ground_stiffness_N_per_m;
        cubic_[place_[i]] += piece.cubic_stiffness_N_per_m3;
        if (i > at) add_spring(i - 1, piece.stiffness_N_per_m);
      }
      at += piece.masses;
      if (chain.cut == CutAt::mass || p == chain.cuts()) continue;
      add_spring(at - 1, chain.pieces[p + p % 2].coupling_stiffness_N_per_m);
    }
    q_.resize(size_);
    v_.resize(size_);
    for (std::size_t i = 0; i < place_.size(); ++i) {
      q_[place_[i]] = chain.q[i];
      v_[place_[i]] = chain.v[i];
    }
  }

  /// Between a mass and the next one, counted piece by piece.
  void add_spring(std::size_t mass, double stiffness_N_per_m) {
    const Eigen::Index i = place_[mass], j = place_[mass + 1];
    K_(i, i) += stiffness_N_per_m;
    K_(j, j) += stiffness_N_per_m;
    K_(i, j) -= stiffness_N_per_m;
    K_(j, i) -= stiffness_N_per_m;
  }

  /// After so many steps of the implicit midpoint rule, with the mean of the cubic force over the
  /// line from q to q⁺.
  Trajectory midpoint(double h, int steps) const {
    const Eigen::MatrixXd linear = 2.0 / h * M_ + R_ + 0.5 * h * K_;
    Eigen::PartialPivLU<Eigen::MatrixXd> matrix(linear);
    const bool is_linear = (cubic_ == 0.0).all();
    Eigen::VectorXd q = q_, v = v_;
    for (int n = 0; n < steps; ++n) {
      const Eigen::VectorXd rhs = 2.0 / h * M_ * v - K_ * q;
      Eigen::VectorXd mean = is_linear ? Eigen::VectorXd(matrix.solve(rhs)) : v;
      for (int i = 0; !is_linear && i < kNewton; ++i) {
        const Eigen::ArrayXd a = q.array(), b = a + h * mean.array();
        const Eigen::ArrayXd force =
            0.25 * cubic_ * (a * a * a + a * a * b + a * b * b + b * b * b);
        Eigen::MatrixXd slope = linear;
        slope.diagonal() += (0.25 * h * cubic_ * (a * a + 2.0 * a * b + 3.0 * b * b)).matrix();
        matrix.compute(slope);
        mean += matrix.solve(rhs - linear * mean - force.matrix());
      }
      q += h * mean;
      v = 2.0 * mean - v;
    }
    return piece_by_piece(q, v);
  }

  /// At a time, nearly exactly: by extrapolation, in steps of about a sixth of the shortest period.
  Trajectory exact(double end_s) const {
    const Eigen::ArrayXd mass = M_.diagonal().array();
    const auto slope = [&](double, const double* x, double* x_dot) {
      const Eigen::Map<const Eigen::VectorXd> q(x, size_), v(x + size_, size_);
      Eigen::Map<Eigen::VectorXd>(x_dot, size_) = v;
      const Eigen::ArrayXd cubic = cubic_ * q.array() * q.array() * q.array();
      Eigen::Map<Eigen::VectorXd>(x_dot + size_, size_) =
          ((-(K_ * q + R_ * v)).array() - cubic) / mass;
    };
    const double fastest_per_s =
        std::sqrt((2.0 * (K_.diagonal().array() + cubic_ * q_.array().square()) / mass).maxCoeff());
    std::vector<double> x(q_.begin(), q_.end());
    x.insert(x.end(), v_.begin(), v_.end());
    x = extrapolated(slope, x, end_s, static_cast<int>(std::ceil(end_s * fastest_per_s)));
    return piece_by_piece(Eigen::Map<const Eigen::VectorXd>(x.data(), size_),
                          Eigen::Map<const Eigen::VectorXd>(x.data() + size_, size_));
  }

 private:
  Trajectory piece_by_piece(const Eigen::VectorXd& q, const Eigen::VectorXd& v) const {
    Trajectory end;
    for (const Eigen::Index i : place_) {
      end.q.push_back(q[i]);
      end.v.push_back(v[i]);
    }
    return end;
  }

  static constexpr int kNewton = 8;

  Eigen::Index size_ = 0;
  std::vector<Eigen::Index> place_;  // of every mass, piece by piece
  Eigen::MatrixXd M_, R_, K_;
  Eigen::ArrayXd cubic_;
  Eigen::VectorXd q_, v_;
};

/// Largest difference of positions and of velocities, each against the largest of its kind;
/// infinite when something is not a number.
inline double difference(const Trajectory& a, const Trajectory& expected) {
  const auto of = [](const std::vector<double>& x, const std::vector<double>& y) {
    double worst = 0.0, scale = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return HUGE_VAL;
      worst = std::max(worst, std::abs(x[i] - y[i]));
      scale = std::max(scale, std::abs(y[i]));
    }
    return worst / scale;
  };
  return std::max(of(a.q, expected.q), of(a.v, expected.v));
}

}  // namespace portwave::bench
