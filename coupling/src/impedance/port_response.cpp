#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "impedance/response_tools.hpp"
#include "impedance/two_ports.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

constexpr Eigen::Index kDenseStates = 64;

Matrix leading_columns(const SparseMatrix& matrix, Eigen::Index count) {
  return Matrix(matrix.leftCols(count));
}

/// visit(row, column, value) of the leading columns of a matrix.
template <class Visit>
void for_entries(const SparseMatrix& matrix, Eigen::Index columns, const Visit& visit) {
  for (Eigen::Index j = 0; j < columns; ++j) {
    for (SparseMatrix::InnerIterator it(matrix, j); it; ++it) visit(it.row(), j, it.value());
  }
}

/// [A | B] by rows, n×(n + m): solved by elimination in place. Small parts are asked for their
/// responses by the hundred thousand, so that it allocates nothing once it is large enough.
class SmallEquations {
 public:
  void reset(Eigen::Index n, Eigen::Index right) {
    n_ = n;
    width_ = n + right;
    values_.assign(static_cast<std::size_t>(n_ * width_), 0.0);
  }
  double& A(Eigen::Index i, Eigen::Index j) { return row(i)[j]; }
  double& B(Eigen::Index i, Eigen::Index j) { return row(i)[n_ + j]; }

  /// A⁻¹B in place of B, rows exchanged for the largest pivot. False where A is singular.
  bool solve() {
    for (Eigen::Index k = 0; k < n_; ++k) {
      Eigen::Index best = k;
      for (Eigen::Index i = k + 1; i < n_; ++i) {
        if (std::abs(A(i, k)) > std::abs(A(best, k))) best = i;
      }
      if (best != k) std::swap_ranges(row(k), row(k) + width_, row(best));
      const double inverse = 1.0 / A(k, k);
      for (Eigen::Index i = k + 1; i < n_; ++i) {
        const double factor = A(i, k) * inverse;
        if (factor != 0.0) subtract(i, factor, k, k + 1);
      }
    }
    for (Eigen::Index k = n_ - 1; k >= 0; --k) {
      for (Eigen::Index j = n_; j < width_; ++j) row(k)[j] /= A(k, k);
      for (Eigen::Index i = 0; i < k; ++i) {
        if (A(i, k) != 0.0) subtract(i, A(i, k), k, n_);
      }
    }
    return std::ranges::all_of(values_, [](double value) { return std::isfinite(value); });
  }

 private:
  double* row(Eigen::Index i) { return values_.data() + i * width_; }
  void subtract(Eigen::Index from, double factor, Eigen::Index of, Eigen::Index first) {
    double* const to = row(from);
    const double* const pivot_row = row(of);
    for (Eigen::Index j = first; j < width_; ++j) to[j] -= factor * pivot_row[j];
  }

  Eigen::Index n_ = 0, width_ = 0;
  std::vector<double> values_;
};

