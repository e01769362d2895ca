#include <string>
#include <utility>

#include <fmt/format.h>

#include "catalogue/general/linear_elements.hpp"
#include "nonlinear/stribeck_friction.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {
namespace {

/// Words and units of a friction's port and parameters.
struct FrictionNames {
  std::string type, port;
  Domain domain;
  std::string force, force_unit;  ///< "N", in names and as a unit
  std::string speed, speed_unit;  ///< "m_per_s"
  std::string viscosity, viscosity_unit;

  std::string friction() const { return "friction_" + force; }
  std::string at_rest() const { return "static_friction_" + force; }
  std::string creep_speed() const { return "creep_speed_" + speed; }
  std::string stribeck_speed() const { return "stribeck_speed_" + speed; }
};

/// What is wrong with how the friction at rest is given; empty where it is that of sliding.
Issues check_static_friction(const FrictionNames& names, const Parameters& p) {
  const double sliding = number_of(p, names.friction()), at_rest = number_of(p, names.at_rest());
  if (at_rest == 0.0 || at_rest == sliding) return {};
  if (at_rest < sliding) {
    return {{"/" + names.at_rest(),
             fmt::format("must be at least {} = {:g}, or 0 for as much, got {:g}", names.friction(),
                         sliding, at_rest)}};
  }
  if (number_of(p, names.stribeck_speed()) > 0.0) return {};
  return {{"/" + names.stribeck_speed(),
           fmt::format("must be > 0 where {} exceeds {}: the speed at which friction falls",
                       names.at_rest(), names.friction())}};
}

std::unique_ptr<Component> build_friction(const FrictionNames& names, const Parameters& p) {
  throw_if_any(check_static_friction(names, p));
  const double sliding = number_of(p, names.friction()), at_rest = number_of(p, names.at_rest());
  const double reach = number_of(p, names.creep_speed());
  const double viscosity = number_of(p, names.viscosity);
  Signature signature{names.type, {}, {{names.port, Causality::flow_in, names.domain, 1}}, {}};
  if (!(at_rest > sliding)) {
    return std::make_unique<NonlinearResistance>(
        std::move(signature),
        SaturatingLaw{.saturation = sliding, .reach = reach, .slope = viscosity});
  }
  signature.states = {{"speed", names.speed_unit}};
  return std::make_unique<StribeckFriction>(
      std::move(signature), StribeckLaw{.sliding = sliding,
                                        .at_rest = at_rest,
                                        .falls_at = number_of(p, names.stribeck_speed()),
                                        .reach = reach,
                                        .viscosity = viscosity});
}

/// Dry friction at a port.
PartType dry_friction(const FrictionNames& names) {
  PartType type;
  type.name = names.type;
  type.equations =
      "e = F tanh(f/v0) + c f\n"
      "With a static friction Fs > F:  e = L tanh(f/v0) + c f,  L = F + (Fs - F) exp(-(s/vs)^2),\n"
      "s being the mean of f over the step before: a state without energy, 0 at rest. L is held in "
      "a\n"
      "step, of order 1: take steps in which f changes little beside vs, and v0 well below vs.";
  type.parameters = {
      non_negative_number(names.friction(), names.force_unit, "friction F while it slides"),
      positive_number(names.creep_speed(), names.speed_unit,
                      "speed v0 at which it has three quarters of F: sticking is creep below it"),
      with_default(non_negative_number(names.viscosity, names.viscosity_unit, "viscous part c"),
                   0.0),
      with_default(non_negative_number(names.at_rest(), names.force_unit,
                                       "friction Fs at rest, at least F; 0: F"),
                   0.0),
      with_default(non_negative_number(
                       names.stribeck_speed(), names.speed_unit,
                       "speed vs at which friction has fallen by 63 % of Fs - F; > 0 with Fs > F"),
                   0.0),
  };
  type.example = {{names.friction(), 2.0}, {names.creep_speed(), 0.1}, {names.viscosity, 0.3}};
  type.build = [names](const Parameters& p) { return build_friction(names, p); };
  return type;
}

}  // namespace

PartType coulomb_damper_type() {
  PartType type = dry_friction({.type = "coulomb_damper",
                                .port = "end",
                                .domain = Domain::translation,
                                .force = "N",
                                .force_unit = "N",
                                .speed = "m_per_s",
                                .speed_unit = "m/s",
                                .viscosity = "viscosity_Ns_per_m",
                                .viscosity_unit = "N s/m"});
  type.group = "translation";
  type.summary = "Dry friction with a viscous part, between its port and the ground.";
  return type;
}

PartType rotational_coulomb_damper_type() {
  PartType type = dry_friction({.type = "rotational_coulomb_damper",
                                .port = "shaft",
                                .domain = Domain::rotation,
                                .force = "Nm",
                                .force_unit = "N m",
                                .speed = "rad_per_s",
                                .speed_unit = "rad/s",
                                .viscosity = "viscosity_Nms_per_rad",
                                .viscosity_unit = "N m s/rad"});
  type.group = "rotation";
  type.summary = "Dry friction of a bearing or brake with a viscous part.";
  return type;
}

}  // namespace portwave
