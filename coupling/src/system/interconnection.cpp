#include "portwave/coupling/system/interconnection.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "portwave/subsystems/matrices/decompositions.hpp"
#include "system/balance_row.hpp"
#include "system/junction_compiler.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kRoundOff = 1e-14;

/// P = sign (2nnᵀ − I), |n| = 1.
struct ReflectionForm {
  Vector n;
  double sign;
};

bool is_swap(const ReflectionForm& form) {
  return form.sign > 0.0 && form.n.size() == 2 && form.n[0] == form.n[1];
}

/// Where one row says Σ wⱼfⱼ = 0 and the others bind efforts only, isotropy leaves e = w·(a
/// number), so that P = 2nnᵀ − I, n ∝ Γ^−½w; with e and f exchanged, P = I − 2nnᵀ, n ∝ Γ^½w.
/// Common-effort and common-flow junctions, connections, transformers, free and fixed ends are of
/// this kind. No factorisation, and exact however far the impedances are apart.
std::optional<ReflectionForm> direct_reflection(const DiracStructure& dirac, const Vector& gamma) {
  std::optional<ReflectionForm> form;
  if (const auto w = balance_row(dirac.F, dirac.E)) {
    form = {w->cwiseQuotient(gamma.cwiseSqrt()), 1.0};
  } else if (const auto v = balance_row(dirac.E, dirac.F)) {
    form = {v->cwiseProduct(gamma.cwiseSqrt()), -1.0};
  }
  if (form) form->n.stableNormalize();
  return form;
}

/// n and sign with P = sign (2nnᵀ − I) up to round-off, or nothing.
std::optional<ReflectionForm> as_reflection(const Matrix& P) {
  const Eigen::Index k = P.rows();
  for (const double sign : {1.0, -1.0}) {
    const Matrix nn = 0.5 * (sign * P + Matrix::Identity(k, k));  // nnᵀ if it is one
    if (std::abs(nn.trace() - 1.0) > kRoundOff * static_cast<double>(k)) continue;
    Eigen::Index pivot = 0;
    nn.diagonal().maxCoeff(&pivot);
    Vector n = nn.col(pivot) / std::sqrt(nn(pivot, pivot));
    if ((n * n.transpose() - nn).cwiseAbs().maxCoeff() > kRoundOff) continue;
    n.normalize();
    return ReflectionForm{n, sign};
  }
  return std::nullopt;
}

/// (2I − P)⁻¹, by its closed form where P² = ±I.
Matrix resolvent(const Matrix& P) {
  const Matrix I = Matrix::Identity(P.rows(), P.cols());
  const Matrix square = P * P;
  if ((square - I).cwiseAbs().maxCoeff() <= kRoundOff) return (2.0 * I + P) / 3.0;
  if ((square + I).cwiseAbs().maxCoeff() <= kRoundOff) return (2.0 * I + P) / 5.0;
  return lu_inverse(2.0 * I - P);
}

Vector impedances_at(std::span<const int> offsets, std::span<const double> impedance) {
  Vector gamma(static_cast<Eigen::Index>(offsets.size()));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    gamma[static_cast<Eigen::Index>(i)] = impedance[static_cast<std::size_t>(offsets[i])];
  }
  return gamma;
}

