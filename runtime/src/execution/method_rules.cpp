#include "execution/method_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::method_rules {
namespace {

class Check {
 public:
  explicit Check(const CouplingMethod& method) : m_(method) {}

  Issues run() && {
    if (is_splitting(m_.kind)) {
      check_splitting();
    } else {
      expect(m_.iterations >= 0, "/iterations", "an integer >= 0", m_.iterations);
      if (is_dynamic_iteration(m_.kind)) {
        check_dynamic();
      } else {
        check_waves();
      }
    }
    return std::move(issues_);
  }

 private:
  void check_waves() {
    check_relaxation();
    number("/tolerance", m_.tolerance, tolerance());
    number("/energy_tolerance_J", m_.energy_tolerance_J, tolerance());
    expect(m_.acceleration >= 0 && m_.acceleration <= kMaxAcceleration, "/acceleration",
           fmt::format("an integer from 0 to {}", kMaxAcceleration), m_.acceleration);
    check_impedance();
    number("/tank/initial_J", m_.tank.initial_J.value_or(0.0), tank());
    number("/tank/initial_fraction", m_.tank.initial_fraction, tank());
    expect(m_.tank.cap_J >= 0.0, "/tank/cap_J", tank().describe(), m_.tank.cap_J);  // or infinite
  }

  void check_splitting() {
    if (m_.kind != MethodKind::impulse) return;
    count("/factor", m_.splitting.factor);
    if (m_.splitting.split_dissipation) fail("/split_dissipation", "is not for \"impulse\"");
    if (m_.splitting.fast.empty()) fail("/fast", "must name the fast subsystems, one at least");
  }

  void check_dynamic() {
    const DynamicIterationOptions& d = m_.dynamic;
    number("/tolerance", m_.tolerance, tolerance());
    count("/window_steps", d.window_steps);
    if (m_.kind != MethodKind::lions_mercier) {
      expect(d.divergence_limit > 1.0, "/divergence_limit", divergence_limit().describe(),
             d.divergence_limit);  // or infinite
      return;
    }
    if (d.lambda) number("/lambda", *d.lambda, lambda());
    if (d.mu) number("/mu", *d.mu, mu());
    const bool can_compare = d.mu && mu().contains(*d.mu);
    if (d.omega && can_compare && omega().contains(*d.omega)) {
      expect(*d.omega >= *d.mu, "/omega", fmt::format("at least mu, {}", *d.mu), *d.omega);
    } else if (d.omega) {
      number("/omega", *d.omega, omega());
    }
    number("/alpha", d.alpha, alpha());
  }

  template <typename Value>
  void expect(bool good, const char* where, std::string_view expected, Value value) {
    if (!good) fail(where, fmt::format("must be {}, got {}", expected, value));
  }
  void count(const char* where, int value) {
    expect(value >= 1 && value <= kMostSteps, where,
           fmt::format("an integer from 1 to {}", kMostSteps), value);
  }
  void number(const char* where, double value, const NumberRange& range) {
    expect(range.contains(value), where, range.describe(), value);
  }
  void fail(const char* where, std::string what) {
    issues_.push_back({std::string("/method") + where, std::move(what)});
  }

  void check_relaxation() {
    const bool has_rule = m_.kind != MethodKind::automatic && m_.kind != MethodKind::interface;
    if (!has_rule && m_.own_rule != nullptr) {
      fail("/own_rule", fmt::format("is not for \"{}\"", to_string(m_.kind)));
    }
    if (!has_rule) return;  // `automatic` chooses its relaxation, `interface` has none
    const NumberRange range = relaxation(m_);
    const UpdateRule* rule = inner_update_of(m_).rule();
    const bool is_default = rule == update_rule_of(CouplingMethod{}.kind);
    expect(range.contains(m_.relaxation), "/relaxation",
           range.describe() + (is_default ? "" : fmt::format(" with \"{}\"", rule->name())),
           m_.relaxation);
  }

  void check_impedance() {
    const bool chooses = m_.kind == MethodKind::automatic;
    if (chooses && m_.impedance_kind != ImpedanceKind::automatic) {
      fail("/impedance/kind",
           "must be \"auto\", or /method/impedance be left out: the method \"auto\" chooses the "
           "impedances itself");
    }
    const double factor = m_.retune_factor;
    expect(factor == 0.0 || (factor > 1.0 && std::isfinite(factor)), "/impedance/retune_factor",
           kRetuneFactor, factor);
  }

  const CouplingMethod& m_;
  Issues issues_;
};

}  // namespace

NumberRange relaxation(const CouplingMethod& method) {
  const UpdateRule* rule = inner_update_of(method).rule();
  if (rule == nullptr) rule = &douglas_rachford();
  const RelaxationRange range = rule->relaxation_range();
  return {0.0, true, range.most, !range.includes_most};
}

Issues check(const CouplingMethod& method) { return Check(method).run(); }

std::string fast_defect(std::string_view name, NameSearch& parts) {
  constexpr std::size_t kShown = 12;
  const std::vector<std::string>& names = parts.names();
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  if (names.size() > kShown) shown += fmt::format(", ... ({} in all)", names.size());
  return fmt::format("there is no subsystem {}.\nsubsystems: {}.{}", in_quotes(name), shown,
                     parts.did_you_mean(name));
}

Issues check_fast(const CouplingMethod& method, const System& system) {
  Issues issues;
  if (method.kind != MethodKind::impulse) return issues;
  std::optional<NameSearch> parts;
  for (std::size_t i = 0; i < method.splitting.fast.size(); ++i) {
    const std::string& name = method.splitting.fast[i];
    if (system.find_part(name) >= 0) continue;
    if (!parts) {
      std::vector<std::string> names;
      for (const Part& part : system.parts()) names.push_back(part.name);
      parts.emplace(std::move(names));
    }
    issues.push_back({fmt::format("/method/fast/{}", i), fast_defect(name, *parts)});
  }
  return issues;
}

}  // namespace portwave::method_rules
