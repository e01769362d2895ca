#include <algorithm>

#include <fmt/format.h>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

/// A conductance that depends on the travel of the contacts, a state without energy that stops at 0
/// and 1. It is at least 0 at every travel, so that whatever moves the contacts, and however a step is
/// cut, it takes energy and gives none.
class ElectricalSwitch final : public Subsystem {
 public:
  ElectricalSwitch(double on_S, double off_S)
      : Subsystem(Signature{"electrical_switch",
                            {{"travel", ""}},
                            {{"terminals", Causality::effort_in, Domain::electrical, 1}},
                            {{"speed", "1/s"}}}),
        on_S_(on_S),
        off_S_(off_S),
        structure_(Structure::zero(1, 2)) {
    structure_.G.insert(0, 1) = 1.0;
    structure_.S.insert(0, 0) = off_S_;
  }

  std::vector<double> typical_state() const override { return {1.0}; }
  double storage(const double*) const override { return 0.0; }
  void gradient(const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient(const double*, const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>&) const override {}
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>&) const override { return true; }
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override {
    const double t = std::clamp(x_mid[0], 0.0, 1.0);
    out.S.coeffRef(0, 0) = off_S_ + (on_S_ - off_S_) * t * t * (3.0 - 2.0 * t);
  }
  void stop_at_bounds(double* x_next) const override {
    x_next[0] = std::clamp(x_next[0], 0.0, 1.0);
  }
  Issues check_initial_state(const double* x) const override {
    if (x[0] >= 0.0 && x[0] <= 1.0) return {};
    return {{"/initial_state",
             fmt::format("the contacts travel from 0 (open) to 1 (closed), got {}", x[0])}};
  }

 private:
  double on_S_, off_S_;
  Structure structure_;
};

}  // namespace

PartType electrical_switch_type() {
  PartType type;
  type.name = "electrical_switch";
  type.group = "electrical";
  type.summary = "Switch or breaker: a conductance that closes as its contacts travel from 0 to 1.";
  type.equations =
      "H = 0,  x' = speed, x stops at 0 (open) and at 1 (closed)\n"
      "f = g e,  g = off + (on - off) x^2 (3 - 2 x)\n"
      "A speed of 1/T for the time T or longer closes it, -1/T opens it. In series with a voltage\n"
      "source, a load or a line: common_flow.";
  type.parameters = {
      positive_number("on_S", "S", "conductance when closed"),
      non_negative_number("off_S", "S", "conductance when open"),
  };
  type.parameters.back().default_value = 0.0;
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double on = number_of(p, "on_S"), off = number_of(p, "off_S");
    if (off > on) throw ConfigError("/off_S", "must be at most on_S");
    return std::make_unique<ElectricalSwitch>(on, off);
  };
  type.example = {{"on_S", 0.5}, {"off_S", 0.01}};
  return type;
}

}  // namespace portwave
