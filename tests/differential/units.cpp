#include "differential/units.hpp"

#include <cstddef>
#include <vector>

namespace portwave::differential {
namespace {

/// x' = Xx, u' = Uu, H' = energy·H. E stays: X is uniform where there is one.
void scale_part(PartData& part, const Vector& X, const Vector& U, double energy) {
  const Vector X_inverse = X.cwiseInverse(), U_inverse = U.cwiseInverse();
  part.Q = energy * (X_inverse.asDiagonal() * part.Q * X_inverse.asDiagonal());
  const Matrix left = X.asDiagonal();
  part.J = left * part.J * left / energy;
  part.R = left * part.R * left / energy;
  part.G = left * part.G * U_inverse.asDiagonal();
  part.P = left * part.P * U_inverse.asDiagonal();
  part.S = energy * (U_inverse.asDiagonal() * part.S * U_inverse.asDiagonal());
  part.N = energy * (U_inverse.asDiagonal() * part.N * U_inverse.asDiagonal());
  part.start = X.asDiagonal() * part.start;
}

}  // namespace

void change_units(Random& random, Network& network, double energy, double decades, bool per_state) {
  // By part and port: what its effort is multiplied by.
  std::vector<Vector> effort;
  for (const PartData& part : network.parts) effort.push_back(Vector::Ones(part.ports()));
  for (JointData& joint : network.joints) {
    const auto k = static_cast<Eigen::Index>(joint.ports.size());
    const bool mixes = joint.kind == JointKind::transformer || joint.kind == JointKind::gyrator ||
                       joint.kind == JointKind::skew_gain || joint.kind == JointKind::kernel;
    Vector e(k), f(k), u(k);
    e[0] = random.power_of_two(-decades, decades);
    for (Eigen::Index j = 1; j < k; ++j)
      e[j] = mixes ? random.power_of_two(-decades, decades) : e[0];
    f = energy * e.cwiseInverse();
    for (Eigen::Index j = 0; j < k; ++j) {
      const PortRef port = joint.ports[static_cast<std::size_t>(j)];
      effort[static_cast<std::size_t>(port.part)][port.port] = e[j];
      const bool effort_in = network.parts[static_cast<std::size_t>(port.part)]
                                 .effort_in[static_cast<std::size_t>(port.port)];
      u[j] = effort_in ? e[j] : f[j];
    }
    switch (joint.kind) {
      case JointKind::transformer:
        joint.value *= e[0] / e[1];
        break;
      case JointKind::gyrator:
        joint.value *= e[0] / f[1];
        break;
      case JointKind::resistive:
        joint.value *= e[0] / f[0];
        break;
      case JointKind::skew_gain:
        joint.first = Matrix(u.asDiagonal() * joint.first * u.asDiagonal()) / energy;
        break;
      case JointKind::kernel:
        joint.first = Matrix(joint.first * e.cwiseInverse().asDiagonal());
        joint.second = Matrix(joint.second * f.cwiseInverse().asDiagonal());
        break;
      default:
        break;
    }
  }
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    PartData& part = network.parts[i];
    Vector X(part.states()), U(part.inputs());
    const double common = random.power_of_two(-decades, decades);
    for (int k = 0; k < part.states(); ++k) {
      X[k] = per_state && !part.descriptor ? random.power_of_two(-decades, decades) : common;
    }
    for (int j = 0; j < part.ports(); ++j) {
      U[j] = part.effort_in[static_cast<std::size_t>(j)] ? effort[i][j] : energy / effort[i][j];
    }
    for (int j = part.ports(); j < part.inputs(); ++j) {
      U[j] = random.power_of_two(-decades, decades);
      Drive& drive = part.drives[static_cast<std::size_t>(j - part.ports())];
      drive.amplitude *= U[j];
    }
    scale_part(part, X, U, energy);
    if (per_state) {
      for (int k = 0; k < part.states(); ++k) part.group[static_cast<std::size_t>(k)] = k;
    }
  }
}

}  // namespace portwave::differential
