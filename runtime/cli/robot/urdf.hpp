#pragma once

#include <string>

#include "robot/robot.hpp"

namespace portwave::cli {

/// Errors: ConfigError with every defect, `where` being "line 12, <joint> "elbow"". std::runtime_error where the
/// program was built without what reads XML.
Robot read_urdf(const std::string& text);

}  // namespace portwave::cli