/// Adds Cᵀ M (E/h − (J − R)M)⁻¹ B to the response of the ports, B = G − P and C = G + P, and to the
/// terms what it is the sum of.
void add_dense_response(const Structure& s, const SparseMatrix* E, const SparseEntries& M,
                        double step_s, Matrix& response, Eigen::VectorXd& terms) {
  thread_local SmallEquations equations;
  thread_local std::vector<double> efforts, output;
  const Eigen::Index n = s.states(), ports = response.rows();
  equations.reset(n, ports);
  if (E != nullptr) {
    for_entries(*E, n, [&](Eigen::Index i, Eigen::Index j, double value) {
      equations.A(i, j) += value / step_s;
    });
  } else {
    for (Eigen::Index i = 0; i < n; ++i) equations.A(i, i) = 1.0 / step_s;
  }
  for (const auto& m : M) {
    const auto subtract = [&](const SparseMatrix& of, double factor) {
      for (SparseMatrix::InnerIterator it(of, m.row()); it; ++it) {
        equations.A(it.row(), m.col()) += factor * it.value() * m.value();
      }
    };
    subtract(s.J, -1.0);
    subtract(s.R, 1.0);
  }
  const auto add_input = [&](Eigen::Index i, Eigen::Index j, double value) {
    equations.B(i, j) += value;
  };
  for_entries(s.G, ports, add_input);
  for_entries(s.P, ports,
              [&](Eigen::Index i, Eigen::Index j, double value) { add_input(i, j, -value); });
  if (!equations.solve()) {
    response.setConstant(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const auto at = [](Eigen::Index i, Eigen::Index row, Eigen::Index rows) {
    return static_cast<std::size_t>(i * rows + row);
  };
  efforts.assign(static_cast<std::size_t>(n * ports), 0.0);
  output.assign(static_cast<std::size_t>(n * ports), 0.0);
  for (const auto& m : M) {
    for (Eigen::Index j = 0; j < ports; ++j) {
      efforts[at(j, m.row(), n)] += m.value() * equations.B(m.col(), j);
    }
  }
  const auto add_output = [&](Eigen::Index i, Eigen::Index j, double value) {
    output[at(j, i, n)] += value;
  };
  for_entries(s.G, ports, add_output);
  for_entries(s.P, ports, add_output);
  for (Eigen::Index i = 0; i < ports; ++i) {
    for (Eigen::Index k = 0; k < n; ++k) {
      const double weight = output[at(i, k, n)];
      if (weight == 0.0) continue;
      for (Eigen::Index j = 0; j < ports; ++j) {
        response(i, j) += weight * efforts[at(j, k, n)];
      }
      terms[i] += std::abs(weight * efforts[at(i, k, n)]);
    }
  }
}

/// M (E/h − (J − R)M)⁻¹ B.
Matrix sparse_efforts(const Structure& s, const SparseMatrix* E, const SparseEntries& entries,
                      double step_s, const Matrix& B) {
  const Eigen::Index n = s.states();
  SparseMatrix M(n, n), identity(n, n);
  M.setFromTriplets(entries.begin(), entries.end());
  identity.setIdentity();
  const SparseMatrix& inertia = E != nullptr ? *E : identity;
  const SparseMatrix step = SparseMatrix(inertia / step_s) - SparseMatrix(s.J - s.R) * M;
  SparseLu lu;
  lu.analyse(step);
  if (!lu.factorise(step)) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  return M * lu.solve(B);
}

/// The slope of a nonlinear resistance at rest; 0 where it is next to nothing beside that elsewhere,
/// as that of a diode. A port matched to what hardly conducts would have waves beyond all measure
/// once it does.
double slope_at_rest(const Subsystem& part, int port) {
  // Either branch of an ideal switch reflects all: its match is that of what it is joined to.
  if (part.has_vertical_laws()) return 0.0;
  constexpr double kNextToNothing = 1e-6;
  const double slope = part.port_law(port, 0.0).slope;
  double largest = slope;
  for (int k = -12; k <= 12; ++k) {
    const double u = std::pow(10.0, k);
    for (const double side : {-u, u}) {
      const double there = part.port_law(port, side).slope;
      if (std::isfinite(there)) largest = std::max(largest, there);
    }
  }
  return slope < kNextToNothing * largest ? 0.0 : slope;
}

/// The structure at a state, nonlinear resistances at the ports being taken at rest, by their slope.
Structure structure_at_rest(const Subsystem& part, const double* x) {
  Structure s = part.structure();
  if (!part.constant_structure()) part.structure_at(x, s);
  for (int j = 0; j < part.signature().wave_size() && part.has_port_laws(); ++j) {
    s.S.coeffRef(j, j) += slope_at_rest(part, j);
  }
  return s;
}

}  // namespace

namespace {

/// Names the state by which H has no second derivative at x, if one is the reason.
[[noreturn]] void refuse_singular(const Subsystem& part, const double* x) {
  const SparseMatrix M = hessian_at(part, x);
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (std::isfinite(it.value())) continue;
      const StateVariable& state = part.signature().states[static_cast<std::size_t>(j)];
      throw ConfigError(
          "", fmt::format("the second derivative of its stored energy by {} is not finite where it "
                          "starts, at {:.6g}{}{}: let it start elsewhere, or round the energy off "
                          "there, as abs(q)^1.5 by (q^2 + 1e-12)^0.75",
                          in_quotes(state.name), x[j], state.unit.empty() ? "" : " ", state.unit));
    }
  }
  throw ConfigError("", "the implicit step is singular at this step size");
}

}  // namespace

