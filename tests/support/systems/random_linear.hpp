#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/descriptor/descriptor_part.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

namespace portwave::testing {

/// What random networks of linear parts are made of.
struct RandomLinear {
  enum class E { identity, regular, singular };
  E kind = E::identity;
  bool driven = false;
  bool lossless = false;
  int most_parts = 4;
};

class RandomNumbers {
 public:
  explicit RandomNumbers(unsigned seed) : engine_(seed) {}
  double uniform(double from, double to) { return from + (to - from) * unit_(engine_); }
  double logarithmic(double from, double to) {
    return std::exp(uniform(std::log(from), std::log(to)));
  }
  int integer(int from, int to) {
    return from + static_cast<int>(engine_() % static_cast<unsigned>(to - from + 1));
  }
  Eigen::MatrixXd matrix(int rows, int columns) {
    return Eigen::MatrixXd::NullaryExpr(rows, columns, [this] { return uniform(-1.0, 1.0); });
  }
  Eigen::MatrixXd skew(int n) {
    const Eigen::MatrixXd a = matrix(n, n);
    return a - a.transpose();
  }
  /// L Lᵀ of some rank.
  Eigen::MatrixXd semidefinite(int n, int rank) {
    const Eigen::MatrixXd L = matrix(n, std::max(rank, 1));
    return rank > 0 ? Eigen::MatrixXd(L * L.transpose()) : Eigen::MatrixXd::Zero(n, n);
  }

 private:
  std::mt19937 engine_;
  std::uniform_real_distribution<double> unit_{0.0, 1.0};
};

/// Two to `most_parts` dense parts of 2 to 5 states and one or two effort-in ports, their ports
/// joined by a random skew gain. Where E is singular, R damps its kernel, so that rank[E R] = n.
inline System random_linear_network(const RandomLinear& kind, unsigned seed) {
  RandomNumbers random(seed);
  const auto symmetric = [](Eigen::MatrixXd m) -> Eigen::MatrixXd {
    return 0.5 * (m + m.transpose());
  };
  const auto to_sparse = [](const Eigen::MatrixXd& m) -> SparseMatrix { return m.sparseView(); };
  SystemBuilder builder;
  std::vector<std::string> ports;
  const int parts = random.integer(2, kind.most_parts);
  for (int i = 0; i < parts; ++i) {
    const int n = random.integer(2, 5), p = random.integer(1, 2);
    const std::string name = "part" + std::to_string(i);
    Signature signature{"random", {}, {}, {}};
    for (int k = 0; k < n; ++k) signature.states.push_back({"x" + std::to_string(k), ""});
    for (int k = 0; k < p; ++k) {
      signature.ports.push_back(
          {"p" + std::to_string(k), Causality::effort_in, Domain::generic, 1});
      ports.push_back(name + ".p" + std::to_string(k));
    }
    if (kind.driven) signature.inputs.push_back({"u", ""});
    const int m = p + (kind.driven ? 1 : 0);
    const Eigen::MatrixXd Q = random.semidefinite(n, n) + 0.5 * Eigen::MatrixXd::Identity(n, n);
    const Eigen::MatrixXd J = random.skew(n), G = random.matrix(n, m);
    Eigen::MatrixXd R =
        kind.lossless ? Eigen::MatrixXd::Zero(n, n) : random.semidefinite(n, random.integer(0, n));
    SystemBuilder::PartOptions options;
    for (int k = 0; k < n; ++k) options.initial_state.push_back(random.uniform(-1.0, 1.0));
    if (kind.driven)
      options.inputs = {{"u", Signal::sine_product(1.0, {{random.uniform(0.2, 2.0), 0.3 * i}})}};
    if (kind.kind == RandomLinear::E::identity) {
      Structure s = Structure::zero(n, m);
      s.J = to_sparse(J);
      s.R = to_sparse(R);
      s.G = to_sparse(G);
      builder.add(name,
                  std::make_shared<LinearPortHamiltonian>(signature, s, to_sparse(symmetric(Q))),
                  std::move(options));
      continue;
    }
    // E = Q⁻¹X with X ⪰ 0: EᵀQ = X.
    const int rank = kind.kind == RandomLinear::E::regular ? n : random.integer(1, n - 1);
    Eigen::MatrixXd X = random.semidefinite(n, rank);
    if (rank == n) {
      X += 0.3 * Eigen::MatrixXd::Identity(n, n);
    } else {
      const Eigen::MatrixXd kernel = X.fullPivLu().kernel();
      R += Q * kernel * kernel.transpose() * Q;
    }
    DescriptorForm form;
    form.Q = to_sparse(symmetric(Q));
    form.E = to_sparse(Q.llt().solve(symmetric(X)));
    form.J = to_sparse(J);
    form.R = to_sparse(symmetric(R));
    form.B = to_sparse(G);
    builder.add(name, std::make_shared<DescriptorPortHamiltonian>(signature, std::move(form)),
                std::move(options));
  }
  builder.join(joint::SkewGain{random.skew(static_cast<int>(ports.size()))}, ports);
  return builder.build();
}

}  // namespace portwave::testing
