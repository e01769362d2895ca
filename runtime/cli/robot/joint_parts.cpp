#include "robot/joint_parts.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {
namespace {

using Json = JointParts::Json;

constexpr double kVolts = 48.0;
constexpr double kReduction = 100.0;
/// Of a screw: 100 turns for a metre.
constexpr double kScrew = 200.0 * std::numbers::pi;
constexpr double kRotorTime = 0.01;  ///< of a motor without load, with its terminals joined: JR/k²
constexpr double kWindingTime = 0.001;  ///< L/R
/// Times the speed of a stop: a bounce at that speed gives back 0.4 of it.
constexpr double kStopDamping = 2.0;
/// Of the ground: a bounce at half a metre a second gives back 0.4 of it.
constexpr double kGroundDamping = 4.0;
constexpr double kGroundFriction = 0.8;
constexpr double kGroundCreep = 0.005;  ///< least [m/s]
/// Of the speed limit: there dry friction has three quarters of its value.
constexpr double kCreepShare = 0.001;

/// What is chosen, not given, is written with four digits.
double rounded(double x) {
  if (x == 0.0 || !std::isfinite(x)) return x;
  return std::stod(fmt::format("{:.4g}", x));
}

Json start_at(const char* state, double value) {
  return value == 0.0 ? Json::object() : Json{{state, value}};
}

}  // namespace

double usual_speed(const RobotJoint& joint) {
  return joint.limit.velocity.value_or(joint.turns() ? 3.0 : 0.5);
}

JointDrive joint_drive(const RobotJoint& joint, const JointFigures& figures,
                       std::vector<std::string>& notes) {
  JointDrive out;
  std::vector<std::string> assumed;
  out.volts = kVolts;
  out.speed = usual_speed(joint);
  if (!joint.limit.velocity) {
    assumed.push_back(fmt::format("idles at {} {}", out.speed, joint.turns() ? "rad/s" : "m/s"));
  }
  if (joint.limit.effort) {
    out.effort = *joint.limit.effort;
  } else {
    // Without weight: what reaches the speed in a tenth of a second.
    out.effort = rounded(figures.weight > 0.0 ? 2.0 * figures.weight
                                              : 10.0 * figures.held_inertia * out.speed);
    assumed.push_back(fmt::format("stalls at {} {}", out.effort, joint.turns() ? "N m" : "N"));
  }
  if (joint.reduction) {
    out.ratio = *joint.reduction;
  } else {
    out.ratio = joint.turns() ? kReduction : kScrew;
    assumed.push_back(joint.turns() ? fmt::format("gear {}:1", kReduction)
                                    : std::string("turns 100 times for a metre"));
  }
  const double n = std::abs(out.ratio);
  out.constant = rounded(out.volts / (n * out.speed));
  out.resistance = rounded(out.volts * n * out.constant / out.effort);
  out.rotor = joint.rotor > 0.0
                  ? joint.rotor / (n * n)
                  : rounded(kRotorTime * out.constant * out.constant / out.resistance);
  if (!assumed.empty()) {
    notes.push_back(fmt::format("joint {}: the file says little of its motor; assumed: {}",
                                in_quotes(joint.name), fmt::join(assumed, ", ")));
  }
  return out;
}

void JointParts::meet(const std::string& joint, std::string port) {
  const auto found = std::ranges::find(meetings_, joint, &Meeting::joint);
  if (found == meetings_.end()) {
    meetings_.push_back({joint, {std::move(port)}});
  } else {
    found->ports.push_back(std::move(port));
  }
}

void JointParts::add(const std::string& name, const char* type, Json parameters, Json start,
                     Json inputs) {
  Json part = {{"name", name}, {"type", type}, {"parameters", std::move(parameters)}};
  if (!start.empty()) part["initial_state"] = std::move(start);
  if (!inputs.empty()) part["inputs"] = std::move(inputs);
  parts_.push_back(std::move(part));
}

void JointParts::connect(const std::string& a, const std::string& b, const char* kind) {
  couplings_.push_back({{"kind", kind}, {"ports", {a, b}}});
}

