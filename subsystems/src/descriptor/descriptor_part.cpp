#include "portwave/subsystems/descriptor/descriptor_part.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/workspace.hpp"
#include "descriptor/descriptor_batch.hpp"
#include "matrices/matrix_check.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {
namespace {

constexpr int kLargestDensePart = 64;

/// [E R J]
SparseMatrix side_by_side(const SparseMatrix& E, const SparseMatrix& R, const SparseMatrix& J) {
  SparseEntries entries;
  int column = 0;
  for (const SparseMatrix* M : {&E, &R, &J}) {
    append_block(*M, 0, column, entries);
    column += static_cast<int>(M->cols());
  }
  return sparse_matrix(E.rows(), column, entries);
}

/// Rows of the first column of a kernel.
std::vector<int> first_rows(const SparseMatrix& kernel) {
  std::vector<int> rows;
  for (SparseMatrix::InnerIterator it(kernel, 0); it; ++it)
    rows.push_back(static_cast<int>(it.row()));
  return rows;
}

/// What is wrong with the pencil of sound matrices.
void check_pencil(const DescriptorForm& form, int n, const std::vector<std::string>& names,
                  Issues& issues) {
  const DescriptorAnalysis found = analyse_descriptor(form.E, form.J, form.R, form.Q);
  // Where E is regular, x = E⁻¹(Ex) is determined whatever Q is: Q = [K 0; 0 I] of a structure that
  // floats. Elsewhere every state needs a co-energy variable.
  if (found.algebraic == 0) return;
  const SparseRank rank_Q(form.Q);
  if (!rank_Q.is_regular()) {
    issues.push_back({"/Q", fmt::format("Q is singular (rank {} of {}): {} have no co-energy "
                                        "variables of their own",
                                        rank_Q.rank(), n,
                                        list_names(first_rows(rank_Q.right_kernel()), n, names))});
  }
  if (found.regular) {
    if (found.index <= 2) return;
    issues.push_back({"/E", "the index of sE - (J - R)Q is above 2"});
    return;
  }
  const SparseRank rank(side_by_side(form.E, form.R, form.J));
  if (rank.rank() < n) {
    issues.push_back(
        {"/E",
         fmt::format("rank[E R J] = {} < {}: neither E nor R nor J acts on the equations of {}",
                     rank.rank(), n, list_names(first_rows(rank.left_kernel()), n, names))});
  }
  issues.push_back({"/E",
                    "the pencil sE - (J - R)Q is singular: the equations do not determine the "
                    "state"});
}

std::shared_ptr<const Signature> checked(std::shared_ptr<const Signature> given,
                                         const DescriptorForm& form,
                                         const DescriptorPortHamiltonian::Options& options) {
  const Signature& signature = *given;
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  Issues issues = validate(form, n, m,
                           {.allow_active = options.allow_active,
                            .names = {},
                            .tolerance = options.semidefinite_tolerance});
  if (!issues.empty()) {  // only then are names worth their while
    issues = validate(form, n, m,
                      {.allow_active = options.allow_active,
                       .names = variable_names(signature),
                       .tolerance = options.semidefinite_tolerance});
  }
  if (!options.default_state.empty() &&
      std::cmp_not_equal(options.default_state.size(), signature.state_size())) {
    issues.push_back({"/default_state", "must have one entry per state"});
  }
  throw_if_any(std::move(issues));
  return given;
}

Structure structure_of(const DescriptorForm& form) {
  Structure structure =
      Structure::zero(static_cast<int>(form.J.rows()), static_cast<int>(form.B.cols()));
  structure.J = form.J;
  structure.R = form.R;
  structure.G = form.B;
  return structure;
}

SparseMatrix identity(Eigen::Index n) {
  SparseMatrix I(n, n);
  I.setIdentity();
  return I;
}

/// out += M x
void add_product(const SparseMatrix& M, const double* x, double* out) {
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) out[it.row()] += it.value() * x[j];
  }
}

Eigen::Map<const Eigen::VectorXd> vector(const std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

}  // namespace

