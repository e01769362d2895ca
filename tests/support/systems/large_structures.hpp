#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include <portwave/subsystems/descriptor/descriptor_part.hpp>
#include <portwave/subsystems/descriptor/second_order.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

namespace portwave::testing {

/// Sums of element matrices, as finite-element programs form them.
class Assembly {
 public:
  explicit Assembly(int n) : n_(n) {}
  template <class Block>
  void add(const std::vector<int>& places, const Block& block) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t j = 0; j < places.size(); ++j) {
        if (places[i] < 0 || places[j] < 0) continue;
        entries_.emplace_back(places[i], places[j],
                              block(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)));
      }
    }
  }
  SparseMatrix matrix() const {
    SparseMatrix M(n_, n_);
    M.setFromTriplets(entries_.begin(), entries_.end());
    return M;
  }

 private:
  int n_;
  std::vector<Eigen::Triplet<double>> entries_;
};

inline SparseMatrix columns(int n, const std::vector<std::vector<std::pair<int, double>>>& of) {
  std::vector<Eigen::Triplet<double>> entries;
  for (std::size_t j = 0; j < of.size(); ++j) {
    for (const auto& [i, value] : of[j]) entries.emplace_back(i, static_cast<int>(j), value);
  }
  SparseMatrix B(n, static_cast<Eigen::Index>(of.size()));
  B.setFromTriplets(entries.begin(), entries.end());
  return B;
}

inline std::vector<StateVariable> numbered(const std::string& name, int n) {
  std::vector<StateVariable> states;
  for (int i = 0; i < n; ++i) states.push_back({name + std::to_string(i + 1), "m"});
  return states;
}

/// Euler–Bernoulli beam by Hermite elements with consistent masses: deflection and slope of each
/// node, node 0 first; `clamped` leaves node 0 out. Port "tip": a force at the last node; input
/// "load": a force on every node.
struct BeamOptions {
  int elements = 20;
  double length_m = 2.0;
  double stiffness_Nm2 = 50.0;
  double mass_kg_per_m = 3.0;
  double mass_damping_per_s = 0.0;
  double stiffness_damping_s = 0.0;
  double gyroscopic = 0.0;  ///< skew, between deflection and slope of each node
  bool clamped = false;
};

inline SecondOrderForm beam_form(const BeamOptions& options) {
  const int removed = options.clamped ? 2 : 0;
  const int n = 2 * (options.elements + 1) - removed;
  const double l = options.length_m / options.elements;
  Eigen::Matrix4d k, m;
  k << 12, 6 * l, -12, 6 * l, 6 * l, 4 * l * l, -6 * l, 2 * l * l, -12, -6 * l, 12, -6 * l, 6 * l,
      2 * l * l, -6 * l, 4 * l * l;
  m << 156, 22 * l, 54, -13 * l, 22 * l, 4 * l * l, 13 * l, -3 * l * l, 54, 13 * l, 156, -22 * l,
      -13 * l, -3 * l * l, -22 * l, 4 * l * l;
  k *= options.stiffness_Nm2 / (l * l * l);
  m *= options.mass_kg_per_m * l / 420;
  Assembly M(n), K(n), G(n);
  for (int e = 0; e < options.elements; ++e) {
    std::vector<int> places;
    for (int i = 0; i < 4; ++i) places.push_back(2 * e + i - removed);
    M.add(places, m);
    K.add(places, k);
  }
  Eigen::Matrix2d g;
  g << 0, options.gyroscopic, -options.gyroscopic, 0;
  std::vector<std::pair<int, double>> load;
  for (int i = 0; i + 1 < n; i += 2) {
    G.add({i, i + 1}, g);
    load.emplace_back(i, 1.0);
  }
  SecondOrderForm form{.M = M.matrix(), .D = G.matrix(), .K = K.matrix(), .B = {}};
  form.D = SparseMatrix(form.D + options.mass_damping_per_s * form.M +
                        options.stiffness_damping_s * form.K);
  form.B = columns(n, {{{n - 2, 1.0}}, load});
  return form;
}

inline std::shared_ptr<const DescriptorPortHamiltonian> second_order_part(
    const SecondOrderForm& form, std::vector<Port> ports, std::vector<ExternalInput> inputs) {
  Signature signature{"second_order_system",
                      second_order_states(numbered("q", static_cast<int>(form.M.rows()))),
                      std::move(ports), std::move(inputs)};
  return std::make_shared<DescriptorPortHamiltonian>(std::move(signature), descriptor_form(form));
}

