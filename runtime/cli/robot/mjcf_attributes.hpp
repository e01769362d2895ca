#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "robot/robot.hpp"
#include "robot/xml_reader.hpp"

namespace portwave::cli {

/// The attributes of elements of MJCF, with those of their default classes, and the settings of <compiler>.
class MjcfAttributes : protected XmlReader {
 protected:
  void read_compiler(const Element& one);
  void read_defaults(const Element& one, const std::string& parent);

  /// Of the element, else of its class, else of `childclass_`, else of the main class.
  std::optional<std::string> text(const Element& one, const char* name);
  std::optional<std::vector<double>> reals(const Element& one, const char* name, std::size_t count);
  std::optional<double> real_of(const Element& one, const char* name);
  double real_from_0(const Element& one, const char* name);
  Eigen::Vector3d vector(const Element& one, const char* name, const Eigen::Vector3d& filler);
  /// By quat, axisangle, euler, xyaxes or zaxis.
  Eigen::Matrix3d turn(const Element& one);
  double in_radians(double angle) const { return is_degrees_ ? angle * kDegree : angle; }

  static constexpr double kDegree = 0.017453292519943295;

  std::string childclass_ = "main";
  bool is_degrees_ = true, auto_limits_ = true;
  std::string inertia_from_geoms_ = "auto";
  std::vector<double> inertia_groups_ = {-1e9, 1e9};

 private:
  using Of = std::map<std::string, std::string>;
  std::map<std::string, std::map<std::string, Of>> classes_ = {{"main", {}}};
  std::string euler_axes_ = "xyz";
};

/// As fixed-axis angles, also where the pitch is a right angle.
std::array<double, 3> roll_pitch_yaw_of(const Eigen::Matrix3d& R);

}  // namespace portwave::cli
