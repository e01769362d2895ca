// The port responses of all parts of a system.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "impedance/response_tools.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "waves/condensed_equation.hpp"

namespace portwave {

PortResponses::PortResponses(const System& system, double step_s)
    : system_(system), step_s_(step_s) {
  std::unordered_map<const Component*, int> known;
  Eigen::VectorXd terms;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[static_cast<std::size_t>(i)];
    const int next = static_cast<int>(responses_.size());
    const Subsystem* const physics = part.port_hamiltonian();
    if (part.component->capabilities().linear) {
      const auto [found, is_new] = known.try_emplace(part.component.get(), next);
      index_.push_back(found->second);
      if (!is_new) {
        ++users_[static_cast<std::size_t>(found->second)];
        continue;
      }
    } else {
      index_.push_back(next);
      if (physics != nullptr) nonlinear_.push_back(i);
    }
    users_.push_back(1);
    try {
      estimates_.emplace_back();
      if (condensed_form_of(part) != nullptr) {
        add_condensed(part);
        continue;
      }
      if (physics == nullptr) {
        add_probed(part);
        continue;
      }
      responses_.push_back(response_of(part, part.initial_state.data(), terms));
      add_terms(terms);
      usual_.push_back(usual_of(part, responses_.back().rows()));
    } catch (const ConfigError& error) {
      throw ConfigError("", "subsystem \"" + part.name + "\": " + error.issues().front().what);
    }
  }
}

/// 1/(bᵀΣb) of a port with the column b at the boundary, |b| = 1.
void PortResponses::add_condensed(const Part& part) {
  const CondensedForm& form = *condensed_form_of(part);
  const auto step = form.step(step_s_);
  Eigen::VectorXd estimate = Eigen::VectorXd::Zero(form.ports());
  for (int port = 0; port < form.ports(); ++port) {
    double weighted = 0.0, square = 0.0;
    for (SparseMatrix::InnerIterator it(form.at_boundary(), port); it; ++it) {
      weighted += it.value() * it.value() * step->diagonal[it.row()];
      square += it.value() * it.value();
    }
    if (weighted > 0.0) estimate[port] = square * square / weighted;
  }
  has_condensed_parts_ = true;
  responses_.emplace_back();
  usual_.emplace_back();
  add_terms(estimate);
  estimates_.back() = std::move(estimate);
}

Eigen::MatrixXd PortResponses::response_of(const Part& part, const double* x,
                                           Eigen::VectorXd& terms) const {
  const Subsystem& physics = *part.port_hamiltonian();
  const StageRule& rule = part.component->stage_rule();
  const int substeps = part.component->substeps();
  if (substeps > 1) {
    return substepped_port_response(physics, rule, substeps, step_s_, x, terms);
  }
  return rule.count == 1 && !rule.is_damped()
             ? port_response(physics, step_s_, x, terms)
             : staged_port_response(physics, rule, step_s_, x, terms);
}

void PortResponses::add_probed(const Part& part) {
  const Eigen::Index ports = part.component->signature().wave_size();
  std::optional<Matrix> response =
      probed_response(*part.component, step_s_, part.initial_state.data());
  if (!response && problem_.empty()) {
    const Capabilities capabilities = part.component->capabilities();
    const bool is_asked = capabilities.linear || capabilities.linearisable;
    problem_ = fmt::format("the impedances at subsystem {} ({}) have to be given: {}",
                           in_quotes(part.name), printable(part.component->signature().type),
                           is_asked ? "its steps do not tell how its ports respond"
                                    : "it is opaque and cannot be linearised");
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!response) response = Matrix::Constant(ports, ports, kNone);
  responses_.push_back(*std::move(response));
  add_terms(responses_.back().diagonal().cwiseAbs());
  usual_.emplace_back();
}

void PortResponses::add_terms(const Eigen::VectorXd& terms) {
  first_term_.push_back(terms_.size());
  terms_.insert(terms_.end(), terms.data(), terms.data() + terms.size());
}