void JointParts::add_stops(const RobotJoint& joint, const JointFigures& figures,
                           double contact_time_s) {
  const double lower = *joint.limit.lower, upper = *joint.limit.upper;
  const double omega = std::numbers::pi / contact_time_s;
  const double stiffness = figures.free_inertia * omega * omega;
  const double compression = joint.turns() ? 0.01 : 0.001;
  const double effort = rounded(stiffness * compression);
  const double fall = std::sqrt(2.0 * figures.weight * (upper - lower) / figures.held_inertia);
  const double damping = rounded(kStopDamping / std::max(usual_speed(joint), fall));
  const double middle = 0.5 * (lower + upper), gap = 0.5 * (upper - lower);
  const std::string name = joint.name + "_stops";
  const Json start = start_at("approach", middle - figures.start);
  if (joint.turns()) {
    add(name, "rotational_contact",
        {{"torque_Nm", effort},
         {"angle_rad", compression},
         {"damping_s_per_rad", damping},
         {"gap_rad", gap},
         {"side", "both"}},
        start);
    meet(joint.name, name + ".shaft");
  } else {
    add(name, "contact",
        {{"force_N", effort},
         {"compression_m", compression},
         {"damping_s_per_m", damping},
         {"gap_m", gap},
         {"side", "both"}},
        start);
    meet(joint.name, name + ".face");
  }
}

/// Steps tell no slip below the speed by which friction changes that of a sliding body in one of them.
void JointParts::add_ground(const std::string& name, const GroundFigures& figures, double gravity,
                            double contact_time_s, double step_s) {
  constexpr double kCompression = 0.001;
  const double omega = std::numbers::pi / contact_time_s;
  Json start = Json::object();
  for (const auto& [state, value] :
       {std::pair("x", figures.x), {"y", figures.y}, {"z", figures.z}}) {
    if (value != 0.0) start[state] = value;
  }
  add(name, "ground_contact",
      {{"force_N", rounded(figures.mass * omega * omega * kCompression)},
       {"compression_m", kCompression},
       {"damping_s_per_m", kGroundDamping},
       {"friction", kGroundFriction},
       {"creep_speed_m_per_s", rounded(std::max(kGroundCreep, kGroundFriction * gravity * step_s))},
       {"radius_m", figures.radius}},
      start);
  connect(robot_port(figures.frame), name + ".point");
}

void JointParts::add_dry_friction(const std::string& name, const RobotJoint& at, double friction,
                                  double creep_speed) {
  if (at.turns()) {
    add(name, "rotational_coulomb_damper",
        {{"friction_Nm", friction}, {"creep_speed_rad_per_s", rounded(creep_speed)}});
    meet(at.name, name + ".shaft");
  } else {
    add(name, "coulomb_damper",
        {{"friction_N", friction}, {"creep_speed_m_per_s", rounded(creep_speed)}});
    meet(at.name, name + ".end");
  }
}

/// Steps tell no speeds below that by which friction changes it in one of them.
void JointParts::add_friction(const RobotJoint& joint, const JointFigures& figures, double step_s) {
  const double change = joint.friction * step_s / figures.free_inertia;
  add_dry_friction(joint.name + "_friction", joint, joint.friction,
                   std::max(kCreepShare * usual_speed(joint), change));
}

void JointParts::add_followers_friction(const RobotJoint& joint, const RobotJoint& leader,
                                        double multiplier, const JointFigures& figures_of_leader,
                                        double step_s) {
  const double ratio = std::abs(multiplier), friction = joint.friction * ratio;
  const double change = friction * step_s / figures_of_leader.free_inertia;
  add_dry_friction(joint.name + "_friction", leader, friction,
                   std::max(kCreepShare * usual_speed(joint) / ratio, change));
}

void JointParts::add_spring(const RobotJoint& joint, const JointFigures& figures) {
  const std::string name = joint.name + "_spring";
  const double stretch = joint.spring_rest - figures.start;
  if (joint.turns()) {
    add(name, "torsional_spring", {{"stiffness_Nm_per_rad", joint.stiffness}},
        start_at("twist", stretch));
  } else {
    add(name, "spring", {{"stiffness_N_per_m", joint.stiffness}}, start_at("elongation", stretch));
  }
  couplings_.push_back({{"kind", "fixed"}, {"ports", {name + ".left"}}});
  meet(joint.name, name + ".right");
}

