#include "agreement/robot_arm.hpp"

#include <cmath>
#include <numbers>

#include <Eigen/Dense>
#include <nlohmann/json.hpp>

namespace portwave::agreement {
namespace {

using Joints = std::array<double, kJoints>;
using Json = nlohmann::ordered_json;

struct Planar {
  double x = 0.0, y = 0.0;
  Planar operator+(Planar b) const { return {x + b.x, y + b.y}; }
  Planar operator*(double s) const { return {s * x, s * y}; }
};
double cross(Planar a, Planar b) { return a.x * b.y - a.y * b.x; }

/// Torques in the joints for given accelerations: velocities and accelerations of the bodies from the
/// base outward, then forces and moments inward. Gravity is the base accelerating upward.
Joints torques(const RobotArm& arm, const double* q, const double* v, const Joints& a,
               double gravity) {
  std::array<Planar, kJoints> along, at_centre;
  Joints turning{};
  Planar at_joint{0.0, gravity};
  double angle = 0.0, speed = 0.0, acceleration = 0.0;
  for (std::size_t k = 0; k < kJoints; ++k) {
    angle += q[k];
    speed += v[k];
    acceleration += a[k];
    along[k] = {std::sin(angle), -std::cos(angle)};
    const Planar across{std::cos(angle), std::sin(angle)};
    const Planar per_metre = across * acceleration + along[k] * (-speed * speed);
    at_centre[k] = at_joint + per_metre * (0.5 * arm.lengths_m[k]);
    at_joint = at_joint + per_metre * arm.lengths_m[k];
    turning[k] = acceleration;
  }
  Joints moments{};
  Planar force_beyond;
  double moment_beyond = 0.0;
  for (std::size_t k = kJoints; k-- > 0;) {
    const double length = arm.lengths_m[k], mass = arm.masses_kg[k];
    const Planar own = at_centre[k] * mass;
    moments[k] = mass * length * length / 12.0 * turning[k] +
                 cross(along[k] * (0.5 * length), own) + cross(along[k] * length, force_beyond) +
                 moment_beyond;
    force_beyond = force_beyond + own;
    moment_beyond = moments[k];
  }
  return moments;
}

using Inertias = Eigen::Matrix<double, kJoints, kJoints>;

Inertias inertias(const RobotArm& arm, const double* q) {
  Inertias M;
  const Joints still{};
  for (int k = 0; k < kJoints; ++k) {
    Joints one{};
    one[static_cast<std::size_t>(k)] = 1.0;
    const Joints column = torques(arm, q, still.data(), one, 0.0);
    for (int i = 0; i < kJoints; ++i) M(i, k) = column[static_cast<std::size_t>(i)];
  }
  return M;
}

double voltage(const Drive& drive, double time_s) {
  return drive.volts * std::sin(2.0 * std::numbers::pi * drive.frequency_Hz * time_s);
}

}  // namespace

RobotArm seven_joints() {
  RobotArm arm;
  arm.lengths_m = {0.35, 0.32, 0.3, 0.26, 0.22, 0.18, 0.12};
  arm.masses_kg = {5.0, 4.5, 4.0, 3.0, 2.2, 1.6, 3.0};
  arm.joint_damping.fill(0.5);
  arm.start_rad = {0.6, -0.3, 0.4, 0.2, -0.5, 0.3, 0.1};
  arm.gravity = 9.81;
  const auto drive = [](double ratio, double stiffness, double constant, double resistance,
                        double inertia, double volts, double frequency) {
    return Drive{
        ratio, stiffness, stiffness / 1000.0, constant, resistance, resistance / 500.0, inertia,
        1e-4,  volts,     frequency};
  };
  arm.drives = {
      drive(160, 20000, 0.08, 0.4, 2e-4, 24, 0.5),   drive(160, 18000, 0.08, 0.4, 2e-4, -20, 0.7),
      drive(120, 12000, 0.07, 0.5, 1.2e-4, 18, 0.9), drive(120, 8000, 0.07, 0.5, 1.2e-4, -22, 0.6),
      drive(100, 5000, 0.05, 0.8, 5e-5, 24, 1.1),    drive(100, 3000, 0.05, 0.8, 5e-5, -16, 0.8),
      drive(100, 2000, 0.05, 0.8, 5e-5, 12, 1.3)};
  return arm;
}

Unknowns at_start(const RobotArm& arm) {
  Unknowns y{};
  for (std::size_t k = 0; k < kJoints; ++k) {
    y[k] = arm.start_rad[k];
    y[2 * kJoints + k] = arm.drives[k].ratio * arm.start_rad[k];
  }
  return y;
}

void rate(const RobotArm& arm, double time_s, const double* y, double* y_dot) {
  const double *q = y, *v = y + kJoints, *turn = y + 2 * kJoints, *w = y + 3 * kJoints,
               *i = y + 4 * kJoints;
  const Joints bias = torques(arm, q, v, Joints{}, arm.gravity);
  Eigen::Matrix<double, kJoints, 1> net;
  double power = 0.0;
  for (std::size_t k = 0; k < kJoints; ++k) {
    const Drive& d = arm.drives[k];
    const double u = voltage(d, time_s);
    const double shaft =
        d.stiffness * (q[k] - turn[k] / d.ratio) + d.shaft_damping * (v[k] - w[k] / d.ratio);
    net[static_cast<int>(k)] = -shaft - arm.joint_damping[k] * v[k] - bias[k];
    y_dot[k] = v[k];
    y_dot[2 * kJoints + k] = w[k];
    y_dot[3 * kJoints + k] =
        (d.motor_constant * i[k] - d.gear_friction * w[k] + shaft / d.ratio) / d.inertia;
    y_dot[4 * kJoints + k] = (u - d.resistance * i[k] - d.motor_constant * w[k]) / d.inductance;
    power += u * i[k];
  }
  y_dot[5 * kJoints] = power;
  const Eigen::Matrix<double, kJoints, 1> a = inertias(arm, q).ldlt().solve(net);
  for (int k = 0; k < kJoints; ++k) y_dot[kJoints + k] = a[k];
}

Joints momenta(const RobotArm& arm, const Unknowns& y) {
  const Eigen::Map<const Eigen::Matrix<double, kJoints, 1>> v(y.data() + kJoints);
  const Eigen::Matrix<double, kJoints, 1> p = inertias(arm, y.data()) * v;
  Joints out{};
  for (int k = 0; k < kJoints; ++k) out[static_cast<std::size_t>(k)] = p[k];
  return out;
}

double stored_J(const RobotArm& arm, const Unknowns& y) {
  const Joints p = momenta(arm, y);
  double energy = 0.0, angle = 0.0, fall = 0.0;
  for (std::size_t k = 0; k < kJoints; ++k) {
    const Drive& d = arm.drives[k];
    const double twist = y[k] - y[2 * kJoints + k] / d.ratio;
    const double w = y[3 * kJoints + k], i = y[4 * kJoints + k];
    angle += y[k];
    const double rise = arm.lengths_m[k] * (1.0 - std::cos(angle));
    energy += 0.5 * p[k] * y[kJoints + k] + arm.masses_kg[k] * arm.gravity * (fall + 0.5 * rise) +
              0.5 * (d.stiffness * twist * twist + d.inertia * w * w + d.inductance * i * i);
    fall += rise;
  }
  return energy;
}

std::string scenario_of(const RobotArm& arm, int stages, double step_s) {
  Json subsystems = Json::array(), couplings = Json::array(), start = Json::array();
  for (const double angle : arm.start_rad) start.push_back(angle);
  for (int k = 0; k < kJoints; ++k) start.push_back(0.0);
  subsystems.push_back({{"name", "arm"},
                        {"type", "planar_arm"},
                        {"parameters",
                         {{"lengths_m", arm.lengths_m},
                          {"masses_kg", arm.masses_kg},
                          {"damping_Nms_per_rad", arm.joint_damping},
                          {"gravity_m_per_s2", arm.gravity}}},
                        {"initial_state", start}});
  const auto join = [&](const std::string& one, const std::string& other) {
    couplings.push_back({{"kind", "connection"}, {"ports", {one, other}}});
  };
  for (std::size_t k = 0; k < kJoints; ++k) {
    const Drive& d = arm.drives[k];
    const std::string number = std::to_string(k + 1);
    const Json sine = {{"frequency_Hz", d.frequency_Hz}};
    subsystems.push_back(
        {{"name", "source_" + number},
         {"type", "effort_source"},
         {"parameters", {{"domain", "electrical"}}},
         {"inputs",
          {{"effort",
            {{"kind", "sine_product"}, {"amplitude", d.volts}, {"sines", Json::array({sine})}}}}}});
    subsystems.push_back({{"name", "motor_" + number},
                          {"type", "dc_motor"},
                          {"parameters",
                           {{"motor_constant_Vs_per_rad", d.motor_constant},
                            {"resistance_ohm", d.resistance},
                            {"inductance_H", d.inductance},
                            {"inertia_kgm2", d.inertia}}}});
    subsystems.push_back(
        {{"name", "gear_" + number},
         {"type", "gear"},
         {"parameters", {{"ratio", d.ratio}, {"damping_Nms_per_rad", d.gear_friction}}}});
    subsystems.push_back(
        {{"name", "shaft_" + number},
         {"type", "torsional_spring_damper"},
         {"parameters",
          {{"stiffness_Nm_per_rad", d.stiffness}, {"damping_Nms_per_rad", d.shaft_damping}}}});
    join("source_" + number + ".port", "motor_" + number + ".terminals");
    join("motor_" + number + ".shaft", "gear_" + number + ".input");
    join("gear_" + number + ".output", "shaft_" + number + ".left");
    join("shaft_" + number + ".right", "arm.joint_" + number);
  }
  const Json scenario = {{"name", "robot_arm"},
                         {"time", {{"step_s", step_s}, {"end_s", 0.3}}},
                         {"subsystems", subsystems},
                         {"couplings", couplings},
                         {"method", {{"kind", "auto"}, {"tolerance", 1e-13}, {"stages", stages}}}};
  return scenario.dump();
}

}  // namespace portwave::agreement
