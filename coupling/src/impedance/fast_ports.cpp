#include "impedance/fast_ports.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <Eigen/LU>

#include "impedance/response_tools.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

double product(const SparseMatrix& A, int i, const SparseMatrix& B, int j, double sign_of_b,
               const SparseMatrix& M, const SparseMatrix& C, double sign_of_c) {
  // (A + sign_of_c C)ᵢᵀ M (B + sign_of_b C)ⱼ would allocate as much: columns of ports are short.
  Eigen::SparseVector<double> left = A.col(i), right = B.col(j);
  left += sign_of_c * Eigen::SparseVector<double>(C.col(i));
  right += sign_of_b * Eigen::SparseVector<double>(C.col(j));
  const Eigen::SparseVector<double> moved = M * right;
  return left.dot(moved);
}

}  // namespace

FastPart fast_part(const Subsystem& part, const double* x) {
  const Signature& signature = part.signature();
  const int n = signature.state_size(), p = signature.wave_size();
  FastPart out;
  out.ports.resize(at(p));
  Structure s = part.structure();
  if (!part.constant_structure()) part.structure_at(x, s);
  for (int j = 0; j < p; ++j) out.ports[at(j)].direct = s.S.coeff(j, j) + s.N.coeff(j, j);
  if (n == 0 || part.linear_form().E != nullptr) return out;
  const SparseMatrix K = hessian_at(part, x);
  Eigen::VectorXd g(n);
  part.gradient(x, g.data());
  const std::vector<double> typical = part.typical_state();
  const Eigen::VectorXd usual = K * Eigen::Map<const Eigen::VectorXd>(typical.data(), n);
  for (int i = 0; i < n; ++i) {
    out.rate = std::max(out.rate, s.R.coeff(i, i) * K.coeff(i, i));
  }
  for (int j = 0; j < p; ++j) {
    FastPort& port = out.ports[at(j)];
    port.storage = product(s.G, j, s.G, j, -1.0, K, s.P, 1.0);
    const Eigen::SparseVector<double> column =
        Eigen::SparseVector<double>(s.G.col(j)) + Eigen::SparseVector<double>(s.P.col(j));
    port.output = std::abs(column.dot(g));
    port.usual = std::abs(column.dot(usual));
  }
  return out;
}

void joint_decays(std::span<const FastTerm> terms, bool adds_admittances, double omega,
                  std::span<std::complex<double>> work, std::span<double> lambda) {
  using Complex = std::complex<double>;
  // Immittances that add up, of all ports, times w². Sources are next to nothing, or to infinite, and lossless: beside
  // what adds up, for impedances and admittances differ by any unit.
  std::ranges::fill(lambda, 0.0);
  double scale = 0.0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    work[k] = Complex(terms[k].direct, -terms[k].storage / omega);
    if (work[k] == 0.0) continue;
    if (terms[k].is_admittance != adds_admittances) work[k] = 1.0 / work[k];
    if (std::abs(work[k]) > 0.0) scale = std::max(scale, std::abs(work[k]));
  }
  if (scale == 0.0) return;
  Complex sum = 0.0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (work[k] == 0.0) {
      const bool adds_nothing = terms[k].is_admittance == adds_admittances;
      work[k] = Complex(0.0, adds_nothing ? -1e-15 * scale : 1e15 * scale);
    }
    work[k] *= terms[k].weight_squared;
    sum += work[k];
  }
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const FastTerm& own = terms[k];
    if (!(own.storage > 0.0) || own.weight_squared == 0.0) continue;
    Complex seen = 0.0;
    for (std::size_t j = 0; j < terms.size(); ++j) {
      if (j != k) seen += work[j];
    }
    seen /= own.weight_squared;
    // What takes a flow sees an admittance, f = −Ye.
    const bool needs_admittance = !own.is_admittance;
    if (needs_admittance != adds_admittances) seen = 1.0 / seen;
    const Complex closed = seen / (1.0 + own.direct * seen);
    const double rate = own.storage * closed.real();
    if (std::isfinite(rate)) lambda[k] = rate;
  }
}