Issues validate(const DescriptorForm& form, int states, int inputs, const StructureRules& rules) {
  Issues issues;
  if (states == 0) return {{"/states", "must name at least one state"}};
  const auto usable = [&](std::string_view name, const SparseMatrix& M, int columns) {
    MatrixCheck check(issues, name, M);
    return check.has_shape(states, columns) && check.is_finite();
  };
  const bool E = usable("E", form.E, states);
  const bool J = usable("J", form.J, states);
  const bool R = usable("R", form.R, states);
  const bool Q = usable("Q", form.Q, states);
  usable("B", form.B, inputs);
  if (J) MatrixCheck(issues, "J", form.J).is_skew();
  if (MatrixCheck check(issues, "R", form.R); R && check.is_symmetric() && !rules.allow_active) {
    check.is_semidefinite(states, rules.names,
                          "; a part that may create energy must say allow_active", rules.tolerance);
  }
  if (E && Q) {
    const SparseMatrix product = clean_product(SparseMatrix(form.E.transpose()), form.Q, 1e-15);
    const SparseMatrix terms =
        SparseMatrix(form.E.transpose()).cwiseAbs() * SparseMatrix(form.Q.cwiseAbs());
    MatrixCheck check(issues, "E^T Q", product, "/E", &terms);
    if (check.is_symmetric()) check.is_semidefinite(states, rules.names, {}, rules.tolerance);
  }
  if (E && J && R && Q) check_pencil(form, states, rules.names, issues);
  return issues;
}

DescriptorPortHamiltonian::DescriptorPortHamiltonian(std::shared_ptr<const Signature> signature,
                                                     DescriptorForm form, Options options)
    : Subsystem(checked(std::move(signature), form, options)),
      form_(std::move(form)),
      options_(std::move(options)),
      structure_(structure_of(form_)),
      algebraic_(form_.E, descriptor_rate(form_.J, form_.R, form_.Q)),
      kernel_(orthonormalised(algebraic_.kernel())) {
  for (SparseMatrix* M : {&form_.E, &form_.J, &form_.R, &form_.Q, &form_.B}) M->makeCompressed();
  if (kernel_.cols() > 0) {
    const SparseMatrix onto_kernel = kernel_ * SparseMatrix(kernel_.transpose());
    half_ = 0.5 * (identity(form_.E.rows()) + onto_kernel);
    slope_ = form_.Q * half_;
  }
  storage_ = clean_product(SparseMatrix(form_.E.transpose()), form_.Q, 1e-15);
  if (algebraic_.hidden().cols() > 0) {
    const SparseMatrix acts =
        clean_product(SparseMatrix(form_.B.transpose()), algebraic_.hidden(), 1e-12);
    undriven_ = algebraic_.hidden() * SparseRank(acts).right_kernel();
    const int ports = this->signature().wave_size();
    for (int j = 0; j < acts.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(acts, j); it; ++it) {
        prescribes_ = prescribes_ || (it.row() >= ports && it.value() != 0.0);
      }
    }
  }
}

DescriptorPortHamiltonian::DescriptorPortHamiltonian(std::shared_ptr<const Signature> signature,
                                                     std::shared_ptr<const SecondOrderForm> form,
                                                     Options options,
                                                     std::shared_ptr<const CondensedForm> factored,
                                                     bool condenses)
    : Subsystem(std::move(signature)),
      second_order_(std::move(form)),
      factored_(std::move(factored)),
      condensed_(condenses ? factored_ : nullptr),
      form_(descriptor_form(*second_order_)),
      options_(std::move(options)),
      structure_(structure_of(form_)),
      algebraic_(static_cast<int>(form_.E.rows())),
      kernel_(form_.E.rows(), 0) {
  if (!options_.default_state.empty() &&
      std::cmp_not_equal(options_.default_state.size(), this->signature().state_size())) {
    throw ConfigError("/default_state", "must have one entry per state");
  }
}

bool DescriptorPortHamiltonian::uses_sparse_step_maps() const {
  if (options_.storage == StepMapStorage::automatic) {
    return signature().state_size() > kLargestDensePart;
  }
  return options_.storage == StepMapStorage::sparse;
}

ConsistentState DescriptorPortHamiltonian::consistent_state(
    const std::vector<double>& x, const std::vector<double>& u,
    const std::vector<double>& u_rate) const {
  Issues issues;
  const auto check = [&issues](const char* name, std::size_t given, Eigen::Index wanted) {
    if (std::cmp_equal(given, wanted)) return;
    issues.push_back({"", fmt::format("{} must have {} numbers, got {}", name, wanted, given)});
  };
  check("x", x.size(), form_.E.rows());
  check("u", u.size(), form_.B.cols());
  if (!u_rate.empty()) check("u'", u_rate.size(), form_.B.cols());
  throw_if_any(std::move(issues));
  Eigen::VectorXd f_rate;
  if (!u_rate.empty()) f_rate = form_.B * vector(u_rate);
  return algebraic_.consistent_state(form_.B * vector(u), f_rate, vector(x));
}

