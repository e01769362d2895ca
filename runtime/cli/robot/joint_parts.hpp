#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "robot/robot.hpp"

namespace portwave::cli {

/// The part that stands for the robot.
inline constexpr const char* kRobotPart = "robot";

/// What parts at a joint depend on, in units of the joint.
struct JointFigures {
  double start = 0.0;         ///< coordinate at the start
  double held_inertia = 0.0;  ///< that a torque at the joint moves while the other joints are held
  double free_inertia = 0.0;  ///< the same while they move freely
  double weight = 0.0;        ///< torque that is enough to hold the bodies against gravity
};

/// A direct current motor behind a gear: at its voltage it stalls at the joint's effort limit, and idles at the
/// joint's speed limit.
struct JointDrive {
  double ratio = 0.0;  ///< turns of the motor for one of the joint, or radians for a metre
  double effort = 0.0, speed = 0.0;
  double volts = 0.0, constant = 0.0, resistance = 0.0;
  double rotor = 0.0;  ///< inertia at the motor

  double effort_per_volt() const { return ratio * constant / resistance; }
  /// Of the back electromotive force, seen at the joint.
  double damping() const { return effort / speed; }
  double rotor_at_joint() const { return ratio * ratio * rotor; }
};

/// The speed limit, or what stands for it: 3 rad/s, 0.5 m/s.
double usual_speed(const RobotJoint& joint);

/// Appends to `notes` what the file does not say of the motor.
JointDrive joint_drive(const RobotJoint& joint, const JointFigures& figures,
                       std::vector<std::string>& notes);

/// A sphere of the robot that may touch the ground z = 0, at the start.
struct GroundFigures {
  std::string frame;  ///< the robot's port at its centre
  double radius = 0.0;
  double x = 0.0, y = 0.0, z = 0.0;
  double mass = 0.0;  ///< that one contact bears
};

/// Parts around the robot, and what joins them. At a joint they meet in a `common_flow`, in which all flows are
/// minus the joint's velocity, as that of the robot's own port.
class JointParts {
 public:
  using Json = nlohmann::ordered_json;

  /// By joint, frame or port: the part that has it, where that is not kRobotPart.
  void set_owners(std::map<std::string, std::string> owners) { owners_ = std::move(owners); }
  const std::string& owner_of(const std::string& joint) const;
  /// Ports for forces and torques of two frames are one.
  void add_weld(const std::string& inner, const std::string& outer);
  void add_robot_port(const std::string& port) { meet(port, robot_port(port)); }
  void add_stops(const RobotJoint& joint, const JointFigures& figures, double contact_time_s);
  void add_friction(const RobotJoint& joint, const JointFigures& figures, double step_s);
  /// Of a joint that follows another one: `multiplier` times as fast.
  void add_followers_friction(const RobotJoint& joint, const RobotJoint& leader, double multiplier,
                              const JointFigures& figures_of_leader, double step_s);
  void add_spring(const RobotJoint& joint, const JointFigures& figures);
  /// The inertia of a drive that is not described otherwise.
  void add_rotor(const RobotJoint& joint);
  /// `voltage`: the signal that sets the motor's voltage; empty: 0 V.
  void add_motor(const RobotJoint& joint, const JointFigures& figures, const JointDrive& drive,
                 const std::string& voltage);
  /// A gear between the joint that leads and the one that moves `multiplier` times as fast.
  void add_mimic(const RobotJoint& joint, const RobotJoint& leader, double multiplier);

  void add_ground(const std::string& name, const GroundFigures& figures, double gravity,
                  double contact_time_s, double step_s);

  const Json& parts() const { return parts_; }
  /// Ports at which nothing meets the robot are free.
  Json couplings() const;

 private:
  struct Meeting {
    std::string joint;
    std::vector<std::string> ports;
  };

  std::string robot_port(const std::string& port) const { return owner_of(port) + "." + port; }
  void meet(const std::string& joint, std::string port);
  void add(const std::string& name, const char* type, Json parameters, Json start = Json::object(),
           Json inputs = Json::object());
  void connect(const std::string& a, const std::string& b, const char* kind = "connection");
  void add_dry_friction(const std::string& name, const RobotJoint& at, double friction,
                        double creep_speed);

  Json parts_ = Json::array(), couplings_ = Json::array();
  std::vector<Meeting> meetings_;
  std::map<std::string, std::string> owners_;
};

}  // namespace portwave::cli
