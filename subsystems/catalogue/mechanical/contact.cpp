// Contacts along a line, in a plane or in space, and about an axis.

#include "catalogue/mechanical/contact.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"

namespace portwave {
namespace {

/// Ports that do not move leave its other ones as they are.
class Contact final : public ContactSpring, public LeavesPorts {
 public:
  using ContactSpring::ContactSpring;

  std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const override {
    Signature left = signature();
    left.ports.clear();
    std::vector<double> normal;
    std::size_t first = 0;
    for (std::size_t i = 0; i < idle.size(); ++i) {
      const Port& port = signature().ports[i];
      const auto next = direction().begin() + static_cast<std::ptrdiff_t>(first);
      if (!idle[i]) {
        left.ports.push_back(port);
        normal.insert(normal.end(), next, next + port.dimension);
      }
      first += at(port.dimension);
    }
    return std::make_shared<const Contact>(std::move(left), law(), std::move(normal));
  }
};

/// The words for the motion of the faces.
struct FaceMotion {
  std::string_view type, group;
  Domain domain;
  std::string_view port, unit;
  ContactNames names;
};

constexpr FaceMotion kAlongALine{
    .type = "contact",
    .group = "translation",
    .domain = Domain::translation,
    .port = "face",
    .unit = "m",
    .names = {"force_N", "compression_m", "damping_s_per_m"},
};
constexpr FaceMotion kAboutAnAxis{
    .type = "rotational_contact",
    .group = "rotation",
    .domain = Domain::rotation,
    .port = "shaft",
    .unit = "rad",
    .names = {"torque_Nm", "angle_rad", "damping_s_per_rad"},
};

std::vector<double> unit_normal(std::vector<double> normal) {
  if (normal.empty()) return {1.0};
  double length = 0.0;
  for (const double each : normal) length = std::hypot(length, each);
  if (normal.size() > 3 || length == 0.0) {
    throw ConfigError("/normal", "must have 1, 2 or 3 components that are not all 0");
  }
  for (double& each : normal) each /= length;
  return normal;
}

ParameterInfo choice(std::string name, std::vector<std::string> choices, std::string summary) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = ParameterKind::choice;
  info.default_value = choices.front();
  info.choices = std::move(choices);
  info.summary = std::move(summary);
  return info;
}

ParameterInfo gap(std::string name, std::string unit) {
  ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary =
      "distance of the faces where d is 0; >= 0 with both sides, and then the play is twice as "
      "large";
  info.default_value = 0.0;
  return info;
}

Faces faces_of(const std::string& side) {
  if (side == "both") return Faces::both;
  return side == "negative" ? Faces::negative : Faces::positive;
}

/// What the parameters of both say.
ContactLaw law_of(const Parameters& p, const ContactNames& names, const std::string& gap_name) {
  ContactLaw law = contact_law(p, names, value_of<std::string>(p, "law") == "hertz");
  law.gap = number_of(p, gap_name);
  law.faces = faces_of(value_of<std::string>(p, "side"));
  if (law.faces == Faces::both && law.gap < 0.0) {
    throw ConfigError("/" + gap_name,
                      "must be >= 0 with \"side\": \"both\", whose faces lie on either side of 0");
  }
  return law;
}

/// All but the normal.
PartType contact_of(const FaceMotion& motion) {
  const std::string unit(motion.unit), gap_name = "gap_" + unit;
  PartType type;
  type.name = motion.type;
  type.group = motion.group;
  type.parameters = contact_parameters(motion.names, unit);
  type.parameters.push_back(gap(gap_name, unit));
  type.parameters.push_back(
      choice("side", {"positive", "negative", "both"},
             "whether the faces touch as the approach d grows, as it falls, or either way"));
  type.parameters.push_back(
      choice("law", {"linear", "hertz"}, "n: linear, or Hertz's law of round bodies"));
  type.example = {{std::string(motion.names.load), 20.0},
                  {std::string(motion.names.compression), 0.5},
                  {std::string(motion.names.damping), 0.1},
                  {gap_name, 0.2},
                  {"law", std::string("hertz")}};
  return type;
}

Signature signature_of(const FaceMotion& motion, int ports) {
  return {std::string(motion.type),
          {{"approach", std::string(motion.unit)}},
          {{std::string(motion.port), Causality::flow_in, motion.domain, ports}},
          {}};
}

}  // namespace

