#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <portwave/subsystems/base/error.hpp>

namespace portwave::cli {

/// A pose of URDF: a place, and roll, pitch, yaw about fixed axes.
struct UrdfPose {
  std::array<double, 3> xyz = {};
  std::array<double, 3> rpy = {};
};

struct UrdfLink {
  std::string name;
  int line = 0;
  bool has_inertia = false;
  double mass_kg = 0.0;
  UrdfPose centre;                     ///< of the axes of `inertia`, in those of the link
  std::array<double, 6> inertia = {};  ///< xx, xy, xz, yy, yz, zz about the mass centre
};

struct UrdfLimit {
  std::optional<double> lower, upper, effort, velocity;
};

struct UrdfJoint {
  std::string name;
  int line = 0;
  std::string type;  ///< revolute, prismatic, fixed or free
  std::string parent, child;
  UrdfPose origin;
  std::array<double, 3> axis = {1, 0, 0};
  double damping = 0.0;
  UrdfLimit limit;
};

/// A robot as a URDF file describes it, whose joints make one tree: joints come after those of their parents.
struct UrdfRobot {
  std::string name;
  UrdfLink root;
  std::vector<UrdfJoint> joints;
  std::vector<UrdfLink> links;     ///< the child of each joint
  std::vector<std::string> notes;  ///< what the file says and is left out
};

/// Errors: ConfigError with every defect, `where` being "line 12, <joint> "elbow"". std::runtime_error where the
/// program was built without what reads XML.
UrdfRobot read_urdf(const std::string& text);

}  // namespace portwave::cli
