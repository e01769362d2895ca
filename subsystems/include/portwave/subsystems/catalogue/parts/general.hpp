#pragma once

// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace PORTWAVE_EXPORT portwave {
namespace parts {

/// Parameters of `linear_port_hamiltonian`.
struct LinearPortHamiltonianParameters {
  /// names and units of the n states; required
  std::vector<StateVariable> states = {};
  /// the power ports; required
  std::vector<Port> ports = {};
  /// external inputs
  std::vector<ExternalInput> inputs = {};
  /// n×n, skew; required
  MatrixParameter J = {};
  /// n×n, symmetric, [R P; P^T S] positive semidefinite; zero if absent
  MatrixParameter R = {};
  /// n×m; required
  MatrixParameter G = {};
  /// n×m; zero if absent
  MatrixParameter P = {};
  /// m×m, symmetric; zero if absent
  MatrixParameter S = {};
  /// m×m, skew; zero if absent
  MatrixParameter N = {};
  /// n×n, symmetric, positive semidefinite; required
  MatrixParameter Q = {};
  /// where the step maps are kept; automatic: dense up to 64 states, sparse beyond; one of
  ///   "automatic", "dense", "sparse"
  std::string step_maps = "automatic";
  /// the part may create energy
  bool allow_active = false;
};

/// Any linear port-Hamiltonian part, given by its matrices.
///   H(x) = x^T Q x / 2
///   x' = (J - R) Q x + (G - P) u,  y = (G + P)^T Q x + (S + N) u
///   u: the inputs of the scalar ports, then the external inputs
/// Ports:   terminals (electrical), shaft (rotation)
/// States:  flux [Wb], momentum [kg m^2/s]
/// Inputs:  load [N m]
CataloguePart linear_port_hamiltonian(const LinearPortHamiltonianParameters& parameters);

/// Parameters of `descriptor_port_hamiltonian`.
struct DescriptorPortHamiltonianParameters {
  /// names and units of the n states; required
  std::vector<StateVariable> states = {};
  /// the power ports; required
  std::vector<Port> ports = {};
  /// external inputs
  std::vector<ExternalInput> inputs = {};
  /// n×n, E^T Q symmetric, positive semidefinite; required
  MatrixParameter E = {};
  /// n×n, skew; required
  MatrixParameter J = {};
  /// n×n, symmetric, positive semidefinite; zero if absent
  MatrixParameter R = {};
  /// n×m; required
  MatrixParameter B = {};
  /// n×n, regular unless E is; the identity if absent
  MatrixParameter Q = {};
  /// where the step maps are kept; automatic: dense up to 64 states, sparse beyond; one of
  ///   "automatic", "dense", "sparse"
  std::string step_maps = "automatic";
  /// the part may create energy
  bool allow_active = false;
};

/// Any linear port-Hamiltonian part with algebraic equations, given by its matrices.
///   H(x) = x^T Q^T E x / 2
///   d/dt (E x) = (J - R) Q x + B u,  y = B^T Q x
///   u: the inputs of the scalar ports, then the external inputs; E may be singular, index <= 2
/// Ports:   terminal (electrical)
/// States:  u1 [V], u2 [V]
/// Inputs:  source [A]
CataloguePart descriptor_port_hamiltonian(const DescriptorPortHamiltonianParameters& parameters);

/// Parameters of `second_order_system`.
struct SecondOrderSystemParameters {
  /// names and units of the n entries of q; the states are these and their rates "<name>_rate";
  ///   required
  std::vector<StateVariable> coordinates = {};
  /// the power ports; required
  std::vector<Port> ports = {};
  /// external inputs
  std::vector<ExternalInput> inputs = {};
  /// n×n, symmetric, positive definite; required
  MatrixParameter M = {};
  /// n×n, D + D^T positive semidefinite, the skew part gyroscopic; zero if absent
  MatrixParameter D = {};
  /// n×n, symmetric, positive semidefinite; required
  MatrixParameter K = {};
  /// n×m; required
  MatrixParameter B = {};
  /// where the step maps are kept; automatic: dense up to 64 states, sparse beyond; one of
  ///   "automatic", "dense", "sparse"
  std::string step_maps = "automatic";
  /// the part may create energy
  bool allow_active = false;
};

/// Any linear structure, given by its matrices of mass, damping and stiffness.
///   H(q, v) = v^T M v / 2 + q^T K q / 2,  v = q'
///   M q'' + D q' + K q = B u,  y = B^T q'
///   u: the inputs of the scalar ports, then the external inputs; K may be singular
/// Ports:   left (translation), right (translation)
/// States:  u1 [m], u2 [m], u3 [m], u1_rate [m/s], u2_rate [m/s], u3_rate [m/s]
/// Inputs:  force [N]
CataloguePart second_order_system(const SecondOrderSystemParameters& parameters);

/// Parameters of `port_hamiltonian`.
struct PortHamiltonianParameters {
  /// names and units of the n states; required
  std::vector<StateVariable> states = {};
  /// the power ports; required
  std::vector<Port> ports = {};
  /// external inputs
  std::vector<ExternalInput> inputs = {};
  /// numbers that the expressions call by name
  std::vector<NamedNumber> constants = {};
  /// H in joules, an expression of the states and the constants
  std::string energy = "0";
  /// n×n, skew; zero if absent
  ExpressionMatrixParameter J = {};
  /// n×n, symmetric, [R P; P^T S] positive semidefinite; zero if absent
  ExpressionMatrixParameter R = {};
  /// n×m; zero if absent
  ExpressionMatrixParameter G = {};
  /// n×m; zero if absent
  ExpressionMatrixParameter P = {};
  /// m×m, symmetric; zero if absent
  ExpressionMatrixParameter S = {};
  /// m×m, skew; zero if absent
  ExpressionMatrixParameter N = {};
  /// phi of each scalar port, an expression of its input u and the constants: 0 at u = 0, not
  ///   decreasing; none if absent
  std::vector<std::string> characteristics = {};
  /// |u| up to which characteristics hold; beyond, straight lines; > 0
  double characteristic_range = 1000000.0;
  /// the state to start from where a scenario names none; H must be finite there. Zero if absent
  std::vector<double> default_state = {};
  /// a usual size of each state, in its unit; found from H if absent; > 0
  std::vector<double> typical_state = {};
  /// dH/dx over a step, under which energy balances: its mean along the step, that in the middle
  ///   with a correction, or by differences state by state; one of "mean_value", "gonzalez",
  ///   "itoh_abe"
  std::string discrete_gradient = "mean_value";
  /// the part may create energy
  bool allow_active = false;
};

/// Any port-Hamiltonian part, given by expressions for its energy and its matrices.
///   x' = (J(x) - R(x)) dH/dx + (G(x) - P(x)) u,  y = (G + P)^T dH/dx + (S + N) u + phi(u)
///   u: the inputs of the scalar ports, then the external inputs; phi: at the ports alone
///   dissipation [dH/dx; u]^T [R P; P^T S] [dH/dx; u] + sum phi(u) u >= 0
/// Ports:   shaft (rotation)
/// States:  q [rad], p [kg m^2/s]
/// Inputs:  torque [N m]
CataloguePart port_hamiltonian(const PortHamiltonianParameters& parameters);

}  // namespace parts
}  // namespace portwave
