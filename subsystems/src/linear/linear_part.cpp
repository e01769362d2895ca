#include "portwave/subsystems/linear/linear_part.hpp"

#include <utility>

#include "linear/linear_batches.hpp"

namespace portwave {
namespace {

constexpr int kLargestDensePart = 64;

Issues defects(const Signature& signature, const Structure& structure, const SparseMatrix& Q,
               const LinearPortHamiltonian::Options& options,
               const std::vector<std::string>& names) {
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  Issues issues = validate(structure, n, m,
                           {.allow_active = options.allow_active,
                            .names = names,
                            .tolerance = options.semidefinite_tolerance});
  append(issues, "", validate_storage(Q, n, names, options.semidefinite_tolerance));
  return issues;
}

std::shared_ptr<const Signature> checked(std::shared_ptr<const Signature> given,
                                         const Structure& structure, const SparseMatrix& Q,
                                         const LinearPortHamiltonian::Options& options) {
  const Signature& signature = *given;
  Issues issues = defects(signature, structure, Q, options, {});
  if (!issues.empty()) {  // only then are names worth their while
    issues = defects(signature, structure, Q, options, variable_names(signature));
  }
  if (!options.default_state.empty() &&
      std::cmp_not_equal(options.default_state.size(), signature.state_size())) {
    issues.push_back({"/default_state", "must have one entry per state"});
  }
  throw_if_any(std::move(issues));
  return given;
}

}  // namespace

LinearPortHamiltonian::LinearPortHamiltonian(std::shared_ptr<const Signature> signature,
                                             Structure structure, const SparseMatrix& Q,
                                             Options options)
    : Subsystem(checked(std::move(signature), structure, Q, options)),
      structure_(std::move(structure)),
      Q_(Q),
      options_(std::move(options)) {
  Q_.makeCompressed();
  for (SparseMatrix* M :
       {&structure_.J, &structure_.R, &structure_.G, &structure_.P, &structure_.S, &structure_.N}) {
    M->makeCompressed();
  }
}

bool LinearPortHamiltonian::uses_sparse_step_maps() const {
  if (options_.storage == StepMapStorage::automatic) {
    return signature().state_size() > kLargestDensePart;
  }
  return options_.storage == StepMapStorage::sparse;
}

std::vector<double> LinearPortHamiltonian::default_state() const {
  return options_.default_state.empty() ? Subsystem::default_state() : options_.default_state;
}

double LinearPortHamiltonian::storage(const double* x) const {
  long double twice = 0.0L;  // far from the origin its terms cancel
  for (int j = 0; j < Q_.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(Q_, j); it; ++it) {
      twice += static_cast<long double>(it.value()) * x[it.row()] * x[j];
    }
  }
  return static_cast<double>(0.5L * twice);
}

void LinearPortHamiltonian::gradient(const double* x, double* g) const {
  const auto n = static_cast<Eigen::Index>(signature().state_size());
  Eigen::Map<Eigen::VectorXd>(g, n).setZero();
  for (int j = 0; j < Q_.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(Q_, j); it; ++it) g[it.row()] += it.value() * x[j];
  }
}

void LinearPortHamiltonian::discrete_gradient(const double* x, const double* x_next,
                                              double* g) const {
  const auto n = static_cast<Eigen::Index>(signature().state_size());
  Eigen::Map<Eigen::VectorXd>(g, n).setZero();
  for (int j = 0; j < Q_.outerSize(); ++j) {
    const double mid = 0.5 * (x[j] + x_next[j]);
    for (SparseMatrix::InnerIterator it(Q_, j); it; ++it) g[it.row()] += it.value() * mid;
  }
}

void LinearPortHamiltonian::discrete_gradient_jacobian(
    const double* /*x*/, const double* /*x_next*/,
    std::vector<Eigen::Triplet<double>>& jacobian) const {
  for (int j = 0; j < Q_.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(Q_, j); it; ++it) {
      jacobian.emplace_back(static_cast<int>(it.row()), j, 0.5 * it.value());
    }
  }
}

bool LinearPortHamiltonian::hessian(const double* /*x*/,
                                    std::vector<Eigen::Triplet<double>>& hessian) const {
  for (int j = 0; j < Q_.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(Q_, j); it; ++it) {
      hessian.emplace_back(static_cast<int>(it.row()), j, it.value());
    }
  }
  return true;
}

std::string LinearPortHamiltonian::batch_key() const {
  const Signature& s = signature();
  std::string key = uses_sparse_step_maps() ? "linear/sparse/" : "linear/dense/";
  key += std::to_string(s.state_size()) + "/" + std::to_string(s.input_size()) + "/";
  for (const Port& port : s.ports) {
    key.append(static_cast<std::size_t>(port.dimension),
               port.causality == Causality::effort_in ? 'e' : 'f');
  }
  return key;
}

std::unique_ptr<StepBatch> LinearPortHamiltonian::make_batch(
    std::span<const Component* const> parts) const {
  return uses_sparse_step_maps() ? make_sparse_linear_batch(parts) : make_dense_linear_batch(parts);
}

}  // namespace portwave
