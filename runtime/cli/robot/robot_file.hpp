#pragma once

#include <string>

#include "robot/robot.hpp"

namespace portwave::cli {

/// A robot from the text of a URDF or MJCF file. Errors: as read_urdf.
Robot read_robot(const std::string& text);

}  // namespace portwave::cli