Eigen::VectorXd PortResponses::usual_of(const Part& part, Eigen::Index size) const {
  const Subsystem& physics = *part.port_hamiltonian();
  if (physics.constant_structure()) return {};
  const std::vector<double> typical = physics.typical_state();
  const Eigen::Index ports = physics.signature().wave_size();
  Eigen::VectorXd usual = Eigen::VectorXd::Zero(size);
  Structure there = physics.structure(), further = there;
  std::vector<double> twice = typical;
  for (double& each : twice) each *= 2.0;
  try {
    physics.structure_at(typical.data(), there);
    physics.structure_at(twice.data(), further);
  } catch (const std::exception&) {  // outside the domain of a callback: nothing is known
    return {};
  }
  Eigen::VectorXd terms;
  Matrix response;
  for (Eigen::Index j = 0; j < size; ++j) {
    if (SparseMatrix(there.G.col(j % ports) - further.G.col(j % ports)).norm() == 0.0) continue;
    if (response.size() == 0) response = response_of(part, typical.data(), terms);
    usual[j] = response(j, j);
  }
  return usual;
}

double PortResponses::matched(int part, Eigen::Index port) const {
  constexpr double kWorstCancellation = 1e-3, kLeastOfUsual = 1e-3, kRoundOff = 1e-14;
  const auto i = static_cast<std::size_t>(index_[static_cast<std::size_t>(part)]);
  if (estimates_[i].size() > 0) return estimates_[i][port];
  const double own = responses_[i](port, port), terms = this->terms(part, port);
  const double least = usual_[i].size() == 0 ? 0.0 : kLeastOfUsual * usual_[i][port];
  return own > kRoundOff * terms ? std::max({own, kWorstCancellation * terms, least})
                                 : std::max(own, least);
}

double PortResponses::terms(int part, Eigen::Index port) const {
  const auto i = static_cast<std::size_t>(index_[static_cast<std::size_t>(part)]);
  return terms_[first_term_[i] + static_cast<std::size_t>(port)];
}

const Eigen::MatrixXd& PortResponses::of(int part) const {
  const auto i = static_cast<std::size_t>(index_[static_cast<std::size_t>(part)]);
  if (responses_[i].size() == 0 && estimates_[i].size() > 0) {
    const Part& own = system_.parts()[static_cast<std::size_t>(part)];
    responses_[i] = port_response(*own.port_hamiltonian(), step_s_, own.initial_state.data());
  }
  return responses_[i];
}

void PortResponses::component_changed(int part) {
  const Part& own = system_.parts()[static_cast<std::size_t>(part)];
  Eigen::VectorXd terms;
  Matrix response;
  Eigen::VectorXd usual;
  try {
    response = response_of(own, own.initial_state.data(), terms);
    usual = usual_of(own, response.rows());
  } catch (const ConfigError& error) {
    throw ConfigError("", "subsystem \"" + own.name + "\": " + error.issues().front().what);
  }
  int& index = index_[static_cast<std::size_t>(part)];
  if (users_[static_cast<std::size_t>(index)] > 1) {
    --users_[static_cast<std::size_t>(index)];
    index = static_cast<int>(responses_.size());
    users_.push_back(1);
    responses_.push_back(std::move(response));
    estimates_.emplace_back();
    add_terms(terms);
    usual_.push_back(std::move(usual));
    return;
  }
  const auto i = static_cast<std::size_t>(index);
  responses_[i] = std::move(response);
  estimates_[i].resize(0);
  std::ranges::copy(terms, terms_.begin() + static_cast<std::ptrdiff_t>(first_term_[i]));
  usual_[i] = std::move(usual);
}

void PortResponses::linearise(const std::function<std::span<const double>(int part)>& state_of) {
  std::vector<int> parts;
  for (const int i : nonlinear_) {
    // Without a state the response stays what it is.
    if (system_.parts()[static_cast<std::size_t>(i)].component->signature().state_size() > 0) {
      parts.push_back(i);
    }
  }
  std::vector<Matrix> fresh;  // all or nothing
  std::vector<Eigen::VectorXd> terms(parts.size());
  fresh.reserve(parts.size());
  for (const int i : parts) {
    const Part& part = system_.parts()[static_cast<std::size_t>(i)];
    fresh.push_back(response_of(part, state_of(i).data(), terms[fresh.size()]));
  }
  for (std::size_t k = 0; k < fresh.size(); ++k) {
    const auto i = static_cast<std::size_t>(index_[static_cast<std::size_t>(parts[k])]);
    responses_[i] = std::move(fresh[k]);
    std::ranges::copy(terms[k], terms_.begin() + static_cast<std::ptrdiff_t>(first_term_[i]));
  }
}

}  // namespace portwave
