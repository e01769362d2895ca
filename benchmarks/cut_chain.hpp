#pragma once

// The cut chain of peers/quasi_newton_coupling.hpp as the engine sees it, and whole: as one system
// of masses that is never cut. The two share nothing but the numbers of the pieces.

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "peers/chain.hpp"
#include "peers/quasi_newton_coupling.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/execution/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"

namespace portwave::bench {

/// Masses of odd pieces are `mass_ratio` times those of even ones. At rest, every mass displaced by
/// up to 0.1 m.
inline CutChain cut_chain(std::size_t pieces, CutAt cut, double mass_ratio) {
  CutChain chain;
  chain.cut = cut;
  for (std::size_t p = 0; p < pieces; ++p) {
    Piece piece;
    if (p % 2 == 1) piece.mass_kg *= mass_ratio;
    for (std::size_t i = 0; i < piece.masses; ++i) {
      const bool shared = cut == CutAt::mass && p > 0 && i == 0;
      chain.q.push_back(shared ? chain.q.back() : 0.2 * evenly(chain.q.size(), 2) - 0.1);
      chain.v.push_back(0.0);
    }
    chain.pieces.push_back(piece);
  }
  return chain;
}

/// One part per piece.
inline System cut_chain_system(const CutChain& chain) {
  SystemBuilder builder;
  const std::size_t last = chain.cuts();
  const ChainEnd even = chain.cut == CutAt::spring ? ChainEnd::spring : ChainEnd::mass;
  const auto name = [](std::size_t p) { return "piece" + std::to_string(p); };
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
        name(p),
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
    const std::vector<std::string> ports = {name(c) + ".right", name(c + 1) + ".left"};
    if (chain.cut == CutAt::spring) builder.connect(ports[0], ports[1]);
    if (chain.cut == CutAt::mass) builder.join(joint::CommonFlow{}, ports);
  }
  builder.join(joint::Free{}, {name(0) + ".left"});
  builder.join(joint::Free{}, {name(last) + ".right"});
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

/// The chain whole: M q'' + R q' + K q = 0.
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
    std::size_t at = 0;
    for (std::size_t p = 0; p < chain.pieces.size(); ++p) {
      const Piece& piece = chain.pieces[p];
      for (std::size_t i = at; i < at + piece.masses; ++i) {
        M_(place_[i], place_[i]) += piece.mass_kg;
        R_(place_[i], place_[i]) += piece.damping_Ns_per_m;
        K_(place_[i], place_[i]) += piece.ground_stiffness_N_per_m;
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

  /// After so many steps of the implicit midpoint rule.
  Trajectory midpoint(double h, int steps) const {
    const Eigen::PartialPivLU<Eigen::MatrixXd> matrix(2.0 / h * M_ + R_ + 0.5 * h * K_);
    Eigen::VectorXd q = q_, v = v_;
    for (int n = 0; n < steps; ++n) {
      const Eigen::VectorXd mean = matrix.solve(2.0 / h * M_ * v - K_ * q);
      q += h * mean;
      v = 2.0 * mean - v;
    }
    return piece_by_piece(q, v);
  }

  /// By the exponential of one step: a Taylor series of a small part of it, squared.
  Trajectory exact(double h, int steps) const {
    constexpr int kSquarings = 12, kTerms = 18;
    Eigen::MatrixXd A = Eigen::MatrixXd::Zero(2 * size_, 2 * size_);
    A.topRightCorner(size_, size_).setIdentity();
    A.bottomLeftCorner(size_, size_) = -M_.inverse() * K_;
    A.bottomRightCorner(size_, size_) = -M_.inverse() * R_;
    Eigen::MatrixXd term = Eigen::MatrixXd::Identity(2 * size_, 2 * size_), flow = term;
    for (int order = 1; order <= kTerms; ++order) {
      term = term * A * std::ldexp(h, -kSquarings) / order;
      flow += term;
    }
    for (int i = 0; i < kSquarings; ++i) flow = (flow * flow).eval();
    Eigen::VectorXd x(2 * size_);
    x << q_, v_;
    for (int n = 0; n < steps; ++n) x = (flow * x).eval();
    return piece_by_piece(x.head(size_), x.tail(size_));
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

  Eigen::Index size_ = 0;
  std::vector<Eigen::Index> place_;  // of every mass, piece by piece
  Eigen::MatrixXd M_, R_, K_;
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
