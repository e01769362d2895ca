#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include <Eigen/Core>
#include <fmt/format.h>

#include "base/workspace.hpp"
#include "nonlinear/discrete_gradients.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {
namespace {

using Options = NonlinearPortHamiltonian::Options;
using detail::StorageFunction;

constexpr int kPerturbedProbes = 3;
constexpr int kNearerProbes = 12;  // each a quarter as far from the default state

std::vector<double> start_of(const Options& options, int n) {
  std::vector<double> x(options.default_state);
  x.resize(static_cast<std::size_t>(n), 0.0);
  return x;
}

/// Whether H and ∇H are finite there.
bool is_in_domain(const Hamiltonian& hamiltonian, const std::vector<double>& x) {
  std::vector<double> g(x.size());
  try {
    if (!std::isfinite(hamiltonian.value(x.data()))) return false;
    hamiltonian.gradient(x.data(), g.data());
  } catch (const std::exception&) {
    return false;
  }
  return std::all_of(g.begin(), g.end(), [](double value) { return std::isfinite(value); });
}

/// The default state; three fixed perturbations of it, each component by up to half its typical
/// size; and each state alone moved by half its size, so that it is not hidden by the energy of the
/// others. Perturbed ones are nearer where H or ∇H is not finite, and left out where that does not
/// help.
std::vector<std::vector<double>> probe_states(const Hamiltonian& hamiltonian,
                                              const Options& options, int n) {
  const std::vector<double> x = start_of(options, n);
  const std::vector<double>& size = options.typical_state;
  std::vector<std::vector<double>> probes{x};
  const auto add = [&](const std::vector<double>& direction) {
    double reach = 1.0;
    for (int attempt = 0; attempt <= kNearerProbes; ++attempt, reach *= 0.25) {
      std::vector<double> probe = x;
      for (std::size_t i = 0; i < probe.size(); ++i) probe[i] += reach * direction[i] * size[i];
      if (!is_in_domain(hamiltonian, probe)) continue;
      probes.push_back(std::move(probe));
      return;
    }
  };
  std::uint64_t random = 20260316;
  for (int k = 0; k < kPerturbedProbes; ++k) {
    std::vector<double> direction(x.size());
    for (double& value : direction) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<double>(random >> 11) * 0x1.0p-53 - 0.5;
    }
    add(direction);
  }
  for (std::size_t i = 0; i < x.size() && x.size() > 1; ++i) {
    std::vector<double> direction(x.size(), 0.0);
    direction[i] = 0.5;
    add(direction);
  }
  return probes;
}

/// Validates a nonlinear part; every method appends what it finds.
class Validator {
 public:
  Validator(const Signature& signature, const Structure& structure, const Hamiltonian& hamiltonian,
            Options& options)
      : signature_(signature),
        structure_(structure),
        hamiltonian_(hamiltonian),
        options_(options),
        n_(signature.state_size()),
        m_(signature.wave_size() + signature.input_size()),
        names_(variable_names(signature)) {}

  /// Those that it filled in; empty where the caller gave them.
  TypicalSizes& sizes() { return sizes_; }

  Issues defects() {
    const bool structure_is_sound = check_structure("", structure_);
    check_options();
    if (!hamiltonian_.value) add("/hamiltonian/value", "a callback for H is required");
    if (!hamiltonian_.gradient) add("/hamiltonian/gradient", "a callback for ∇H is required");
    const auto size = options_.default_state.size();
    const bool has_default = size == 0 || size == static_cast<std::size_t>(n_);
    if (has_default && has_sizes_ && hamiltonian_.value && hamiltonian_.gradient) {
      if (is_in_domain_at_default()) {
        if (options_.typical_state.empty()) {
          sizes_ =
              typical_sizes({hamiltonian_.value, hamiltonian_.gradient}, start_of(options_, n_));
          options_.typical_state = sizes_.of_states;
        }
        if (has_hessian_at_default()) check_storage();
        if (structure_is_sound && options_.structure_at) check_state_dependence();
      }
    }
    return std::move(issues_);
  }

 private:
  /// Several parts are built before a system gives them names: the type says which this is.
  void add(std::string where, const std::string& what) {
    issues_.push_back({std::move(where), fmt::format("{}: {}", in_quotes(signature_.type), what)});
  }

  bool check_structure(std::string_view prefix, const Structure& structure) {
    StructureRules rules;
    rules.allow_active = options_.allow_active;
    rules.names = names_;
    Issues found = validate(structure, n_, m_, rules);
    for (Issue& own : found) own.what = fmt::format("{}: {}", in_quotes(signature_.type), own.what);
    append(issues_, prefix, found);
    return found.empty();
  }

