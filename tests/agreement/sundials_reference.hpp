#pragma once

#include "agreement/robot_arm.hpp"

namespace portwave::agreement {

/// The arm after a time, as one system of equations: by CVODE's Adams methods or by the explicit
/// Runge-Kutta method 7(8) of Fehlberg in ARKODE, at a relative tolerance of 1e-12.
/// Errors: std::runtime_error when SUNDIALS fails.
enum class Peer { adams, runge_kutta };
Unknowns by_sundials(const RobotArm& arm, double time_s, Peer peer);

}  // namespace portwave::agreement
