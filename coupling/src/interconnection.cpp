#include "portwave/coupling/interconnection.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include <Eigen/LU>

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

/// The only non-zero row of `balance` when `rest` is zero there and `balance` is zero elsewhere.
std::optional<Vector> balance_row(const Matrix& balance, const Matrix& rest) {
  Eigen::Index found = -1;
  for (Eigen::Index i = 0; i < balance.rows(); ++i) {
    if (balance.row(i).isZero(0.0)) continue;
    if (found >= 0) return std::nullopt;
    found = i;
  }
  if (found < 0 || !rest.row(found).isZero(0.0)) return std::nullopt;
  return Vector(balance.row(found).transpose());
}

/// Where one row says Σ wⱼfⱼ = 0 and the others bind efforts only, isotropy leaves e = w·(a number),
/// so that P = 2nnᵀ − I, n ∝ Γ^−½w; with e and f exchanged, P = I − 2nnᵀ, n ∝ Γ^½w. Common-effort and
/// common-flow junctions, connections, transformers, free and fixed ends are of this kind. No
/// factorisation, and exact however far the impedances are apart.
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
  return (2.0 * I - P).partialPivLu().inverse();
}

Vector impedances_of(const Junction& junction, std::span<const double> impedance) {
  Vector gamma(static_cast<Eigen::Index>(junction.waves.size()));
  for (std::size_t i = 0; i < junction.waves.size(); ++i) {
    gamma[static_cast<Eigen::Index>(i)] = impedance[static_cast<std::size_t>(junction.waves[i])];
  }
  return gamma;
}

}  // namespace

Interconnection::Interconnection(std::vector<Junction> junctions, std::span<const double> impedance)
    : junction_count_(static_cast<int>(junctions.size())),
      wave_size_(static_cast<int>(impedance.size())),
      junctions_(std::move(junctions)) {
  std::vector<int> uses(impedance.size(), 0);
  for (const Junction& junction : junctions_) {
    for (const int wave : junction.waves) {
      if (wave < 0 || wave >= wave_size_) throw ConfigError("", "a junction names no wave");
      ++uses[static_cast<std::size_t>(wave)];
    }
    add(junction, impedance);
  }
  if (std::any_of(uses.begin(), uses.end(), [](int n) { return n != 1; })) {
    throw ConfigError("", "every wave must be in exactly one junction");
  }
}

void Interconnection::add(const Junction& junction, std::span<const double> impedance) {
  const int k = junction.dirac.size();
  const Vector gamma = impedances_of(junction, impedance);
  std::optional<ReflectionForm> reflection = direct_reflection(junction.dirac, gamma);
  Matrix P;
  if (!reflection) {
    P = wave_map(junction.dirac, gamma);
    reflection = as_reflection(P);
  }
  if (reflection && is_swap(*reflection)) {
    order_.push_back({Form::swap, static_cast<int>(swaps_.size())});
    swaps_.push_back({junction.waves[0], junction.waves[1]});
  } else if (reflection) {
    order_.push_back({Form::reflection, static_cast<int>(reflections_.size())});
    reflections_.push_back({static_cast<int>(normals_.size()), k, reflection->sign});
    reflection_waves_.insert(reflection_waves_.end(), junction.waves.begin(), junction.waves.end());
    normals_.insert(normals_.end(), reflection->n.begin(), reflection->n.end());
  } else {
    order_.push_back({Form::dense, static_cast<int>(dense_.size())});
    dense_.push_back(
        {static_cast<int>(dense_waves_.size()), k, static_cast<int>(dense_values_.size())});
    dense_waves_.insert(dense_waves_.end(), junction.waves.begin(), junction.waves.end());
    for (const RowMatrix& block : {RowMatrix(P), RowMatrix(resolvent(P))}) {
      dense_values_.insert(dense_values_.end(), block.data(), block.data() + block.size());
    }
    gap_.resize(dense_waves_.size());
  }
}

Interconnection::Ranges Interconnection::split(JunctionRange range) const {
  const int swaps = static_cast<int>(swaps_.size());
  const int reflections = static_cast<int>(reflections_.size());
  const auto cut = [&](int from, int count) {
    return JunctionRange{std::clamp(range.first - from, 0, count),
                         std::clamp(range.last - from, 0, count)};
  };
  return {cut(0, swaps), cut(swaps, reflections),
          cut(swaps + reflections, static_cast<int>(dense_.size()))};
}

int Interconnection::wave_count(JunctionRange range) const {
  const Ranges r = split(range);
  int count = 2 * (r.swaps.last - r.swaps.first);
  for (int i = r.reflections.first; i < r.reflections.last; ++i) {
    count += reflections_[static_cast<std::size_t>(i)].count;
  }
  for (int i = r.dense.first; i < r.dense.last; ++i) {
    count += dense_[static_cast<std::size_t>(i)].count;
  }
  return count;
}