  void check_options() {
    const int points = options_.quadrature_points;
    if (points < 1 || points > detail::kMaxQuadraturePoints) {
      add("/quadrature_points",
          fmt::format("must be 1 to {}, got {}", detail::kMaxQuadraturePoints, points));
    }
    constexpr int kMost = NonlinearPortHamiltonian::kMostPolynomialDegree;
    if (const int degree = options_.polynomial_degree; degree < 0 || degree > kMost) {
      add("/polynomial_degree", fmt::format("must be 0 to {}, got {}", kMost, degree));
    }
    if (options_.max_newton_steps < 1) {
      add("/max_newton_steps", fmt::format("must be > 0, got {}", options_.max_newton_steps));
    }
    const auto& x = options_.default_state;
    if (!x.empty() && x.size() != static_cast<std::size_t>(n_)) {
      add("/default_state", fmt::format("must have {} entries, got {}", n_, x.size()));
    }
    if (!std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); })) {
      add("/default_state", "must be finite");
      has_sizes_ = false;
    }
    const auto& sizes = options_.typical_state;
    if (!sizes.empty() && sizes.size() != static_cast<std::size_t>(n_)) {
      add("/typical_state", fmt::format("must have {} entries, got {}", n_, sizes.size()));
      has_sizes_ = false;
      return;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > 0.0 && std::isfinite(sizes[i])) continue;
      add(fmt::format("/typical_state/{}", i),
          fmt::format("the typical size of {} must be > 0 and finite, got {}", names_[i],
                      sizes[i]));
      has_sizes_ = false;
    }
  }

  static constexpr std::string_view kRemedy =
      ": set \"default_state\" to states where it is, one number for each";

  bool is_in_domain_at_default() {
    const std::vector<double> x = start_of(options_, n_);
    std::vector<double> g(x.size());
    try {
      if (!std::isfinite(hamiltonian_.value(x.data()))) {
        add("/hamiltonian/value",
            fmt::format("H is not finite at the default state {}{}", describe(x.data()), kRemedy));
        return false;
      }
      hamiltonian_.gradient(x.data(), g.data());
    } catch (const std::exception& error) {
      add("/hamiltonian", fmt::format("threw at the default state: {}", error.what()));
      return false;
    }
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (std::isfinite(g[i])) continue;
      add("/hamiltonian/gradient",
          fmt::format("∂H/∂{} = {} is not finite at the default state {}{}", names_[i],
                      shown_number(g[i]), describe(x.data()), kRemedy));
      return false;
    }
    return true;
  }

  /// Every batch asks for one there.
  bool has_hessian_at_default() {
    if (!hamiltonian_.hessian) return true;
    const std::vector<double> x = start_of(options_, n_);
    std::vector<double> hessian(x.size() * x.size());
    try {
      hamiltonian_.hessian(x.data(), hessian.data());
    } catch (const std::exception& error) {
      add("/hamiltonian/hessian",
          fmt::format("threw at the default state {}: {}", describe(x.data()), error.what()));
      return false;
    }
    return true;
  }

  /// The probe states lie in the domain of H; that of a Hessian may be smaller.
  void check_storage() {
    if (!options_.check_derivatives) return;
    const StorageFunction H{hamiltonian_, options_.typical_state, n_};
    for (const auto& probe : probe_states(hamiltonian_, options_, n_)) {
      try {
        if (!check_gradient(H, probe.data()) || !check_hessian(H, probe.data())) return;
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  bool check_gradient(const StorageFunction& H, const double* x) {
    std::vector<double> g(static_cast<std::size_t>(n_));
    std::vector<double> point(x, x + n_);
    H.gradient(x, g.data());
    for (int i = 0; i < n_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double step = H.step_at(i, x[i]);
      double magnitude = 0.0;
      const auto quotient = [&](double reach) {
        point[at] = x[i] - reach;
        const double back = H.value(point.data());
        point[at] = x[i] + reach;
        const double ahead = H.value(point.data());
        point[at] = x[i];
        magnitude = std::max({magnitude, std::abs(back), std::abs(ahead)});
        return (ahead - back) / (2.0 * reach);
      };
      const double fine = quotient(step);
      const double coarse = quotient(2.0 * step);
      if (DifferenceCheck{fine, coarse, magnitude, step}.agrees_with(g[at])) continue;
      add("/hamiltonian/gradient",
          fmt::format("∂H/∂{} = {:.9g} does not match finite differences of H, {:.9g}, at {}",
                      names_[at], g[at], fine, describe(x)));
      return false;
    }
    return true;
  }

  bool check_hessian(const StorageFunction& H, const double* x) {
    if (!hamiltonian_.hessian) return true;
    const auto n = static_cast<std::size_t>(n_);
    std::vector<double> hessian(n * n), point(x, x + n_), back(n), ahead(n), fine(n), coarse(n);
    H.hessian(x, hessian.data());
    std::vector<double> terms(n, 0.0);  // that ∂H/∂xᵢ may have added up, each in its own unit
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < n; ++i) terms[i] += std::abs(hessian[j * n + i] * x[j]);
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double step = H.step_at(static_cast<int>(j), x[j]);
      std::vector<double> magnitude = terms;
      const auto quotients = [&](double reach, std::vector<double>& out) {
        point[j] = x[j] - reach;
        H.gradient(point.data(), back.data());
        point[j] = x[j] + reach;
        H.gradient(point.data(), ahead.data());
        point[j] = x[j];
        for (std::size_t i = 0; i < n; ++i) {
          magnitude[i] = std::max({magnitude[i], std::abs(back[i]), std::abs(ahead[i])});
          out[i] = (ahead[i] - back[i]) / (2.0 * reach);
        }
      };
      quotients(step, fine);
      quotients(2.0 * step, coarse);
      for (std::size_t i = 0; i < n; ++i) {
        const double value = hessian[j * n + i];
        if (DifferenceCheck{fine[i], coarse[i], magnitude[i], step}.agrees_with(value)) continue;
        add("/hamiltonian/hessian",
            fmt::format("∂²H/∂{}∂{} = {:.9g} does not match finite differences of ∇H, {:.9g}, at "
                        "{}",
                        names_[i], names_[j], value, fine[i], describe(x)));
        return false;
      }
    }
    return true;
  }

  void check_state_dependence() {
    for (const auto& probe : probe_states(hamiltonian_, options_, n_)) {
      Structure structure = structure_;
      try {
        options_.structure_at(probe.data(), structure);
      } catch (const std::exception& error) {
        add("/structure_at", fmt::format("threw at {}: {}", describe(probe.data()), error.what()));
        return;
      }
      if (!check_structure("/structure_at", structure)) return;
    }
  }

  std::string describe(const double* x) const {
    std::string text;
    for (int i = 0; i < std::min(n_, 8); ++i) {
      text += fmt::format("{}{} = {:.6g}", i == 0 ? "" : ", ", names_[static_cast<std::size_t>(i)],
                          x[i]);
    }
    return n_ > 8 ? text + ", …" : text;
  }

  const Signature& signature_;
  const Structure& structure_;
  const Hamiltonian& hamiltonian_;
  Options& options_;
  int n_;
  int m_;
  std::vector<std::string> names_;
  Issues issues_;
  bool has_sizes_ = true;  ///< the default state and the typical sizes can be computed with
  TypicalSizes sizes_;     ///< empty where the caller gave them
};

}  // namespace

