#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace portwave::cli {

/// A place, and roll, pitch, yaw about fixed axes, as URDF gives a pose.
struct RobotPose {
  std::array<double, 3> xyz = {};
  std::array<double, 3> rpy = {};
};

/// A sphere of a link's surface, in the axes of the link.
struct RobotSphere {
  std::array<double, 3> centre = {};
  double radius = 0.0;
};

struct RobotLink {
  std::string name;
  int line = 0;
  bool has_inertia = false;
  double mass_kg = 0.0;
  RobotPose centre;                    ///< of the axes of `inertia`, in those of the link
  std::array<double, 6> inertia = {};  ///< xx, xy, xz, yy, yz, zz about the mass centre
  std::vector<RobotSphere> spheres;    ///< that may touch the ground
  int other_shapes = 0;                ///< of its surface, which are no spheres
};

/// Of a joint that turns or slides; none where the file says nothing.
struct RobotLimit {
  std::optional<double> lower, upper, effort, velocity;
};

/// The joint's coordinate is multiplier × that of another one + offset.
struct RobotMimic {
  std::string joint;
  double multiplier = 1.0, offset = 0.0;
};

/// A controller that the file itself describes: effort = proportional × (target − q) − derivative × q'.
struct RobotServo {
  std::string name;
  double proportional = 0.0, derivative = 0.0;
  double target = 0.0;  ///< coordinate of the joint
};

struct RobotJoint {
  std::string name;
  int line = 0;
  std::string element = "joint";  ///< the element of the file, for messages
  std::string type;               ///< revolute, prismatic, spherical, fixed or free
  std::string parent, child;
  RobotPose origin;
  std::array<double, 3> axis = {1, 0, 0};
  double start = 0.0;  ///< coordinate at rest
  double damping = 0.0;
  double friction = 0.0;   ///< dry, in N m or N
  double stiffness = 0.0;  ///< of a spring at rest where the coordinate is `spring_rest`
  double spring_rest = 0.0;
  double rotor = 0.0;  ///< inertia of the drive, seen at the joint
  RobotLimit limit;
  std::optional<RobotMimic> mimic;
  std::optional<double> reduction;  ///< turns of the motor for one of the joint, or for a metre
  bool has_motor = false;           ///< the file says that something drives it
  std::optional<RobotServo> servo;

  bool moves_alone() const { return type == "revolute" || type == "prismatic"; }
  bool turns() const { return type == "revolute"; }
};

/// A robot as a file describes it, whose joints make one tree: joints come after those of their parents.
struct Robot {
  std::string name;
  std::string format;  ///< of its file: "URDF"
  RobotLink root;
  std::vector<RobotJoint> joints;
  std::vector<RobotLink> links;  ///< the child of each joint
  double gravity_m_per_s2 = 9.81;
  std::vector<std::string> notes;  ///< what the file says and is left out
};

}  // namespace portwave::cli
