#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace portwave::agreement {

constexpr int kJoints = 7;

/// A motor with its gear and the elastic shaft that drives a link; the voltage is volts·sin(2π f t).
struct Drive {
  double ratio, stiffness, shaft_damping;
  double motor_constant, resistance, inductance, inertia;
  double gear_friction;  ///< at the gear's input
  double volts, frequency_Hz;
};

struct RobotArm {
  std::array<double, kJoints> lengths_m, masses_kg, joint_damping;  ///< links are thin rods
  std::array<Drive, kJoints> drives;
  std::array<double, kJoints> start_rad;  ///< at rest, no twist, no currents
  double gravity;
};

/// Seven links with a payload, in SI units.
RobotArm seven_joints();

/// Unknowns: angles, speeds, turns and speeds of the rotors, currents, each kJoints, and the energy
/// that the voltages have supplied. Link k turns by angle k relative to the one before.
constexpr std::size_t kUnknowns = 5 * kJoints + 1;
using Unknowns = std::array<double, kUnknowns>;

Unknowns at_start(const RobotArm& arm);

/// The whole as one system of ordinary differential equations, by the recursive Newton-Euler
/// equations of a chain of rigid bodies: shares no line with the parts of the catalogue.
void rate(const RobotArm& arm, double time_s, const double* y, double* y_dot);

/// Energy of links, gravity (0 where all hang), shafts, rotors and windings.
double stored_J(const RobotArm& arm, const Unknowns& y);
/// ∂(kinetic energy)/∂(speeds).
std::array<double, kJoints> momenta(const RobotArm& arm, const Unknowns& y);

/// The same arm as a scenario: an arm, and of each drive a source, a motor, a gear and a shaft.
std::string scenario_of(const RobotArm& arm, int stages, double step_s);

}  // namespace portwave::agreement
