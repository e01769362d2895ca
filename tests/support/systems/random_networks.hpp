#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/systems/random_linear.hpp"

namespace portwave::testing {

/// Networks of dense linear parts with ports of both causalities and joints of every kind.
struct RandomNetwork {
  int most_parts = 8;
  double decades = 1.0;             ///< over which parts differ in stiffness
  bool loops = true;                ///< else a tree of two-port joints, with ends
  std::vector<int> substeps = {1};  ///< of one part after another, over and over
};

/// [R P; Pᵀ S] = L Lᵀ, J and N skew, Q positive definite.
inline std::shared_ptr<const Subsystem> random_part(RandomNumbers& random, int states, int ports,
                                                    double scale) {
  const auto sparse = [](const Eigen::MatrixXd& m) -> SparseMatrix { return m.sparseView(); };
  const int n = states;
  Signature signature{"random", {}, {}, {}};
  for (int k = 0; k < n; ++k) signature.states.push_back({"x" + std::to_string(k), ""});
  for (int k = 0; k < ports; ++k) {
    const bool effort = random.integer(0, 1) == 0;
    signature.ports.push_back({"p" + std::to_string(k),
                               effort ? Causality::effort_in : Causality::flow_in, Domain::generic,
                               1});
  }
  Structure s = Structure::zero(n, ports);
  Eigen::MatrixXd loss = Eigen::MatrixXd::Zero(n + ports, n + ports);
  const int kind = random.integer(0, 3);
  if (kind == 1) loss.topLeftCorner(n, n) = 0.05 * random.semidefinite(n, random.integer(1, n));
  if (kind >= 2) loss = 0.05 * random.semidefinite(n + ports, random.integer(1, n + ports));
  loss = (0.5 * (loss + loss.transpose())).eval();
  s.R = sparse(loss.topLeftCorner(n, n));
  s.P = sparse(loss.topRightCorner(n, ports));
  s.S = sparse(loss.bottomRightCorner(ports, ports));
  if (kind == 3) s.N = sparse(random.skew(ports));
  s.J = sparse(random.skew(n));
  s.G = sparse(random.matrix(n, ports));
  Eigen::MatrixXd Q = random.semidefinite(n, n) + 0.2 * Eigen::MatrixXd::Identity(n, n);
  Q = (0.5 * scale * (Q + Q.transpose())).eval();
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), sparse(Q));
}

inline Joint random_joint(RandomNumbers& random, int ports) {
  if (ports == 1) {
    switch (random.integer(0, 2)) {
      case 0:
        return joint::Free{};
      case 1:
        return joint::Fixed{};
      default:
        return joint::Resistive{random.logarithmic(0.01, 100.0)};
    }
  }
  const int kind = random.integer(0, ports == 2 ? 5 : 2);
  if (kind == 0) return joint::CommonEffort{};
  if (kind == 1) return joint::CommonFlow{};
  if (kind == 2) return joint::SkewGain{random.skew(ports)};
  if (kind == 3) return joint::Transformer{random.logarithmic(0.2, 5.0)};
  if (kind == 4) return joint::Gyrator{random.logarithmic(0.2, 5.0)};
  return joint::Connection{};
}

inline System random_network(const RandomNetwork& kind, unsigned seed) {
  RandomNumbers random(seed);
  SystemBuilder builder;
  const int parts = random.integer(2, kind.most_parts);
  std::vector<std::vector<std::string>> open;  // by part
  for (int i = 0; i < parts; ++i) {
    const int n = random.integer(1, 4), ports = random.integer(1, 3);
    const std::string name = "s" + std::to_string(i);
    SystemBuilder::PartOptions options;
    options.substeps = kind.substeps[static_cast<std::size_t>(i) % kind.substeps.size()];
    for (int k = 0; k < n; ++k) options.initial_state.push_back(random.uniform(-1.0, 1.0));
    const double scale = std::pow(10.0, random.uniform(-0.5, 0.5) * kind.decades);
    builder.add(name, random_part(random, n, ports, scale), std::move(options));
    open.emplace_back();
    for (int k = 0; k < ports; ++k) open.back().push_back(name + ".p" + std::to_string(k));
  }
  if (!kind.loops) {
    for (std::size_t i = 1; i < open.size(); ++i) {
      const auto other = static_cast<std::size_t>(random.integer(0, static_cast<int>(i) - 1));
      if (open[other].empty()) continue;
      builder.join(random_joint(random, 2), {open[i].back(), open[other].back()});
      open[i].pop_back();
      open[other].pop_back();
    }
  }
  std::vector<std::string> ports;
  for (const auto& own : open) ports.insert(ports.end(), own.begin(), own.end());
  while (!ports.empty()) {
    const int most = kind.loops ? std::min<int>(4, static_cast<int>(ports.size())) : 1;
    const int count = random.integer(1, most);
    std::vector<std::string> own;
    for (int k = 0; k < count; ++k) {
      const auto chosen = random.integer(0, static_cast<int>(ports.size()) - 1);
      own.push_back(ports[static_cast<std::size_t>(chosen)]);
      ports.erase(ports.begin() + chosen);
    }
    builder.join(random_joint(random, count), own);
  }
  return builder.build();
}

}  // namespace portwave::testing