void DescriptorPortHamiltonian::midpoint(const double* x, const double* x_next,
                                         double* x_mid) const {
  const int n = signature().state_size();
  std::copy(x, x + n, x_mid);
  for (int j = 0; j < n; ++j) {
    const double moved = x_next[j] - x[j];
    if (kernel_.cols() == 0) {
      x_mid[j] += 0.5 * moved;
      continue;
    }
    for (SparseMatrix::InnerIterator it(half_, j); it; ++it) x_mid[it.row()] += it.value() * moved;
  }
}

std::vector<double> DescriptorPortHamiltonian::default_state() const {
  return options_.default_state.empty() ? Subsystem::default_state() : options_.default_state;
}

Issues DescriptorPortHamiltonian::check_initial_state(const double* x) const {
  Issues issues;
  if (undriven_.cols() == 0) return issues;
  const int n = signature().state_size();
  const std::vector<std::string> names = variable_names(signature());
  const Eigen::Map<const Eigen::VectorXd> state(x, n);
  for (const ViolatedConstraint& found :
       algebraic_.violated(undriven_, Eigen::VectorXd::Zero(n), state)) {
    issues.push_back(
        {"/initial_state",
         fmt::format("violates a constraint between {}: they leave {:.6g} in the equation of {}, "
                     "where terms of {:.6g} must cancel (the part has index {}, and no input acts "
                     "there)",
                     list_names(found.states, n, names), std::abs(found.residual),
                     list_names(found.equations, n, names), found.size, index())});
  }
  return issues;
}

double DescriptorPortHamiltonian::storage(const double* x) const {
  long double twice = 0.0L;  // far from the origin its terms cancel
  const auto add = [&twice](const SparseMatrix& M, const double* z) {
    for (int j = 0; j < M.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        twice += static_cast<long double>(it.value()) * z[it.row()] * z[j];
      }
    }
  };
  if (second_order_ != nullptr) {
    add(second_order_->K, x);
    add(second_order_->M, x + second_order_->M.rows());
  } else {
    add(storage_, x);
  }
  return static_cast<double>(0.5L * twice);
}

void DescriptorPortHamiltonian::gradient(const double* x, double* g) const {
  std::fill(g, g + signature().state_size(), 0.0);
  add_product(form_.Q, x, g);
}

void DescriptorPortHamiltonian::discrete_gradient(const double* x, const double* x_next,
                                                  double* g) const {
  detail::Workspace mid(static_cast<std::size_t>(signature().state_size()));
  midpoint(x, x_next, mid.data());
  gradient(mid.data(), g);
}

void DescriptorPortHamiltonian::discrete_gradient_jacobian(const double* /*x*/,
                                                           const double* /*x_next*/,
                                                           SparseEntries& jacobian) const {
  const bool is_half = kernel_.cols() == 0;
  const SparseMatrix& slope = is_half ? form_.Q : slope_;
  for (int j = 0; j < slope.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(slope, j); it; ++it) {
      jacobian.emplace_back(static_cast<int>(it.row()), j, is_half ? 0.5 * it.value() : it.value());
    }
  }
}

bool DescriptorPortHamiltonian::hessian(const double* /*x*/, SparseEntries& hessian) const {
  for (int j = 0; j < form_.Q.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(form_.Q, j); it; ++it) {
      hessian.emplace_back(static_cast<int>(it.row()), j, it.value());
    }
  }
  return true;
}

std::string DescriptorPortHamiltonian::batch_key() const {
  const Signature& s = signature();
  if (factored_ != nullptr) return {};
  std::string key = uses_sparse_step_maps() ? "descriptor/sparse/" : "descriptor/dense/";
  key += std::to_string(s.state_size()) + "/" + std::to_string(s.input_size()) + "/";
  for (const Port& port : s.ports) {
    key.append(static_cast<std::size_t>(port.dimension),
               port.causality == Causality::effort_in ? 'e' : 'f');
  }
  return key;
}

std::unique_ptr<StepBatch> DescriptorPortHamiltonian::make_batch(
    std::span<const Component* const> parts) const {
  if (factored_ != nullptr) return make_second_order_batch(parts);
  return make_descriptor_batch(parts);
}

}  // namespace portwave