// With x⁺ = x + ξ and ∇̄H(x, x + ξ) ≈ ∇H(x) + Mξ, the step's response to inputs u is
//   (E/h − (J − R)M) ξ = (G − P) u,   y = (G + P)ᵀMξ + (S + N) u,   E = I but for descriptor parts.
Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x) {
  Eigen::VectorXd terms;
  return port_response(part, step_s, x, terms);
}

Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x,
                              Eigen::VectorXd& terms) {
  const Eigen::Index ports = part.signature().wave_size();
  terms = Eigen::VectorXd::Zero(ports);
  if (ports == 0) return Matrix(0, 0);
  std::vector<double> start;
  if (x == nullptr) {
    start = part.default_state();
    x = start.data();
  }
  const bool is_constant = part.constant_structure() && !part.has_port_laws();
  std::optional<Structure> own;
  if (!is_constant) own = structure_at_rest(part, x);
  const Structure& s = own ? *own : part.structure();
  Matrix response = Matrix::Zero(ports, ports);
  const auto add_direct = [&](Eigen::Index i, Eigen::Index j, double value) {
    if (i < ports) response(i, j) += value;
  };
  for_entries(s.S, ports, add_direct);
  for_entries(s.N, ports, add_direct);
  if (s.states() > 0) {
    thread_local SparseEntries entries;  // as SmallEquations
    entries.clear();
    part.discrete_gradient_jacobian(x, x, entries);
    const SparseMatrix* const E = part.linear_form().E;
    terms = response.diagonal().cwiseAbs();
    if (s.states() <= kDenseStates) {
      add_dense_response(s, E, entries, step_s, response, terms);
    } else {
      const Matrix G = leading_columns(s.G, ports), P = leading_columns(s.P, ports);
      const Matrix efforts = sparse_efforts(s, E, entries, step_s, G - P), output = G + P;
      response += output.transpose() * efforts;
      for (Eigen::Index j = 0; j < ports; ++j) {
        terms[j] += output.col(j).cwiseAbs().dot(efforts.col(j).cwiseAbs());
      }
    }
  }
  if (!response.allFinite()) refuse_singular(part, x);
  return response;
}

SparseMatrix hessian_at(const Subsystem& part, const double* x) {
  const Eigen::Index n = part.signature().state_size();
  SparseEntries entries;
  if (part.hessian(x, entries)) {
    return sparse_matrix(n, n, entries);
  }
  Matrix M(n, n);
  const std::vector<double> typical = part.typical_state();
  Eigen::VectorXd at = Eigen::Map<const Eigen::VectorXd>(x, n), ahead(n), back(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const double own = at[j], reach = difference_step(typical[static_cast<std::size_t>(j)], own);
    at[j] = own + reach;
    part.gradient(at.data(), ahead.data());
    at[j] = own - reach;
    part.gradient(at.data(), back.data());
    at[j] = own;
    M.col(j) = (ahead - back) / (2.0 * reach);
  }
  return M.sparseView();
}

