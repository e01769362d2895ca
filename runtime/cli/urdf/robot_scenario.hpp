#pragma once

#include <string>

#include "urdf/urdf.hpp"

namespace portwave::cli {

struct RobotOptions {
  double step_s = 0.001;
  double duration_s = 5.0;
  bool free_base = false;  ///< the root is a free body, in place of being fixed to the world
  bool hold = false;       ///< a PID controller at each joint keeps it where it starts
};

/// The text of a scenario with the robot as one part "articulated". Appends to robot.notes what it leaves out.
/// Errors: ConfigError with every defect of the part, `where` being "line 12, <joint> "elbow"" where one is at fault.
std::string robot_scenario(UrdfRobot& robot, const RobotOptions& options);

}  // namespace portwave::cli