std::vector<int> identity(std::size_t size) {
  std::vector<int> out(size);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

Interconnection::Interconnection(std::span<const Junction> junctions,
                                 std::span<const double> impedance)
    : Interconnection(junctions, identity(impedance.size()), impedance) {}

Interconnection::Interconnection(std::span<const Junction> junctions,
                                 std::span<const int> offset_of, std::span<const double> impedance)
    : wave_size_(static_cast<int>(impedance.size())) {
  std::vector<bool> used(impedance.size());
  std::vector<int> offsets;
  for (const Junction& junction : junctions) {
    offsets.clear();
    for (const int wave : junction.waves) {
      if (wave < 0 || static_cast<std::size_t>(wave) >= offset_of.size()) {
        throw ConfigError("", "a junction names no wave");
      }
      offsets.push_back(offset_of[static_cast<std::size_t>(wave)]);
      const auto offset = static_cast<std::size_t>(offsets.back());
      if (used[offset]) throw ConfigError("", "every wave must be in exactly one junction");
      used[offset] = true;
    }
    add(junction.dirac, offsets, impedance);
  }
  for (const int offset : offset_of) {
    if (!used[static_cast<std::size_t>(offset)]) {
      throw ConfigError("", "every wave must be in exactly one junction");
    }
  }
  all_ = compile(identity(blocks_.size()));
}

void Interconnection::add(const DiracStructure& dirac, std::span<const int> offsets,
                          std::span<const double> impedance) {
  const int k = dirac.size();
  const Vector gamma = impedances_at(offsets, impedance);
  std::optional<ReflectionForm> reflection = direct_reflection(dirac, gamma);
  Matrix P;
  if (!reflection) {
    P = wave_map(dirac, gamma);
    reflection = as_reflection(P);
  }
  Block block{JunctionForm::dense, k, static_cast<int>(waves_.size()),
              static_cast<int>(values_.size()), 1.0};
  waves_.insert(waves_.end(), offsets.begin(), offsets.end());
  if (reflection && is_swap(*reflection)) {
    block.form = JunctionForm::swap;
  } else if (reflection) {
    block.form = JunctionForm::reflection;
    block.sign = reflection->sign;
    values_.insert(values_.end(), reflection->n.begin(), reflection->n.end());
  } else {
    for (const RowMatrix& matrix : {RowMatrix(P), RowMatrix(resolvent(P))}) {
      values_.insert(values_.end(), matrix.data(), matrix.data() + matrix.size());
    }
  }
  blocks_.push_back(block);
}

std::span<const int> Interconnection::waves(int index) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  return {waves_.data() + block.waves, static_cast<std::size_t>(block.arity)};
}

Interconnection::Coefficients Interconnection::coefficients(int index) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  const int count = block.form == JunctionForm::swap         ? 0
                    : block.form == JunctionForm::reflection ? block.arity
                                                             : 2 * block.arity * block.arity;
  return {block.sign, {values_.data() + block.values, static_cast<std::size_t>(count)}};
}

std::size_t Interconnection::bytes() const {
  return blocks_.capacity() * sizeof(Block) + waves_.capacity() * sizeof(int) +
         values_.capacity() * sizeof(double) + all_.bytes();
}

CompiledJunctions Interconnection::compile(std::span<const int> junctions,
                                           std::span<const int> renumbering) const {
  return JunctionCompiler(*this, renumbering).compile(junctions);
}

Eigen::MatrixXd Interconnection::apply_to_basis(int index, bool resolvent) const {
  const std::span<const int> offsets = waves(index);
  const auto k = static_cast<Eigen::Index>(offsets.size());
  const int own[] = {index};
  const CompiledJunctions one = compile(own);
  Matrix out(k, k);
  std::vector<double> b(static_cast<std::size_t>(wave_size_)), a(b.size());
  for (Eigen::Index j = 0; j < k; ++j) {
    const auto offset = static_cast<std::size_t>(offsets[static_cast<std::size_t>(j)]);
    std::fill(b.begin(), b.end(), 0.0);
    std::fill(a.begin(), a.end(), 0.0);
    if (resolvent) {
      a[offset] = -1.0;  // u = −eⱼ, b = 0: the update adds (2I − P)⁻¹ eⱼ
      one.resolve(1.0, b.data(), a.data());
      a[offset] += 1.0;
    } else {
      b[offset] = 1.0;
      one.exchange(b.data(), a.data());
    }
    for (Eigen::Index i = 0; i < k; ++i) {
      out(i, j) = a[static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)])];
    }
  }
  return out;
}

}  // namespace portwave