namespace {

/// √bᵢ aᵢⱼ/√bⱼ
Matrix scaled_coefficients(const StageRule& rule) {
  Matrix coupling(rule.count, rule.count);
  for (int i = 0; i < rule.count; ++i) {
    for (int j = 0; j < rule.count; ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      coupling(i, j) = rule.A[row][column] * std::sqrt(rule.b[row] / rule.b[column]);
    }
  }
  return coupling;
}

/// δ of all stages for unit inputs, (I − coupling ⊗ A)⁻¹(I ⊗ B) with coupling = (√bᵢ aᵢⱼ/√bⱼ).
Matrix dense_stages(const Matrix& coupling, const Matrix& A, const Matrix& B) {
  const Eigen::Index stages = coupling.rows(), n = B.rows(), p = B.cols();
  Matrix step = Matrix::Identity(stages * n, stages * n);
  Matrix inputs = Matrix::Zero(stages * n, stages * p);
  for (Eigen::Index i = 0; i < stages; ++i) {
    for (Eigen::Index j = 0; j < stages; ++j) step.block(i * n, j * n, n, n) -= coupling(i, j) * A;
    inputs.block(i * n, i * p, n, p) = B;
  }
  return n > 0 ? lu_solve(step, inputs) : inputs;
}

/// z of all stages by δ, (√bᵢ aᵢⱼ/√bⱼ) ⊗ M where some states are damped and others not: a is that of an entry's states.
Matrix gradient_of_stages(const StageRule& rule, const SparseMatrix& M) {
  const Eigen::Index n = M.rows();
  Matrix out = Matrix::Zero(rule.count * n, rule.count * n);
  for (int i = 0; i < rule.count; ++i) {
    for (int j = 0; j < rule.count; ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      const double scale = std::sqrt(rule.b[row] / rule.b[column]);
      for (int c = 0; c < M.outerSize(); ++c) {
        for (SparseMatrix::InnerIterator it(M, c); it; ++it) {
          const bool is_damped = rule.damps(static_cast<int>(it.row())) && rule.damps(c);
          const double a = is_damped ? rule.A[row][column] : rule.undamped(i, j);
          out(i * n + it.row(), j * n + c) = a * scale * it.value();
        }
      }
    }
  }
  return out;
}

/// z of all stages for unit inputs, of the same.
Matrix masked_gradients(const StageRule& rule, const SparseMatrix& h_JR, const SparseMatrix& M,
                        const Matrix& B) {
  const Eigen::Index n = B.rows(), p = B.cols();
  const Matrix Z = gradient_of_stages(rule, M);
  Matrix step = Matrix::Identity(Z.rows(), Z.rows());
  Matrix inputs = Matrix::Zero(Z.rows(), rule.count * p);
  for (Eigen::Index i = 0; i < rule.count; ++i) {
    step.middleRows(i * n, n) -= h_JR * Z.middleRows(i * n, n);
    inputs.block(i * n, i * p, n, p) = B;
  }
  return Z * lu_solve(step, inputs);
}

/// (coupling ⊗ I)δ of the same, √bᵢ(X(cᵢ) − x), which also exists where E is singular:
/// (coupling⁻¹ ⊗ E − I ⊗ A)⁻¹(I ⊗ B).
Matrix sparse_stages(const Matrix& coupling, const SparseMatrix* E, const SparseMatrix& A,
                     const Matrix& B) {
  const int stages = static_cast<int>(coupling.rows()), n = static_cast<int>(B.rows());
  const Matrix inverse = lu_inverse(coupling);
  SparseMatrix identity(n, n);
  identity.setIdentity();
  const SparseMatrix& inertia = E != nullptr ? *E : identity;
  SparseEntries entries;
  const auto put = [&entries, n](const SparseMatrix& M, int i, int j, double factor) {
    for (int k = 0; k < M.outerSize(); ++k) {
      for (SparseMatrix::InnerIterator it(M, k); it; ++it) {
        entries.emplace_back(i * n + static_cast<int>(it.row()), j * n + k, factor * it.value());
      }
    }
  };
  Matrix inputs = Matrix::Zero(B.rows() * stages, B.cols() * stages);
  for (int i = 0; i < stages; ++i) {
    put(A, i, i, -1.0);
    for (int j = 0; j < stages; ++j) put(inertia, i, j, inverse(i, j));
    inputs.block(i * n, i * B.cols(), n, B.cols()) = B;
  }
  SparseMatrix step = sparse_matrix(inputs.rows(), inputs.rows(), entries);
  SparseLu lu;
  lu.analyse(step);
  if (!lu.factorise(step)) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  return lu.solve(inputs);
}

}  // namespace