std::unique_ptr<Subsystem> make_contact(Signature signature, const ContactLaw& law,
                                        std::vector<double> direction) {
  return std::make_unique<Contact>(std::move(signature), law, std::move(direction));
}

std::vector<ParameterInfo> contact_parameters(const ContactNames& names, const std::string& unit) {
  const std::string load(names.load), compression(names.compression);
  const bool is_torque = unit == "rad";
  ParameterInfo damping =
      non_negative_number(std::string(names.damping), "s/" + unit,
                          "a: about 1.5 (1 - restitution)/speed for impacts of that speed");
  damping.default_value = 0.0;
  return {positive_number(load, is_torque ? "N m" : "N",
                          std::string(is_torque ? "torque" : "force") +
                              " at rest where the compression is " + compression),
          positive_number(compression, unit,
                          "compression s at which the " +
                              std::string(is_torque ? "torque" : "force") + " is " + load),
          damping};
}

ContactLaw contact_law(const Parameters& p, const ContactNames& names, bool is_hertzian) {
  const double reach = number_of(p, names.compression);
  ContactLaw law;
  law.stiffness = number_of(p, names.load) / (is_hertzian ? reach * std::sqrt(reach) : reach);
  law.damping = number_of(p, names.damping);
  law.reach = reach;
  law.is_hertzian = is_hertzian;
  return law;
}

PartType contact_type() {
  PartType type = contact_of(kAlongALine);
  type.summary =
      "Contact: pushes where it is compressed and lets go elsewhere, on one side or both.";
  type.equations =
      "d' = f,  s = max(0, d - gap), or max(0, -d - gap) with side \"negative\",\n"
      "or max(0, |d| - gap) with \"both\": a spring with play, or a pair of end stops\n"
      "H = k s^(n+1)/(n+1)\n"
      "e = +-k s^n max(0, 1 + a s'),  n = 1 (linear) or 3/2 (Hertz),  k = force/compression^n\n"
      "with a normal N of 2 or 3 components:  d' = N^T f,  e = N times the above; no friction";
  ParameterInfo normal;
  normal.name = "normal";
  normal.kind = ParameterKind::numbers;
  normal.summary =
      "direction in which d grows, for a face that moves in a plane or in space: 2 or 3 "
      "components, "
      "of any length; absent: along a line";
  normal.default_value = std::vector<double>();
  type.parameters.push_back(normal);
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    std::vector<double> direction = unit_normal(value_of<std::vector<double>>(p, "normal"));
    const auto size = static_cast<int>(direction.size());
    return make_contact(signature_of(kAlongALine, size), law_of(p, kAlongALine.names, "gap_m"),
                        std::move(direction));
  };
  return type;
}

PartType rotational_contact_type() {
  PartType type = contact_of(kAboutAnAxis);
  type.summary =
      "End stop of a shaft: pushes where it is compressed and lets go elsewhere, on one side or "
      "both.";
  type.equations =
      "d' = f,  s = max(0, d - gap), or max(0, -d - gap) with side \"negative\",\n"
      "or max(0, |d| - gap) with \"both\": a torsional spring with play, or a pair of end stops\n"
      "H = k s^(n+1)/(n+1)\n"
      "e = +-k s^n max(0, 1 + a s'),  n = 1 (linear) or 3/2 (Hertz),  k = torque/angle^n";
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    return make_contact(signature_of(kAboutAnAxis, 1), law_of(p, kAboutAnAxis.names, "gap_rad"),
                        std::vector{1.0});
  };
  return type;
}

}  // namespace portwave