void Interconnection::exchange(JunctionRange range, const double* b, double* a) const {
  const Ranges r = split(range);
  for (int i = r.swaps.first; i < r.swaps.last; ++i) {
    const Swap s = swaps_[static_cast<std::size_t>(i)];
    a[s.first] = b[s.second];
    a[s.second] = b[s.first];
  }
  for (int i = r.reflections.first; i < r.reflections.last; ++i) {
    const Reflection f = reflections_[static_cast<std::size_t>(i)];
    const int* waves = reflection_waves_.data() + f.begin;
    const double* n = normals_.data() + f.begin;
    double along = 0.0;
    for (int j = 0; j < f.count; ++j) along += n[j] * b[waves[j]];
    for (int j = 0; j < f.count; ++j) {
      a[waves[j]] = f.sign * (2.0 * along * n[j] - b[waves[j]]);
    }
  }
  for (int i = r.dense.first; i < r.dense.last; ++i) {
    const Dense d = dense_[static_cast<std::size_t>(i)];
    const int* waves = dense_waves_.data() + d.begin;
    const double* P = dense_values_.data() + d.matrix;
    for (int row = 0; row < d.count; ++row) {
      double sum = 0.0;
      for (int j = 0; j < d.count; ++j) sum += P[row * d.count + j] * b[waves[j]];
      a[waves[row]] = sum;
    }
  }
}

void Interconnection::douglas_rachford(JunctionRange range, double relaxation, const double* b,
                                       double* u) const {
  // With R = (2I − P)⁻¹, R(2b − u) − b = R((2b − u) − (2I − P)b) = R g, g = Pb − u: at the fixed point
  // the update vanishes to the last bit. Where P² = I, R g = (2g + Pg)/3.
  const Ranges r = split(range);
  const double third = relaxation / 3.0;
  for (int i = r.swaps.first; i < r.swaps.last; ++i) {
    const Swap s = swaps_[static_cast<std::size_t>(i)];
    const double g1 = b[s.second] - u[s.first], g2 = b[s.first] - u[s.second];
    u[s.first] += third * (2.0 * g1 + g2);
    u[s.second] += third * (2.0 * g2 + g1);
  }
  for (int i = r.reflections.first; i < r.reflections.last; ++i) {
    const Reflection f = reflections_[static_cast<std::size_t>(i)];
    const int* waves = reflection_waves_.data() + f.begin;
    const double* n = normals_.data() + f.begin;
    double b_along = 0.0, u_along = 0.0;
    for (int j = 0; j < f.count; ++j) {
      b_along += n[j] * b[waves[j]];
      u_along += n[j] * u[waves[j]];
    }
    // nᵀPb = sign nᵀb, since Pn = sign n.
    const double g_along = f.sign * b_along - u_along;
    for (int j = 0; j < f.count; ++j) {
      const int w = waves[j];
      const double g = f.sign * (2.0 * b_along * n[j] - b[w]) - u[w];
      u[w] += third * (2.0 * g + f.sign * (2.0 * g_along * n[j] - g));
    }
  }
  for (int i = r.dense.first; i < r.dense.last; ++i) {
    dense_update(dense_[static_cast<std::size_t>(i)], relaxation, b, u);
  }
}

void Interconnection::dense_update(const Dense& d, double relaxation, const double* b,
                                   double* u) const {
  constexpr int kOnStack = 64;
  const int* waves = dense_waves_.data() + d.begin;
  const double* P = dense_values_.data() + d.matrix;
  const double* R = P + d.count * d.count;
  double on_stack[kOnStack];
  double* gap = d.count <= kOnStack ? on_stack : gap_.data() + d.begin;
  for (int row = 0; row < d.count; ++row) {
    double sum = -u[waves[row]];
    for (int j = 0; j < d.count; ++j) sum += P[row * d.count + j] * b[waves[j]];
    gap[row] = sum;
  }
  for (int row = 0; row < d.count; ++row) {
    double sum = 0.0;
    for (int j = 0; j < d.count; ++j) sum += R[row * d.count + j] * gap[j];
    u[waves[row]] += relaxation * sum;
  }
}

Eigen::MatrixXd Interconnection::apply_to_basis(int index, bool resolvent) const {
  const Junction& junction = junctions_[static_cast<std::size_t>(index)];
  const JunctionRange range = position(index);
  const auto k = static_cast<Eigen::Index>(junction.waves.size());
  Matrix out(k, k);
  std::vector<double> b(static_cast<std::size_t>(wave_size_)), a(b.size());
  for (Eigen::Index j = 0; j < k; ++j) {
    const auto place = static_cast<std::size_t>(junction.waves[static_cast<std::size_t>(j)]);
    std::fill(b.begin(), b.end(), 0.0);
    std::fill(a.begin(), a.end(), 0.0);
    if (resolvent) {
      a[place] = -1.0;  // u = −eⱼ, b = 0: the update adds (2I − P)⁻¹ eⱼ
      douglas_rachford(range, 1.0, b.data(), a.data());
      a[place] += 1.0;
    } else {
      b[place] = 1.0;
      exchange(range, b.data(), a.data());
    }
    for (Eigen::Index i = 0; i < k; ++i) {
      out(i, j) = a[static_cast<std::size_t>(junction.waves[static_cast<std::size_t>(i)])];
    }
  }
  return out;
}

JunctionRange Interconnection::position(int index) const {
  const Order order = order_[static_cast<std::size_t>(index)];
  int at = order.position;
  if (order.form != Form::swap) at += static_cast<int>(swaps_.size());
  if (order.form == Form::dense) at += static_cast<int>(reflections_.size());
  return {at, at + 1};
}

}  // namespace portwave