namespace {

/// The median impedance of ports: in units of its root, efforts and flows are of like size.
double usual_impedance(std::span<const FastTerm> terms, double omega) {
  std::vector<double> logs;
  for (const FastTerm& own : terms) {
    const double log = std::log(std::hypot(own.direct, own.storage / omega));
    if (std::isfinite(log)) logs.push_back(own.is_admittance ? -log : log);
  }
  if (logs.empty()) return 1.0;
  const auto middle = logs.begin() + std::ssize(logs) / 2;
  std::ranges::nth_element(logs, middle);
  return std::exp(*middle);
}

}  // namespace

std::vector<double> closed_resistances(std::span<const FastTerm> terms, const Eigen::MatrixXd& E,
                                       const Eigen::MatrixXd& F, double omega) {
  using Complex = std::complex<double>;
  const auto n = static_cast<int>(terms.size());
  std::vector<double> out(terms.size(), 0.0);
  if (E.rows() != n) return out;
  const double Z = usual_impedance(terms, omega), root = std::sqrt(Z);
  const auto unit_of = [&](const FastTerm& own) { return own.is_admittance ? Z : 1.0 / Z; };
  const auto storage_of = [&](const FastTerm& own) {
    return Complex(0.0, -own.storage / omega) * unit_of(own);
  };
  // One unknown for each port, whose effort and flow are in the ratio of its immittance, in units of √Z and 1/√Z: its
  // input is `in` times that.
  const auto column_of = [&](int j, Complex w, Complex& in) -> Eigen::VectorXcd {
    const double size = std::abs(w);
    in = size > 1.0 ? 1.0 / w : Complex(1.0);
    const Complex output = size > 1.0 ? Complex(1.0) : w;
    const bool is_admittance = terms[at(j)].is_admittance;
    return E.col(j) * (root * (is_admittance ? in : output)) +
           F.col(j) * ((is_admittance ? output : in) / root);
  };
  // An output of 1 beside that of the port.
  const auto given_at = [&](int j) -> Eigen::VectorXcd {
    return terms[at(j)].is_admittance ? Eigen::VectorXcd(F.col(j) * Complex(-1.0 / root))
                                      : Eigen::VectorXcd(E.col(j) * Complex(-root));
  };
  Eigen::MatrixXcd M(n, n), given(n, n);
  std::vector<Complex> in(terms.size());
  for (int j = 0; j < n; ++j) {
    // Sources are next to nothing, and lossless.
    constexpr double kSource = 1e-15;
    Complex w = terms[at(j)].direct * unit_of(terms[at(j)]) + storage_of(terms[at(j)]);
    if (w == 0.0) w = Complex(0.0, -kSource);
    M.col(j) = column_of(j, w, in[at(j)]);
    given.col(j) = given_at(j);
  }
  Eigen::VectorXd scale = M.cwiseAbs().rowwise().maxCoeff();
  for (double& value : scale) value = value > 0.0 ? 1.0 / value : 1.0;
  M = scale.asDiagonal() * M;
  given = scale.asDiagonal() * given;
  const Eigen::MatrixXcd solution = M.partialPivLu().solve(given);
  for (int k = 0; k < n; ++k) {
    // What the output meets, the storage of the port itself included; and without it.
    Complex met = -in[at(k)] * solution(k, k);
    const Complex left = 1.0 - storage_of(terms[at(k)]) * met;
    constexpr double kCancels = 1e-3;
    if (std::abs(left) > kCancels) {
      met /= left;
    } else {
      Eigen::MatrixXcd apart = M;
      Complex own;
      apart.col(k) =
          scale.asDiagonal() * column_of(k, terms[at(k)].direct * unit_of(terms[at(k)]), own);
      met = -own * apart.partialPivLu().solve(given.col(k))[k];
    }
    const double resistance = met.real() * unit_of(terms[at(k)]);
    if (std::isfinite(resistance)) out[at(k)] = resistance;
  }
  return out;
}

void junction_decays(std::span<const FastTerm> terms, const Eigen::MatrixXd& E,
                     const Eigen::MatrixXd& F, double omega, std::span<double> lambda) {
  std::ranges::fill(lambda, 0.0);
  const std::vector<double> closed = closed_resistances(terms, E, F, omega);
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (terms[k].storage > 0.0) lambda[k] = std::max(0.0, terms[k].storage * closed[k]);
  }
}

}  // namespace portwave