// With scaled stages δᵢ = √bᵢ h ẋᵢ and zᵢ = M Σⱼ (√bᵢ aᵢⱼ/√bⱼ) δⱼ, the response to inputs u is
//   E δᵢ = h[(J − R)zᵢ + (G − P)uᵢ],   yᵢ = (G + P)ᵀzᵢ + (S + N)uᵢ.
Eigen::MatrixXd staged_port_response(const Subsystem& part, const StageRule& rule, double step_s,
                                     const double* x, Eigen::VectorXd& terms) {
  const int stages = rule.count;
  const Eigen::Index n = part.signature().state_size(), p = part.signature().wave_size();
  if (p == 0) {
    terms = Eigen::VectorXd(0);
    return Matrix(0, 0);
  }
  const Structure s = structure_at_rest(part, x);
  const SparseMatrix M = hessian_at(part, x);
  const SparseMatrix* const E = part.linear_form().E;
  const Matrix G = leading_columns(s.G, p), P = leading_columns(s.P, p);
  const Matrix direct = leading_columns(s.S, p).topRows(p) + leading_columns(s.N, p).topRows(p);
  const Matrix coupling = scaled_coefficients(rule);
  const bool is_dense = E == nullptr && n <= kDenseStates;
  const SparseMatrix JR = s.J - s.R;
  const bool is_masked = rule.conserved != 0;  // then of few states (can_damp_single_states)
  const Matrix states =
      is_masked  ? masked_gradients(rule, step_s * JR, M, step_s * (G - P))
      : is_dense ? dense_stages(coupling, step_s * (Matrix(JR) * Matrix(M)), step_s * (G - P))
                 : sparse_stages(coupling, E, step_s * (JR * M), step_s * (G - P));
  Matrix response = Matrix::Zero(stages * p, stages * p);
  terms = Eigen::VectorXd::Zero(stages * p);
  const Matrix output = G + P;
  for (int i = 0; i < stages; ++i) {
    Matrix moved = states.middleRows(i * n, n);
    if (is_dense && !is_masked) {
      moved.setZero();
      for (int j = 0; j < stages; ++j) moved += coupling(i, j) * states.middleRows(j * n, n);
    }
    const Matrix efforts = is_masked  ? moved
                           : is_dense ? Matrix(Matrix(M) * moved)
                                      : Matrix(M * moved);
    response.middleRows(i * p, p) = output.transpose() * efforts;
    response.block(i * p, i * p, p, p) += direct;
    for (Eigen::Index j = 0; j < p; ++j) {
      terms[i * p + j] =
          std::abs(direct(j, j)) + output.col(j).cwiseAbs().dot(efforts.col(i * p + j).cwiseAbs());
    }
  }
  if (!response.allFinite()) refuse_singular(part, x);
  return response;
}

// One substep after another, δ = T_x x + T_u u of each: with V its share of the step's inputs,
//   yᵢ = (G + P)ᵀzᵢ + (S + N)(V û)ᵢ,   ŷ = Σ Vᵀy/m.
Eigen::MatrixXd substepped_port_response(const Subsystem& part, const StageRule& rule, int substeps,
                                         double step_s, const double* x, Eigen::VectorXd& terms) {
  const int stages = rule.count;
  const Eigen::Index n = part.signature().state_size(), p = part.signature().wave_size();
  const Structure s = structure_at_rest(part, x);
  const Matrix M = Matrix(hessian_at(part, x));
  const Matrix G = leading_columns(s.G, p), P = leading_columns(s.P, p), output = G + P;
  const Matrix direct = leading_columns(s.S, p).topRows(p) + leading_columns(s.N, p).topRows(p);
  const Matrix coupling = scaled_coefficients(rule);
  const double h = step_s / substeps;
  const Matrix A = h * (Matrix(s.J - s.R) * M), B = h * (G - P);
  Matrix lhs = Matrix::Identity(stages * n, stages * n);
  Matrix rhs = Matrix::Zero(stages * n, n + stages * p);
  for (int i = 0; i < stages; ++i) {
    const double weight = std::sqrt(rule.b[static_cast<std::size_t>(i)]);
    for (int j = 0; j < stages; ++j) lhs.block(i * n, j * n, n, n) -= coupling(i, j) * A;
    rhs.block(i * n, 0, n, n) = weight * A;
    rhs.block(i * n, n + i * p, n, p) = B;
  }
  const Matrix T = n > 0 ? lu_solve(lhs, rhs) : rhs;
  Matrix state = Matrix::Zero(n, stages * p), response = Matrix::Zero(stages * p, stages * p);
  terms = Eigen::VectorXd::Zero(stages * p);
  for (int k = 0; k < substeps; ++k) {
    Matrix share = Matrix::Zero(stages * p, stages * p);
    for (int i = 0; i < stages; ++i) {
      for (int l = 0; l < stages; ++l) {
        share.block(i * p, l * p, p, p)
            .diagonal()
            .setConstant(substep_share(rule, substeps, k, i, l));
      }
    }
    const Matrix delta = T.leftCols(n) * state + T.rightCols(stages * p) * share;
    Matrix moved = Matrix::Zero(n, stages * p);
    for (int i = 0; i < stages; ++i) {
      const double weight = std::sqrt(rule.b[static_cast<std::size_t>(i)]);
      Matrix own = weight * state;
      for (int j = 0; j < stages; ++j) own += coupling(i, j) * delta.middleRows(j * n, n);
      const Matrix efforts = M * own;
      const Matrix y = output.transpose() * efforts + direct * share.middleRows(i * p, p);
      for (int l = 0; l < stages; ++l) {
        const double gain = substep_share(rule, substeps, k, i, l) / substeps;
        response.middleRows(l * p, p) += gain * y;
        for (Eigen::Index j = 0; j < p; ++j) {
          terms[l * p + j] +=
              std::abs(gain) * (std::abs(direct(j, j) * share(i * p + j, l * p + j)) +
                                output.col(j).cwiseAbs().dot(efforts.col(l * p + j).cwiseAbs()));
        }
      }
      moved += weight * delta.middleRows(i * n, n);
    }
    state += moved;
  }
  if (!response.allFinite()) refuse_singular(part, x);
  return response;
}