std::string_view to_string(DiscreteGradient kind) {
  switch (kind) {
    case DiscreteGradient::gonzalez:
      return "gonzalez";
    case DiscreteGradient::mean_value:
      return "mean_value";
    case DiscreteGradient::itoh_abe:
      return "itoh_abe";
  }
  return "";
}

struct NonlinearPortHamiltonian::Checked {
  Signature signature;
  Structure structure;
  Hamiltonian hamiltonian;
  Options options;     // with a typical state
  TypicalSizes sizes;  // empty where the caller gave them
};

NonlinearPortHamiltonian::Checked NonlinearPortHamiltonian::checked(Signature signature,
                                                                    Structure structure,
                                                                    Hamiltonian hamiltonian,
                                                                    Options options) {
  Validator validator(signature, structure, hamiltonian, options);
  throw_if_any(validator.defects());
  TypicalSizes sizes = std::move(validator.sizes());
  return {std::move(signature), std::move(structure), std::move(hamiltonian), std::move(options),
          std::move(sizes)};
}

NonlinearPortHamiltonian::NonlinearPortHamiltonian(Signature signature, Structure structure,
                                                   Hamiltonian hamiltonian, Options options)
    : NonlinearPortHamiltonian(checked(std::move(signature), std::move(structure),
                                       std::move(hamiltonian), std::move(options))) {}

NonlinearPortHamiltonian::NonlinearPortHamiltonian(Checked own)
    : Subsystem(std::move(own.signature)),
      structure_(std::move(own.structure)),
      hamiltonian_(std::move(own.hamiltonian)),
      options_(std::move(own.options)),
      least_reach_(own.sizes.is_arbitrary ? 0.0 : 1.0) {
  const int n = signature().state_size();
  const std::vector<double> home = default_state();
  std::vector<double> x = home, g(x.size());
  // Where H has a size, its terms are those there; else they grow with the states. Where H ends before that, they
  // are those at the default state.
  for (const double share : {1.0, 0.0}) {
    for (int i = 0; i < n; ++i) {
      const bool has_size = own.sizes.is_of_H.empty() || own.sizes.is_of_H[at(i)] != 0;
      x[at(i)] = home[at(i)] + (has_size ? share * options_.typical_state[at(i)] : 0.0);
    }
    if (!is_in_domain(hamiltonian_, x)) continue;
    storage_terms_J_ = std::abs(hamiltonian_.value(x.data()));
    hamiltonian_.gradient(x.data(), g.data());
    for (int i = 0; i < n; ++i) storage_terms_J_ += std::abs(g[at(i)] * x[at(i)]);
    find_gradient_terms(x);
    return;
  }
}

