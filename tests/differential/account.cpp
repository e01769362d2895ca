#include "differential/account.hpp"

#include <cmath>
#include <cstddef>

namespace portwave::differential {
namespace {

using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// An unevaluated sum high + low of two doubles (Dekker).
struct Twofold {
  double high = 0.0;
  double low = 0.0;

  static Twofold product(double a, double b) {
    const double p = a * b;
    return {p, std::fma(a, b, -p)};
  }
  Twofold operator+(const Twofold& other) const {
    const double s = high + other.high;
    const double v = s - high;
    const double error = (high - (s - v)) + (other.high - v) + low + other.low;
    const double sum = s + error;
    return {sum, error - (sum - s)};
  }
  Twofold operator*(double factor) const {
    const Twofold p = product(high, factor);
    return Twofold{p.high, p.low + low * factor};
  }
};

struct PartMatrices {
  LongMatrix Q, M, GpP, SN, D;               // M = EᵀQ; D = [R P; Pᵀ S]
  Matrix Q_size, M_size, GpP_size, SN_size;  // absolute values
  LongMatrix half;                           // I − Π/2 of descriptor parts
};

PartMatrices matrices_of(const PartData& part) {
  PartMatrices m;
  const Eigen::Index n = part.states(), k = part.inputs();
  m.Q = part.Q.cast<long double>();
  m.M = part.E.cast<long double>().transpose() * m.Q;
  m.GpP = (part.G + part.P).cast<long double>();
  m.SN = (part.S + part.N).cast<long double>();
  m.D = LongMatrix::Zero(n + k, n + k);
  m.D.topLeftCorner(n, n) = part.R.cast<long double>();
  m.D.topRightCorner(n, k) = part.P.cast<long double>();
  m.D.bottomLeftCorner(k, n) = part.P.cast<long double>().transpose();
  m.D.bottomRightCorner(k, k) = part.S.cast<long double>();
  m.Q_size = part.Q.cwiseAbs();
  m.M_size = part.E.cwiseAbs().transpose() * m.Q_size;
  m.GpP_size = (part.G + part.P).cwiseAbs();
  m.SN_size = (part.S + part.N).cwiseAbs();
  if (part.descriptor) m.half = LongMatrix::Identity(n, n) - 0.5L * projector(part);
  return m;
}

Vector sizes(const LongVector& v) { return v.cwiseAbs().cast<double>(); }

PartEnergies energies_of(const PartData& part, const PartMatrices& m, double h, const LongVector& x,
                         const LongVector& x_next, const LongVector& u, const LongVector& e,
                         const LongVector& f, const double* gamma) {
  PartEnergies result;
  const int p = part.ports(), k = part.inputs();
  const LongVector mean = 0.5L * (x + x_next), step = x_next - x;
  const LongVector mid = part.descriptor ? LongVector(x + m.half * step) : mean;
  const LongVector slope = m.M * mean, z = m.Q * mid;
  result.change = slope.dot(step);
  const LongVector y = m.GpP.transpose() * z + m.SN * u;
  result.supplied = h * u.tail(k - p).dot(y.tail(k - p));
  LongVector zu(z.size() + u.size());
  zu << z, u;
  result.dissipated = h * zu.dot(m.D * zu);
  const Vector z_size = m.Q_size * sizes(mid), u_size = sizes(u);
  const Vector y_size = m.GpP_size.transpose() * z_size + m.SN_size * u_size;
  result.terms = (m.M_size * sizes(mean)).dot(sizes(step)) +
                 (sizes(slope) + sizes(m.M * x_next)).dot(sizes(x) + sizes(x_next)) +
                 h * u_size.dot(y_size);
  Vector zu_size(z.size() + u.size());
  zu_size << z_size, u_size;
  result.terms += h * sizes(zu).dot(m.D.cwiseAbs().cast<double>() * zu_size);
  for (int j = 0; j < p; ++j) {
    result.through_ports += h * e[j] * f[j];
    result.exchanged += static_cast<double>(h * std::abs(e[j] * f[j]));
    if (gamma[j] > 0.0) {
      result.waves +=
          static_cast<double>(0.25L * h * (e[j] * e[j] / gamma[j] + gamma[j] * f[j] * f[j]));
    }
  }
  result.terms += result.exchanged + result.waves;
  if (part.descriptor) {  // E is singular up to its own rounding and condition only
    result.terms += 16.0 * sizes(mid).dot(m.M_size * sizes(m.half * step));
  } else {
    const Matrix JR_size = part.J.cwiseAbs() + part.R.cwiseAbs();
    const Matrix B_size = part.G.cwiseAbs() + part.P.cwiseAbs();
    const Vector forces = JR_size * (m.Q_size * (sizes(x) + sizes(x_next))) + B_size * u_size;
    const LongVector work = h * m.Q * (m.GpP.rightCols(k - p) * u.tail(k - p));
    result.of_forces = h * sizes(m.M * x_next - 0.5L * work).dot(forces);
  }
  return result;
}

}  // namespace

long double stored_energy(const PartData& part, const LongVector& x) {
  const Matrix M = part.E.transpose() * part.Q;
  Twofold sum;
  for (int i = 0; i < part.states(); ++i) {
    Twofold row;
    for (int j = 0; j < part.states(); ++j) {
      row = row + Twofold::product(M(i, j), static_cast<double>(x[j]));
    }
    sum = sum + row * static_cast<double>(x[i]);
  }
  return 0.5L * (static_cast<long double>(sum.high) + static_cast<long double>(sum.low));
}

Account account_of(const Network& network, const Course& course) {
  Account account;
  const std::size_t parts = network.parts.size();
  std::vector<PartMatrices> matrices;
  const std::vector<double> gamma = port_impedances(network);
  Eigen::Index first = 0;
  for (const PartData& part : network.parts) {
    matrices.push_back(matrices_of(part));
    const LongVector x = course.x[0].segment(first, part.states());
    account.initial.push_back(stored_energy(part, x));
    account.initial_terms.push_back(sizes(x).dot(matrices.back().M_size * sizes(x)));
    first += part.states();
  }
  std::vector<long double> stored = account.initial;
  for (std::size_t n = 0; n + 1 < course.x.size(); ++n) {
    account.steps.emplace_back();
    const double t = network.step_s * (static_cast<double>(n) + 0.5);
    Eigen::Index state = 0, port = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const PartData& part = network.parts[i];
      const LongVector e = course.e[n + 1].segment(port, part.ports());
      const LongVector f = course.f[n + 1].segment(port, part.ports());
      LongVector u(part.inputs());
      for (int j = 0; j < part.ports(); ++j)
        u[j] = part.effort_in[static_cast<std::size_t>(j)] ? e[j] : f[j];
      for (std::size_t k = 0; k < part.drives.size(); ++k) {
        u[part.ports() + static_cast<Eigen::Index>(k)] = part.drives[k].in_step(t, network.step_s);
      }
      PartEnergies energies =
          energies_of(part, matrices[i], network.step_s, course.x[n].segment(state, part.states()),
                      course.x[n + 1].segment(state, part.states()), u, e, f, gamma.data() + port);
      stored[i] += energies.change;
      energies.stored = stored[i];
      account.steps.back().push_back(energies);
      state += part.states();
      port += part.ports();
    }
    long double ends = 0.0L;
    for (const JointData& joint : network.joints) {
      if (joint.kind != JointKind::resistive) continue;
      const long double flow = course.f[n + 1][network.port_number(joint.ports[0])];
      ends += static_cast<long double>(network.step_s * joint.value) * flow * flow;
    }
    account.end_dissipated.push_back(ends);
  }
  return account;
}

}  // namespace portwave::differential
