#pragma once

#include <string>

#include "robot/robot.hpp"

namespace portwave::cli {

/// The common subset of MuJoCo's format: trees of bodies with hinge, slide, ball and free joints, inertia given or
/// of primitive shapes, default classes, actuators of joints. What would change the motion and is not of the subset
/// is an error, the rest a note.
/// Errors: as read_urdf.
Robot read_mjcf(const std::string& text);

}  // namespace portwave::cli
