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
  // Immittances that add up, of all ports, times w²; sources are next to nothing, and lossless.
  std::ranges::fill(lambda, 0.0);
  double scale = 0.0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    work[k] = Complex(terms[k].direct, -terms[k].storage / omega);
    if (std::abs(work[k]) > 0.0) scale = std::max(scale, std::abs(work[k]));
  }
  if (scale == 0.0) return;
  Complex sum = 0.0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (work[k] == 0.0) work[k] = Complex(0.0, -1e-15 * scale);
    if (terms[k].is_admittance != adds_admittances) work[k] = 1.0 / work[k];
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

void junction_decays(std::span<const FastTerm> terms, const Eigen::MatrixXd& E,
                     const Eigen::MatrixXd& F, double omega, std::span<double> lambda) {
  using Complex = std::complex<double>;
  std::ranges::fill(lambda, 0.0);
  const auto n = static_cast<Eigen::Index>(terms.size());
  for (Eigen::Index k = 0; k < n; ++k) {
    const FastTerm& own = terms[static_cast<std::size_t>(k)];
    if (!(own.storage > 0.0)) continue;
    // One unknown for each other port, whose effort and flow are in the ratio of its immittance; e and f of this one.
    Eigen::MatrixXcd M(E.rows(), n + 1);
    for (Eigen::Index j = 0; j < n; ++j) {
      const FastTerm& other = terms[static_cast<std::size_t>(j)];
      const Complex w(other.direct, -other.storage / omega);
      const double size = std::abs(w);
      const Complex in = size > 1.0 ? 1.0 / w : Complex(1.0), out = size > 1.0 ? Complex(1.0) : w;
      const Complex e = other.is_admittance ? in : out, f = other.is_admittance ? out : in;
      M.col(j) = j == k ? E.col(j).cast<Complex>() : Eigen::VectorXcd(E.col(j) * e + F.col(j) * f);
    }
    M.col(n) = F.col(k).cast<Complex>();
    const Eigen::FullPivLU<Eigen::MatrixXcd> lu(M);
    if (lu.dimensionOfKernel() != 1) continue;
    const Eigen::MatrixXcd solution = lu.kernel();
    const Complex e = solution(k, 0), f = solution(n, 0);
    const Complex seen = own.is_admittance ? -e / f : -f / e;
    const double rate = own.storage * (seen / (1.0 + own.direct * seen)).real();
    if (std::isfinite(rate)) lambda[static_cast<std::size_t>(k)] = rate;
  }
}

}  // namespace portwave