/// A membrane of nx × ny squares with bilinear elements and consistent mass: free at all edges
/// (K singular), in `copies` pieces that do not touch.
inline SecondOrderForm membrane_form(int nx, int ny, int copies, bool lumped, double damping) {
  const int nodes = (nx + 1) * (ny + 1), n = nodes * copies;
  Eigen::Matrix4d k, m;
  k << 4, -1, -2, -1, -1, 4, -1, -2, -2, -1, 4, -1, -1, -2, -1, 4;
  m << 4, 2, 1, 2, 2, 4, 2, 1, 1, 2, 4, 2, 2, 1, 2, 4;
  k *= 7.0 / 6;
  m *= 0.3 / 36;
  if (lumped) m = Eigen::Matrix4d(0.3 / 4 * Eigen::Matrix4d::Identity());
  Assembly M(n), K(n);
  for (int copy = 0; copy < copies; ++copy) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        const int first = copy * nodes + y * (nx + 1) + x;
        const std::vector<int> places = {first, first + 1, first + nx + 2, first + nx + 1};
        M.add(places, m);
        K.add(places, k);
      }
    }
  }
  SecondOrderForm form{.M = M.matrix(), .D = {}, .K = K.matrix(), .B = {}};
  form.D = SparseMatrix(damping * form.K);
  std::vector<std::pair<int, double>> everywhere;
  for (int i = 0; i < n; ++i) everywhere.emplace_back(i, 0.1 + 0.01 * i);
  form.B = columns(n, {{{0, 1.0}, {n - 1, -1.0}}, everywhere, {{n / 2, 1.0}}});
  return form;
}

/// An RC network with inductors: nodes with capacitors and conductances to their neighbours, and an
/// inductor along every other line of the grid. States: charges, then fluxes.
struct Network {
  Structure structure;
  SparseMatrix Q;
};

inline Network rlc_network(int nx, int ny) {
  const int nodes = nx * ny;
  std::vector<std::array<int, 2>> coils;
  std::vector<Eigen::Triplet<double>> J, R, Q;
  for (int y = 0; y < ny; ++y) {
    for (int x = 0; x < nx; ++x) {
      const int i = y * nx + x;
      Q.emplace_back(i, i, 1.0 / (1e-3 * (1 + 0.1 * (i % 7))));
      if (i % 5 == 0) R.emplace_back(i, i, 1e-3);
      const auto join = [&](int j, bool coil) {
        if (coil) {
          coils.push_back({i, j});
          return;
        }
        const double g = 0.02 * (1 + (i + j) % 3);
        R.emplace_back(i, i, g);
        R.emplace_back(j, j, g);
        R.emplace_back(i, j, -g);
        R.emplace_back(j, i, -g);
      };
      if (x + 1 < nx) join(i + 1, (x + y) % 2 == 0);
      if (y + 1 < ny) join(i + nx, (x + y) % 2 == 1);
    }
  }
  const int n = nodes + static_cast<int>(coils.size());
  for (std::size_t k = 0; k < coils.size(); ++k) {
    const int coil = nodes + static_cast<int>(k);
    Q.emplace_back(coil, coil, 1.0 / 0.02);
    R.emplace_back(coil, coil, 0.1);
    J.emplace_back(coil, coils[k][0], 1.0);
    J.emplace_back(coils[k][0], coil, -1.0);
    J.emplace_back(coil, coils[k][1], -1.0);
    J.emplace_back(coils[k][1], coil, 1.0);
  }
  Network network{Structure::zero(n, 3), SparseMatrix(n, n)};
  network.structure.J.setFromTriplets(J.begin(), J.end());
  network.structure.R.setFromTriplets(R.begin(), R.end());
  network.Q.setFromTriplets(Q.begin(), Q.end());
  std::vector<std::pair<int, double>> everywhere;
  for (int i = 0; i < nodes; ++i) everywhere.emplace_back(i, 1.0);
  network.structure.G = columns(n, {{{0, 1.0}}, {{nodes - 1, 1.0}, {nodes / 2, -1.0}}, everywhere});
  return network;
}

/// A grid of masses on springs in displacements and momenta: Q joins all displacements.
inline Network spring_grid(int nx, int ny) {
  const int masses = nx * ny, n = 2 * masses;
  std::vector<Eigen::Triplet<double>> J, R, Q;
  for (int y = 0; y < ny; ++y) {
    for (int x = 0; x < nx; ++x) {
      const int i = y * nx + x;
      J.emplace_back(i, masses + i, 1.0);
      J.emplace_back(masses + i, i, -1.0);
      R.emplace_back(masses + i, masses + i, 0.05);
      Q.emplace_back(masses + i, masses + i, 1.0 / (1 + 0.2 * (i % 3)));
      const auto join = [&](int j) {
        const double k = 20.0 + i % 4;
        Q.emplace_back(i, i, k);
        Q.emplace_back(j, j, k);
        Q.emplace_back(i, j, -k);
        Q.emplace_back(j, i, -k);
        R.emplace_back(masses + i, masses + i, 0.02);
        R.emplace_back(masses + j, masses + j, 0.02);
        R.emplace_back(masses + i, masses + j, -0.02);
        R.emplace_back(masses + j, masses + i, -0.02);
      };
      if (x + 1 < nx) join(i + 1);
      if (y + 1 < ny) join(i + nx);
    }
  }
  Network network{Structure::zero(n, 2), SparseMatrix(n, n)};
  network.structure.J.setFromTriplets(J.begin(), J.end());
  network.structure.R.setFromTriplets(R.begin(), R.end());
  network.Q.setFromTriplets(Q.begin(), Q.end());
  network.structure.G = columns(n, {{{masses, 1.0}}, {{n - 1, 1.0}, {masses + 1, 0.5}}});
  return network;
}

}  // namespace portwave::testing
