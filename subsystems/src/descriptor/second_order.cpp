#include "portwave/subsystems/descriptor/second_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "matrices/matrix_check.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "portwave/subsystems/matrices/condensed_factors.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {
namespace {

// Blocks of n×n that are cheaper than matrices: nothing, and a multiple of the identity.
struct Blank {};
struct Ones {
  int size;
  double factor;
};

void append_column(const Blank& /*block*/, int /*column*/, int /*first_row*/, int /*own*/,
                   SparseMatrix& /*M*/) {}
void append_column(const Ones& block, int column, int first_row, int own, SparseMatrix& M) {
  M.insertBack(first_row + own, column) = block.factor;
}
void append_column(const SparseMatrix& block, int column, int first_row, int own, SparseMatrix& M) {
  for (SparseMatrix::InnerIterator it(block, own); it; ++it) {
    M.insertBack(first_row + it.row(), column) = it.value();
  }
}
Eigen::Index entries_of(const Blank& /*block*/) { return 0; }
Eigen::Index entries_of(const Ones& block) { return block.size; }
Eigen::Index entries_of(const SparseMatrix& block) { return block.nonZeros(); }

/// [A C; B D] of blocks n×n.
template <class Upper, class Lower, class Right, class Last>
SparseMatrix blocks(int n, const Upper& A, const Lower& B, const Right& C, const Last& D) {
  SparseMatrix M(2 * n, 2 * n);
  M.reserve(entries_of(A) + entries_of(B) + entries_of(C) + entries_of(D));
  for (int j = 0; j < n; ++j) {
    M.startVec(j);
    append_column(A, j, 0, j, M);
    append_column(B, j, n, j, M);
  }
  for (int j = 0; j < n; ++j) {
    M.startVec(n + j);
    append_column(C, n + j, 0, j, M);
    append_column(D, n + j, n, j, M);
  }
  M.finalize();
  return M;
}

/// [0; B]
SparseMatrix below(int n, const SparseMatrix& B) {
  SparseMatrix M(2 * n, B.cols());
  M.reserve(B.nonZeros());
  for (int j = 0; j < B.outerSize(); ++j) {
    M.startVec(j);
    append_column(B, j, n, j, M);
  }
  M.finalize();
  return M;
}

SparseMatrix symmetric_part(const SparseMatrix& M) {
  return 0.5 * (M + SparseMatrix(M.transpose()));
}

/// True only where no rank has to be judged: every row of M has far more on the diagonal than beside it, or
/// a Cholesky factorisation of a large M scaled to a unit diagonal has no small pivot.
bool is_plainly_definite(const SparseMatrix& M) {
  constexpr double kMargin = 1e-3, kNoSmallPivot = 1e-3;
  constexpr Eigen::Index kLarge = 2000;  // below, the rank costs nothing
  if (M.rows() < kLarge) return false;
  bool is_dominant = true;
  Eigen::VectorXd diagonal = Eigen::VectorXd::Zero(M.rows());
  for (int j = 0; j < M.outerSize(); ++j) {
    double others = 0.0;
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      (it.row() == j ? diagonal[j] : others) += it.row() == j ? it.value() : std::abs(it.value());
    }
    if (!(diagonal[j] > 0.0)) return false;
    is_dominant = is_dominant && others <= (1.0 - kMargin) * diagonal[j];
  }
  if (is_dominant) return true;
  const Eigen::VectorXd scale = diagonal.cwiseSqrt().cwiseInverse();
  CondensedFactors factors;
  return factors.factorise(scale.asDiagonal() * M * scale.asDiagonal(), {}) &&
         factors.smallest_pivot() > kNoSmallPivot;
}

/// A semidefinite M that is not definite: masses are missing.
void check_regular(const SparseMatrix& M, int n, const std::vector<std::string>& names,
                   Issues& issues) {
  if (is_plainly_definite(M)) return;
  const SparseRank rank(M);
  if (rank.is_regular()) return;
  std::vector<int> rows;
  for (SparseMatrix::InnerIterator it(rank.right_kernel(), 0); it; ++it) {
    rows.push_back(static_cast<int>(it.row()));
  }
  issues.push_back(
      {"/M", fmt::format("M must be positive definite; it is singular (rank {} of {}): a motion of "
                         "{} has no mass.\nEquations without mass are for "
                         "descriptor_port_hamiltonian",
                         rank.rank(), n, list_names(rows, n, names))});
}

/// Entries of D, M and K at one place.
struct Triple {
  double d = 0.0, m = 0.0, k = 0.0;
};

/// Those of all places, column by column.
std::vector<Triple> entries_side_by_side(const SecondOrderForm& form) {
  std::vector<Triple> entries;
  entries.reserve(static_cast<std::size_t>(
      std::max({form.D.nonZeros(), form.M.nonZeros(), form.K.nonZeros()})));
  for (int j = 0; j < form.M.outerSize(); ++j) {
    SparseMatrix::InnerIterator d(form.D, j), m(form.M, j), k(form.K, j);
    while (d || m || k) {
      constexpr auto kNone = std::numeric_limits<Eigen::Index>::max();
      const Eigen::Index row =
          std::min({d ? d.row() : kNone, m ? m.row() : kNone, k ? k.row() : kNone});
      Triple& own = entries.emplace_back();
      const auto take = [row](SparseMatrix::InnerIterator& it, double& value) {
        if (!it || it.row() != row) return;
        value = it.value();
        ++it;
      };
      take(d, own.d);
      take(m, own.m);
      take(k, own.k);
    }
  }
  return entries;
}

constexpr int kLargeForm = 2000;  // coordinates from which factorisations are worth avoiding

}  // namespace