StorageFunction NonlinearPortHamiltonian::storage_function() const {
  return {hamiltonian_, options_.typical_state, signature().state_size(),
          gradient_terms_.empty() ? nullptr : &gradient_terms_, least_reach_};
}

/// Of a Hessian that fails there nothing is known.
void NonlinearPortHamiltonian::find_gradient_terms(const std::vector<double>& x) {
  if (options_.discrete_gradient != DiscreteGradient::gonzalez) return;
  const auto n = x.size();
  std::vector<double> hessian(n * n), terms(n, 0.0);
  try {
    storage_function().hessian(x.data(), hessian.data());
  } catch (const std::exception&) {
    return;
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      terms[i] += std::abs(hessian[j * n + i]) * options_.typical_state[j];
    }
  }
  const auto is_finite = [](double term) { return std::isfinite(term); };
  if (std::ranges::all_of(terms, is_finite)) gradient_terms_ = std::move(terms);
}

int NonlinearPortHamiltonian::quadrature_points(int stages) const {
  const int degree = options_.polynomial_degree;
  return degree > 0 ? (stages * degree + 1) / 2 : options_.quadrature_points;
}

std::vector<double> NonlinearPortHamiltonian::default_state() const {
  return options_.default_state.empty() ? Subsystem::default_state() : options_.default_state;
}

double NonlinearPortHamiltonian::storage(const double* x) const { return hamiltonian_.value(x); }

void NonlinearPortHamiltonian::gradient(const double* x, double* g) const {
  hamiltonian_.gradient(x, g);
}

void NonlinearPortHamiltonian::discrete_gradient(const double* x, const double* x_next,
                                                 double* g) const {
  const StorageFunction H = storage_function();
  switch (options_.discrete_gradient) {
    case DiscreteGradient::gonzalez:
      return detail::gonzalez(H, x, x_next, g);
    case DiscreteGradient::mean_value:
      return detail::mean_value(H, quadrature_points(1), x, x_next, g);
    case DiscreteGradient::itoh_abe:
      return detail::itoh_abe(H, x, x_next, g);
  }
}

void NonlinearPortHamiltonian::add_gradient_terms(const double* x, const double* x_next,
                                                  const double* g, double* terms) const {
  if (options_.discrete_gradient != DiscreteGradient::gonzalez) return;
  detail::add_gonzalez_terms(storage_function(), x, x_next, g, terms);
}

bool NonlinearPortHamiltonian::hessian(const double* x,
                                       std::vector<Eigen::Triplet<double>>& hessian) const {
  if (!hamiltonian_.hessian) return false;
  const int n = signature().state_size();
  detail::Workspace scratch(static_cast<std::size_t>(n * n));
  hamiltonian_.hessian(x, scratch.data());
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) hessian.emplace_back(i, j, scratch.data()[j * n + i]);
  }
  return true;
}

void NonlinearPortHamiltonian::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  const int n = signature().state_size();
  const StorageFunction H = storage_function();
  detail::Workspace scratch(static_cast<std::size_t>(n * n));
  const Eigen::Map<Eigen::MatrixXd> dense(scratch.data(), n, n);
  const bool lower = options_.discrete_gradient == DiscreteGradient::itoh_abe;
  if (options_.discrete_gradient == DiscreteGradient::gonzalez) {
    detail::gonzalez_jacobian(H, x, x_next, scratch.data());
  } else if (lower) {
    detail::itoh_abe_jacobian(H, x, x_next, scratch.data());
  } else {
    detail::mean_value_jacobian(H, quadrature_points(1), x, x_next, scratch.data());
  }
  // Zeros are kept, so that the pattern does not depend on the state.
  for (int j = 0; j < n; ++j) {
    for (int i = lower ? j : 0; i < n; ++i) jacobian.emplace_back(i, j, dense(i, j));
  }
}

void NonlinearPortHamiltonian::structure_at(const double* x_mid, Structure& out) const {
  if (options_.structure_at) {
    options_.structure_at(x_mid, out);
  } else {
    out = structure_;
  }
}

std::unique_ptr<StepBatch> NonlinearPortHamiltonian::make_batch(
    std::span<const Component* const> parts) const {
  return make_newton_batch(port_hamiltonian_parts(parts), {.max_steps = options_.max_newton_steps});
}

}  // namespace portwave
