#include "method_rules.hpp"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace portwave::method_rules {
namespace {

class Check {
 public:
  explicit Check(const CouplingMethod& method) : m_(method) {}

  Issues run() && {
    expect(m_.iterations >= 0, "/iterations", "an integer >= 0", m_.iterations);
    check_relaxation();
    number("/tolerance", m_.tolerance, tolerance());
    number("/energy_tolerance_J", m_.energy_tolerance_J, tolerance());
    expect(m_.acceleration >= 0 && m_.acceleration <= kMaxAcceleration, "/acceleration",
           fmt::format("an integer from 0 to {}", kMaxAcceleration), m_.acceleration);
    check_impedance();
    number("/tank/initial_J", m_.tank.initial_J.value_or(0.0), tank());
    number("/tank/initial_fraction", m_.tank.initial_fraction, tank());
    expect(m_.tank.cap_J >= 0.0, "/tank/cap_J", tank().describe(), m_.tank.cap_J);  // or infinite
    return std::move(issues_);
  }

 private:
  template <typename Value>
  void expect(bool good, const char* where, std::string_view expected, Value value) {
    if (!good) fail(where, fmt::format("must be {}, got {}", expected, value));
  }
  void number(const char* where, double value, const NumberRange& range) {
    expect(range.contains(value), where, range.describe(), value);
  }
  void fail(const char* where, std::string what) {
    issues_.push_back({std::string("/method") + where, std::move(what)});
  }

  void check_relaxation() {
    if (m_.kind == MethodKind::automatic) return;  // it chooses its own
    const NumberRange range = relaxation(m_.kind);
    const bool is_narrower = m_.kind == MethodKind::peaceman_rachford;
    expect(range.contains(m_.relaxation), "/relaxation",
           range.describe() + (is_narrower ? " with \"peaceman-rachford\"" : ""), m_.relaxation);
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

NumberRange relaxation(MethodKind kind) {
  if (kind == MethodKind::peaceman_rachford) return {0.0, true, 1.0, false};
  return {0.0, true, 2.0, true};
}

Issues check(const CouplingMethod& method) { return Check(method).run(); }

}  // namespace portwave::method_rules
