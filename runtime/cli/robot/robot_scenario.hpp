#pragma once

#include <string>
#include <vector>

#include "robot/robot.hpp"

namespace portwave::cli {

struct RobotOptions {
  double step_s = 0.001;
  double duration_s = 5.0;
  bool free_base = false;        ///< the root is a free body, in place of being fixed to the world
  bool hold = false;             ///< a PID controller at each joint keeps it where it starts
  bool motors = false;           ///< a motor with a gear drives each joint
  bool limits = true;            ///< end stops where the file gives a range
  double stop_time_s = 0.0;      ///< how long a bounce off an end stop lasts; 0: see `stop_time`
  std::vector<std::string> cut;  ///< joints at which the robot is cut into parts
  bool ground = false;           ///< the spheres of the links' surfaces touch the ground, z = 0
};

/// Twenty steps, and at least 10 ms, unless told.
double stop_time(const RobotOptions& options);

/// The text of a scenario with the robot as one part "articulated", or several where it is cut, and further parts at its joints. Appends to
/// robot.notes what it leaves out or assumes.
/// Errors: ConfigError with every defect of the part, `where` being "line 12, <joint> "elbow"" where one is at fault.
std::string robot_scenario(Robot& robot, const RobotOptions& options);

}  // namespace portwave::cli