std::vector<Causality> scalar_causalities(const Signature& signature) {
  std::vector<Causality> out;
  for (const Port& port : signature.ports) {
    out.insert(out.end(), static_cast<std::size_t>(port.dimension), port.causality);
  }
  return out;
}

double match_of(double response, Causality causality) {
  return causality == Causality::flow_in ? response : 1.0 / response;
}

std::vector<double> matched_impedances(const Subsystem& part, double step_s) {
  const Matrix response = port_response(part, step_s);
  const std::vector<Causality> causality = scalar_causalities(part.signature());
  std::vector<double> out;
  for (std::size_t j = 0; j < causality.size(); ++j) {
    const auto own = static_cast<Eigen::Index>(j);
    out.push_back(match_of(response(own, own), causality[j]));
  }
  return out;
}

namespace {

Matrix scattering_of_two(const Matrix& response, const Signature& signature,
                         std::span<const double> impedance) {
  double scale[2], sign[2];
  for_scalar_ports(signature, [&](int j, Causality causality) {
    scale[j] = scale_of(impedance[static_cast<std::size_t>(j)], causality);
    sign[j] = causality == Causality::flow_in ? -1.0 : 1.0;
  });
  const TwoByTwo M = scaled(response, scale[0], scale[1]);
  const TwoByTwo D = TwoByTwoLu({1.0 + M.a00, 0.0 + M.a01, 0.0 + M.a10, 1.0 + M.a11})
                         .solve({1.0 - M.a00, 0.0 - M.a01, 0.0 - M.a10, 1.0 - M.a11});
  Matrix out(2, 2);
  out << D.a00 * sign[0], D.a01 * sign[0], D.a10 * sign[1], D.a11 * sign[1];
  return out;
}

}  // namespace

// With û = √(2h)·(e/√γ or √γf) and ŷ the other one, û = a + σb and ŷ = a − σb, where σ = 1 for
// effort-in and −1 for flow-in, so that ŷ = M̂û is σb = (I + M̂)⁻¹(I − M̂) a.
Eigen::MatrixXd scattering_matrix(const Eigen::MatrixXd& response, const Signature& signature,
                                  std::span<const double> impedance) {
  const Eigen::Index ports = response.rows();
  if (ports == 2) return scattering_of_two(response, signature, impedance);
  const std::vector<Causality> causality = scalar_causalities(signature);
  const Matrix scaled = scaled_response(response, causality, impedance);
  const Matrix identity = Matrix::Identity(ports, ports);
  Matrix D = lu_solve(identity + scaled, identity - scaled);
  for (Eigen::Index j = 0; j < ports; ++j) {
    if (causality[static_cast<std::size_t>(j)] == Causality::flow_in) D.row(j) *= -1.0;
  }
  return D;
}

Eigen::MatrixXd scaled_response(const Eigen::MatrixXd& response,
                                std::span<const Causality> causality,
                                std::span<const double> impedance) {
  Eigen::VectorXd scale(response.rows());
  for (Eigen::Index j = 0; j < scale.size(); ++j) {
    const auto port = static_cast<std::size_t>(j);
    scale[j] = scale_of(impedance[port], causality[port]);
  }
  return scale.asDiagonal() * response * scale.asDiagonal();
}

Eigen::MatrixXd closed_response(const Eigen::MatrixXd& response,
                                const std::vector<Eigen::Index>& open,
                                const std::vector<Eigen::Index>& closed,
                                const std::vector<double>& inverse) {
  if (closed.empty()) return response(open, open);
  Matrix inner = response(closed, closed);
  inner.diagonal() += Eigen::Map<const Eigen::VectorXd>(inverse.data(), inner.rows());
  const Matrix in = response(closed, open);
  return response(open, open) - response(open, closed) * lu_solve(inner, in);
}

}  // namespace portwave
