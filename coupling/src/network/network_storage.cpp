// What the parts of a network store: which of their energies are quadratic, and in which states.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "network/explicit/network_form.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/nonlinear/bent_storage.hpp"
#include "portwave/subsystems/nonlinear/quartic_storage.hpp"

namespace portwave {

/// What is collected part by part.
struct NetworkForm::Storage {
  SparseEntries quadratic, curvature, couplings;
};

void NetworkForm::find_storage(Issues& issues) {
  const std::size_t n = part_of_state_.size();
  constant.assign(n, 0.0);
  cubic.assign(n, 0.0);
  by_callback.assign(n, 0);
  is_bent_.assign(n, 0);
  Storage storage;
  for (int i = 0; i < static_cast<int>(system_->parts().size()); ++i) {
    if (system_->parts()[at(i)].initial_state.empty()) continue;
    find_storage_of(i, storage, issues);
  }
  const auto rows = static_cast<Eigen::Index>(n);
  hessian = sparse_matrix(rows, rows, storage.quadratic);
  curvature = sparse_matrix(rows, rows, storage.curvature);
  couplings = sparse_matrix(rows, rows, storage.couplings);
}

/// ∇²H of a part: exactly where it says it, and at probe states where it does not. There a state whose row is
/// the same at all of them counts as quadratic.
void NetworkForm::find_storage_of(int number, Storage& storage, Issues& issues) {
  const Part& part = system_->parts()[at(number)];
  const Subsystem& physics = *part.port_hamiltonian();
  const int n = physics.signature().state_size(), first = first_state(number);
  if (const LinearForm form = physics.linear_form(); form.Q != nullptr) {
    append_block(*form.Q, first, first, storage.quadratic);
    append_block(*form.Q, first, first, storage.curvature);
    append_block(*form.Q, first, first, storage.couplings);
    return;
  }
  if (const auto* const quartic = dynamic_cast<const QuarticStorage*>(&physics)) {
    const std::vector<double> zero(at(n), 0.0);
    std::vector<Eigen::Triplet<double>> at_zero, here;
    physics.hessian(zero.data(), at_zero);
    physics.hessian(part.initial_state.data(), here);
    for (const auto& entry : at_zero) {
      storage.quadratic.emplace_back(first + entry.row(), first + entry.col(), entry.value());
    }
    for (const auto& entry : here) {
      storage.curvature.emplace_back(first + entry.row(), first + entry.col(), entry.value());
      storage.couplings.emplace_back(first + entry.row(), first + entry.col(), 1.0);
    }
    for (const QuarticTerm& term : quartic->quartic_terms()) {
      cubic[at(first + term.state)] = term.coefficient;
      is_bent_[at(first + term.state)] = term.coefficient != 0.0 ? 1 : 0;
    }
    return;
  }
  probe_storage_of(number, storage, issues);
}

/// The same for a part whose ∂H/∂x is a function and no more is known of it.
void NetworkForm::probe_storage_of(int number, Storage& storage, Issues& issues) {
  const Part& part = system_->parts()[at(number)];
  const Subsystem& physics = *part.port_hamiltonian();
  const int n = physics.signature().state_size(), first = first_state(number);
  using Eigen::MatrixXd;
  using Eigen::VectorXd;
  const std::vector<double> typical = physics.typical_state();
  const std::vector<double> usual = physics.default_state();
  const Eigen::Map<const VectorXd> start(part.initial_state.data(), n);
  const VectorXd middle = Eigen::Map<const VectorXd>(usual.data(), n);
  const VectorXd reach = Eigen::Map<const VectorXd>(typical.data(), n);
  std::vector<Eigen::Triplet<double>> analytic;
  const bool has_hessian = physics.hessian(start.data(), analytic);
  struct Slopes {
    MatrixXd H, rounding;  ///< ∇²H, and what its entries may be off by rounding
  };
  // By secants, which may be as wide as the state is large: exact where ∂H/∂x is linear, and no more is asked.
  const auto slopes = [&](const VectorXd& x, const VectorXd& wide) {
    Slopes found{MatrixXd::Zero(n, n), MatrixXd::Zero(n, n)};
    if (has_hessian) {
      std::vector<Eigen::Triplet<double>> entries;
      physics.hessian(x.data(), entries);
      for (const auto& entry : entries) found.H(entry.row(), entry.col()) += entry.value();
      return found;
    }
    VectorXd ahead(n), back(n), moved = x, width(n), terms = VectorXd::Zero(n);  // of ∂H/∂x
    for (int c = 0; c < n; ++c) {
      moved[c] = x[c] + wide[c];
      width[c] = moved[c];
      physics.gradient(moved.data(), ahead.data());
      moved[c] = x[c] - wide[c];
      width[c] -= moved[c];
      physics.gradient(moved.data(), back.data());
      moved[c] = x[c];
      found.H.col(c) = (ahead - back) / width[c];
      terms = terms.cwiseMax(ahead.cwiseAbs()).cwiseMax(back.cwiseAbs());
    }
    terms += found.H.cwiseAbs() * (x.cwiseAbs() + wide);
    found.rounding =
        8.0 * std::numeric_limits<double>::epsilon() * terms * width.cwiseInverse().transpose();
    return found;
  };
  const auto narrow = [&](const VectorXd& x) -> VectorXd {
    return (1e-4 * reach).cwiseMax(1e-7 * x.cwiseAbs());
  };
  const Slopes here = slopes(start, narrow(start));
  std::vector<Slopes> all = {here};
  for (const double share : {0.0, 0.37, -0.61, 0.93, 1.9, -4.7, 13.0, -37.0}) {
    VectorXd x = middle;
    for (int i = 0; i < n; ++i) x[i] += (i % 2 == 0 ? share : -0.7 * share) * reach[i];
    try {
      Slopes there = slopes(x, narrow(x));
      if (there.H.allFinite()) all.push_back(std::move(there));
    } catch (const std::exception&) {  // outside the domain of a callback
    }
  }
  MatrixXd largest = MatrixXd::Zero(n, n), rounding = MatrixXd::Zero(n, n);
  for (const Slopes& there : all) {
    largest = largest.cwiseMax(there.H.cwiseAbs());
    rounding = rounding.cwiseMax(there.rounding);
  }
  // What lies below this of ∇²H, made alike in unlike units, is none.
  const double tolerance = has_hessian ? 1e-10 : 1e-6;
  const auto alike = [&](int i, int j) { return largest(i, j) * reach[i] * reach[j]; };
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const double least =
          has_hessian ? tolerance * std::sqrt(alike(i, i) * alike(j, j)) / (reach[i] * reach[j])
                      : rounding(i, j);
      if (i != j && largest(i, j) <= least) largest(i, j) = 0.0;
      if (largest(i, j) == 0.0) continue;
      const double allowed = tolerance * std::max(largest(i, j), 1e-300);
      for (const Slopes& there : all) {
        if (std::abs(there.H(i, j) - here.H(i, j)) >
            allowed + there.rounding(i, j) + here.rounding(i, j)) {
          is_bent_[at(first + i)] = 1;
        }
      }
    }
  }
  // Over as wide a way as there is: the less counts its rounding.
  MatrixXd quadratic = here.H;
  try {
    const MatrixXd wide = slopes(start, reach.cwiseMax(start.cwiseAbs())).H;
    if (wide.allFinite()) quadratic = wide;
  } catch (const std::exception&) {  // it ends before that
  }
  if (const auto* const knows = dynamic_cast<const BentStorage*>(&physics); knows != nullptr) {
    for (const int state : knows->bent_states()) is_bent_[at(first + state)] = 1;
  } else {
    probed_parts.push_back(number);
  }
  // A bent state takes all along that H ties to it.
  std::vector<char> is_tied(is_bent_.begin() + first, is_bent_.begin() + first + n);
  for (bool grows = true; grows;) {
    grows = false;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n && is_tied[at(i)] == 0; ++j) {
        if (largest(i, j) == 0.0 || is_tied[at(j)] == 0) continue;
        is_tied[at(i)] = 1;
        grows = true;
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (largest(i, j) == 0.0) continue;
      storage.couplings.emplace_back(first + i, first + j, largest(i, j));
      storage.curvature.emplace_back(first + i, first + j, here.H(i, j));
      if (is_tied[at(i)] == 0)
        storage.quadratic.emplace_back(first + i, first + j, quadratic(i, j));
    }
  }
  VectorXd z(n);
  physics.gradient(start.data(), z.data());
  if (!z.allFinite()) {
    issues.push_back({fmt::format("/subsystems/{}/initial_state", number),
                      "the gradient of the stored energy at this state is not finite"});
  }
  for (int i = 0; i < n; ++i) {
    by_callback[at(first + i)] = is_tied[at(i)];
    if (is_tied[at(i)] != 0) continue;
    const double linear = quadratic.row(i).dot(start);
    const double rest = z[i] - linear;
    const double size = std::abs(z[i]) + quadratic.row(i).cwiseAbs().dot(start.cwiseAbs());
    if (std::abs(rest) > 1e-13 * size) constant[at(first + i)] = rest;
  }
}