Issues validate(const SecondOrderForm& form, int coordinates, int inputs,
                const StructureRules& rules) {
  const int n = coordinates;
  if (n == 0) return {{"/coordinates", "must name at least one coordinate"}};
  Issues issues;
  const auto is_usable = [&](std::string_view name, const SparseMatrix& M, int columns) {
    MatrixCheck check(issues, name, M);
    return check.has_shape(n, columns) && check.is_finite();
  };
  if (is_usable("M", form.M, n)) {
    MatrixCheck check(issues, "M", form.M);
    if (check.is_symmetric() && check.is_semidefinite(n, rules.names)) {
      check_regular(form.M, n, rules.names, issues);
    }
  }
  Issues of_K;
  if (MatrixCheck shape(of_K, "K", form.K); shape.has_shape(n, n) && shape.is_finite()) {
    MatrixCheck check(of_K, "K", form.K);
    if (check.is_symmetric()) check.is_semidefinite(n, rules.names);
  }
  const bool is_sound = issues.empty() && of_K.empty();  // M and K are
  const bool D = is_usable("D", form.D, n);
  const bool is_large = n >= kLargeForm;
  if (D && !rules.allow_active && !(is_large && is_sound && proportional_damping(form))) {
    const SparseMatrix symmetric = symmetric_part(form.D);
    MatrixCheck(issues, "(D + D^T)/2", symmetric, "/D")
        .is_semidefinite(n, rules.names, "; a part that may create energy must say allow_active");
  }
  append(issues, "", std::move(of_K));
  is_usable("B", form.B, inputs);
  return issues;
}

std::optional<ProportionalDamping> proportional_damping(const SecondOrderForm& form) {
  constexpr double kRounding = 1e-14;
  const std::vector<Triple> entries = entries_side_by_side(form);
  ProportionalDamping found;
  double dd = 0.0, mm = 0.0, mk = 0.0, kk = 0.0;
  for (const Triple& own : entries) {
    dd += own.d * own.d;
    mm += own.m * own.m;
    mk += own.m * own.k;
    kk += own.k * own.k;
  }
  const double determinant = mm * kk - mk * mk;
  const bool are_two = determinant > 1e-12 * mm * kk;
  const auto rest_of = [&](const Triple& own) {
    return own.d - (found.of_mass * own.m + found.of_stiffness * own.k);
  };
  for (int sweep = 0; sweep < 3; ++sweep) {  // least squares, refined
    double dm = 0.0, dk = 0.0;
    for (const Triple& own : entries) {
      const double rest = rest_of(own);
      dm += rest * own.m;
      dk += rest * own.k;
    }
    found.of_mass += are_two ? (dm * kk - dk * mk) / determinant : dm / mm;
    if (are_two) found.of_stiffness += (dk * mm - dm * mk) / determinant;
  }
  // A factor of the size of rounding is none.
  const double of_D = std::sqrt(dd);
  if (std::abs(found.of_mass) * std::sqrt(mm) <= kRounding * of_D) found.of_mass = 0.0;
  if (std::abs(found.of_stiffness) * std::sqrt(kk) <= kRounding * of_D) found.of_stiffness = 0.0;
  if (!(found.of_mass >= 0.0) || !(found.of_stiffness >= 0.0)) return std::nullopt;
  for (const Triple& own : entries) {
    const double size =
        std::abs(own.d) + std::abs(own.m) * found.of_mass + std::abs(own.k) * found.of_stiffness;
    if (!(std::abs(rest_of(own)) <= kRounding * size)) return std::nullopt;
  }
  return found;
}

std::unique_ptr<DescriptorPortHamiltonian> make_second_order_part(
    Signature signature, SecondOrderForm form, DescriptorPortHamiltonian::Options options,
    bool may_condense, std::optional<ProportionalDamping> damping) {
  const int ports = signature.wave_size();
  for (SparseMatrix* M : {&form.M, &form.D, &form.K, &form.B}) M->makeCompressed();
  std::shared_ptr<const SecondOrderForm> own(new SecondOrderForm(taken(form)));
  const bool are_efforts = std::ranges::all_of(
      signature.ports, [](const Port& port) { return port.causality == Causality::effort_in; });
  std::shared_ptr<const CondensedForm> factored;
  const bool is_large = own->M.rows() >= kFactoredForm;
  if ((may_condense || is_large) && are_efforts && !options.allow_active &&
      options.storage == StepMapStorage::automatic) {
    factored = CondensedForm::of(own, ports, damping);
  }
  return std::unique_ptr<DescriptorPortHamiltonian>(new DescriptorPortHamiltonian(
      std::make_shared<const Signature>(std::move(signature)), std::move(own), std::move(options),
      std::move(factored), may_condense));
}

DescriptorForm descriptor_form(const SecondOrderForm& form) {
  const int n = static_cast<int>(form.M.rows());
  const SparseMatrix transposed = form.D.transpose();
  const SparseMatrix symmetric = 0.5 * (form.D + transposed);
  const SparseMatrix skew = -0.5 * (form.D - transposed);
  const Ones ones{n, 1.0}, negative{n, -1.0};
  const Blank none;
  return {.E = blocks(n, ones, none, none, form.M),
          .J = blocks(n, none, negative, ones, skew),
          .R = blocks(n, none, none, none, symmetric),
          .Q = blocks(n, form.K, none, none, ones),
          .B = below(n, form.B)};
}

std::vector<StateVariable> second_order_states(const std::vector<StateVariable>& coordinates) {
  std::vector<StateVariable> states = coordinates;
  states.reserve(2 * coordinates.size());
  for (const StateVariable& coordinate : coordinates) {
    states.push_back(
        {coordinate.name + "_rate", coordinate.unit.empty() ? "1/s" : coordinate.unit + "/s"});
  }
  return states;
}

}  // namespace portwave