void JointParts::add_rotor(const RobotJoint& joint) {
  const std::string name = joint.name + "_rotor";
  if (joint.turns()) {
    add(name, "inertia", {{"inertia_kgm2", joint.rotor}});
    meet(joint.name, name + ".shaft");
  } else {
    add(name, "mass", {{"mass_kg", joint.rotor}});
    meet(joint.name, name + ".port");
  }
}

void JointParts::add_motor(const RobotJoint& joint, const JointFigures& figures,
                           const JointDrive& drive, const std::string& voltage) {
  const std::string amplifier = joint.name + "_amplifier", motor = joint.name + "_motor",
                    gear = joint.name + "_gear";
  const Json input = voltage.empty() ? Json{{"kind", "constant"}, {"value", 0.0}}
                                     : Json{{"kind", "signal"}, {"signal", voltage}};
  add(amplifier, "effort_source", {{"domain", "electrical"}}, Json::object(), {{"effort", input}});
  add(motor, "dc_motor",
      {{"resistance_ohm", drive.resistance},
       {"inductance_H", rounded(kWindingTime * drive.resistance)},
       {"motor_constant_Vs_per_rad", drive.constant},
       {"inertia_kgm2", drive.rotor}},
      start_at("angle", drive.ratio * figures.start));
  connect(amplifier + ".port", motor + ".terminals");
  if (joint.turns()) {
    add(gear, "gear", {{"ratio", drive.ratio}});
    connect(motor + ".shaft", gear + ".input");
    meet(joint.name, gear + ".output");
  } else {
    add(gear, "rack_and_pinion", {{"radius_m", 1.0 / drive.ratio}});
    connect(motor + ".shaft", gear + ".pinion");
    meet(joint.name, gear + ".rack");
  }
}

/// What takes an effort meets the leader, what takes a flow is connected to the follower.
void JointParts::add_mimic(const RobotJoint& joint, const RobotJoint& leader, double multiplier) {
  const std::string name = joint.name + "_mimic", port = robot_port(joint.name);
  if (joint.turns() == leader.turns()) {
    add(name, joint.turns() ? "gear" : "lever", {{"ratio", multiplier}});
    meet(leader.name, name + ".output");
    connect(name + ".input", port);
  } else if (joint.turns()) {
    add(name, "rack_and_pinion", {{"radius_m", 1.0 / multiplier}});
    meet(leader.name, name + ".rack");
    connect(name + ".pinion", port);
  } else {
    const std::string shaft = joint.name + "_shaft";
    add(shaft, "gear", {{"ratio", 1.0}});
    add(name, "rack_and_pinion", {{"radius_m", multiplier}});
    meet(leader.name, shaft + ".output");
    connect(shaft + ".input", name + ".pinion", "common_flow");
    connect(name + ".rack", port, "common_flow");
  }
}

const std::string& JointParts::owner_of(const std::string& joint) const {
  static const std::string whole = kRobotPart;
  const auto own = owners_.find(joint);
  return own == owners_.end() ? whole : own->second;
}

void JointParts::add_weld(const std::string& inner, const std::string& outer) {
  connect(inner, outer, "common_flow");
  connect(inner + "_torque", outer + "_torque", "common_flow");
  const std::string base = outer.substr(0, outer.find('.')) + ".base";
  couplings_.push_back({{"kind", "free"}, {"ports", {base + "_force"}}});
  couplings_.push_back({{"kind", "free"}, {"ports", {base + "_torque"}}});
}

Json JointParts::couplings() const {
  Json out = Json::array();
  for (const Meeting& meeting : meetings_) {
    out.push_back(
        {{"kind", meeting.ports.size() == 1 ? "free" : "common_flow"}, {"ports", meeting.ports}});
  }
  for (const Json& own : couplings_) out.push_back(own);
  return out;
}

}  // namespace portwave::cli
