#pragma once

// A network of port-Hamiltonian parts as plain matrices and lists: what the generator makes, and
// all that the reference and the engine are told. No type of the engine occurs here.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace portwave::differential {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// An external input u(t), sampled in the middle of a step.
struct Drive {
  enum class Kind { none, constant, harmonic, step };
  Kind kind = Kind::none;
  double amplitude = 0.0;
  double frequency_Hz = 0.0;
  double phase_rad = 0.0;
  double from_s =
      0.0;  ///< of a step: it rises from 0 within [from_s, until_s], no sample in between
  double until_s = 0.0;

  /// What a midpoint step around `time_s` sees: the value there, and of a step that rises within it the mean.
  double in_step(double time_s, double step_s) const {
    const double begin_s = time_s - 0.5 * step_s, end_s = time_s + 0.5 * step_s;
    const double rounding_s =
        1e-15 * end_s;  // that an end of a step lies on a knot is not seen by its last bits
    if (kind != Kind::step || until_s <= begin_s + rounding_s || from_s >= end_s - rounding_s) {
      return at(time_s);
    }
    const auto sum = [this](double t) {  // the integral up to t
      const double rising_s = std::clamp(t, from_s, until_s) - from_s;
      return amplitude *
             (0.5 * rising_s * rising_s / (until_s - from_s) + std::max(0.0, t - until_s));
    };
    return (sum(end_s) - sum(begin_s)) / step_s;
  }
  double at(double time_s) const {
    switch (kind) {
      case Kind::none:
        return 0.0;
      case Kind::constant:
        return amplitude;
      case Kind::harmonic:
        return amplitude *
               std::sin(2.0 * 3.14159265358979323846 * frequency_Hz * time_s + phase_rad);
      case Kind::step:
        return time_s < 0.5 * (from_s + until_s) ? 0.0 : amplitude;
    }
    return 0.0;
  }
};

/// d/dt(Ex) = (J − R)z + (G − P)u, y = (G + P)ᵀz + (S + N)u, z = Qx, H = ½xᵀQᵀEx, u being the
/// inputs of the scalar ports and then the external ones. Descriptor parts have P = S = N = 0;
/// others E = I.
struct PartData {
  bool descriptor = false;
  bool active = false;  ///< one damper is negative
  Matrix E, J, R, Q, G, P, S, N;
  std::vector<bool> effort_in;  ///< by scalar port: u = e; else u = f
  std::vector<Drive> drives;    ///< by external input
  Vector start;
  /// States of like units have equal numbers: their errors are measured by the range of all of
  /// them.
  std::vector<int> group;

  int states() const { return static_cast<int>(J.rows()); }
  int ports() const { return static_cast<int>(effort_in.size()); }
  int inputs() const { return ports() + static_cast<int>(drives.size()); }

  static PartData zero(int states, int ports, int drives) {
    PartData part;
    const int n = states, m = ports + drives;
    part.E = Matrix::Identity(n, n);
    part.J = part.R = part.Q = Matrix::Zero(n, n);
    part.G = part.P = Matrix::Zero(n, m);
    part.S = part.N = Matrix::Zero(m, m);
    part.effort_in.assign(static_cast<std::size_t>(ports), true);
    part.drives.resize(static_cast<std::size_t>(drives));
    part.start = Vector::Zero(n);
    part.group.assign(static_cast<std::size_t>(n), 0);
    return part;
  }
};

enum class JointKind {
  connection,     ///< e₁ = e₂, f₁ + f₂ = 0
  common_effort,  ///< all e equal, Σf = 0
  common_flow,    ///< all f equal, Σe = 0
  transformer,    ///< e₁ = n e₂, f₂ = −n f₁
  gyrator,        ///< e₁ = r f₂, e₂ = −r f₁
  skew_gain,      ///< u = −Ĉy
  kernel,         ///< Ee + Ff = 0
  free,           ///< e = 0
  fixed,          ///< f = 0
  resistive,      ///< e = −r f
};

struct PortRef {
  int part = 0;
  int port = 0;
};

struct JointData {
  JointKind kind = JointKind::connection;
  std::vector<PortRef> ports;
  double value = 0.0;  ///< n or r
  Matrix first;        ///< Ĉ or E
  Matrix second;       ///< F
};

struct Network {
  std::string family;
  std::uint64_t seed = 0;
  double step_s = 0.0;
  int steps = 0;
  bool active = false;  ///< a part of it is
  std::vector<PartData> parts;
  std::vector<JointData> joints;

  int states() const {
    int n = 0;
    for (const PartData& part : parts) n += part.states();
    return n;
  }
  int ports() const {
    int p = 0;
    for (const PartData& part : parts) p += part.ports();
    return p;
  }
  /// Number of a port when all are counted in part order.
  int port_number(PortRef port) const {
    int first = 0;
    for (int i = 0; i < port.part; ++i) first += parts[static_cast<std::size_t>(i)].ports();
    return first + port.port;
  }
  /// By part: the number of its connected component.
  std::vector<int> islands() const;
};

/// E and F of a joint, in the order of its ports.
void kernel_of(const Network& network, const JointData& joint, Matrix& E, Matrix& F);

}  // namespace portwave::differential