/// True for a state that J, R (but for its own damper), B and H leave to itself.
bool NetworkForm::is_coupled_alone(int state) const {
  const auto alone = [state](const SparseMatrix& m) {
    for (SparseMatrix::InnerIterator it(m, state); it; ++it) {
      if (it.row() != state && it.value() != 0.0) return false;
    }
    return true;
  };
  return alone(J) && alone(R) && alone(couplings);
}

/// A spring whose end is free, on its own damper: it decays and moves nothing. Kicks and drifts, some of
/// which go backwards, would only make its rate a limit to the step.
void NetworkForm::find_dead_states() {
  std::vector<char> driven(part_of_state_.size(), 0);
  is_dead = driven;
  for (const SparseMatrix* const of_inputs : {&B, &Seen}) {
    for (int k = 0; k < of_inputs->outerSize(); ++k) {
      for (SparseMatrix::InnerIterator it(*of_inputs, k); it; ++it) {
        driven[at(static_cast<int>(it.row()))] = 1;
      }
    }
  }
  for (int i = 0; i < size(); ++i) {
    if (is_bent(i) || constant[at(i)] != 0.0 || driven[at(i)] != 0) continue;
    if (R.coeff(i, i) <= 0.0 || hessian.coeff(i, i) <= 0.0) continue;
    if (is_coupled_alone(i)) is_dead[at(i)] = 1;
  }
}

}  // namespace portwave
