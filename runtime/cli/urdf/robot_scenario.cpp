#include "urdf/robot_scenario.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/catalogue_json.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/core/subsystem.hpp>

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr const char* kPart = "robot";
/// Of the loops of `hold`, beside the joint's own inertia [rad/s].
constexpr double kBandwidth = 20.0;

Numbers row(const std::array<double, 3>& v) { return {v[0], v[1], v[2]}; }

/// The moments of a link in its own axes, about its mass centre.
Numbers turned(const UrdfLink& link) {
  const auto& [xx, xy, xz, yy, yz, zz] = link.inertia;
  const auto& [roll, pitch, yaw] = link.centre.rpy;
  Eigen::Matrix3d I;
  I << xx, xy, xz, xy, yy, yz, xz, yz, zz;
  const Eigen::Matrix3d R = (Eigen::AngleAxisd(yaw, Eigen::Vector3d::UnitZ()) *
                             Eigen::AngleAxisd(pitch, Eigen::Vector3d::UnitY()) *
                             Eigen::AngleAxisd(roll, Eigen::Vector3d::UnitX()))
                                .toRotationMatrix();
  if (roll != 0.0 || pitch != 0.0 || yaw != 0.0) I = (R * I * R.transpose()).eval();
  return {I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2)};
}

class Writer {
 public:
  Writer(UrdfRobot& robot, const RobotOptions& options) : robot_(robot), options_(options) {}

  std::string write() {
    add_bodies();
    build();
    list_limits();
    Json part = {
        {"name", kPart}, {"type", "articulated"}, {"parameters", parameters_json(parameters_)}};
    Json scenario = {
        {"name", robot_.name},
        {"description", fmt::format("The robot {}, from a URDF file.", in_quotes(robot_.name))},
        {"time", {{"step_s", options_.step_s}, {"end_s", options_.duration_s}}},
        {"subsystems", Json::array()},
        {"couplings", Json::array()},
        {"method", {{"kind", "auto"}}}};
    for (const Port& port : component_->signature().ports) {
      scenario["couplings"].push_back(
          {{"kind", "free"}, {"ports", {fmt::format("{}.{}", kPart, port.name)}}});
    }
    if (options_.hold) hold(part, scenario);
    scenario["subsystems"].push_back(std::move(part));
    return scenario.dump(2) + "\n";
  }

 private:
  void add_body(const std::string& name, const std::string& place, const std::string& type,
                const UrdfPose& origin, const std::array<double, 3>& axis, double damping,
                const UrdfLink& link, int parent) {
    places_.push_back(place);
    names_.push_back(name);
    types_.push_back(type);
    parents_.push_back(parent);
    origins_.push_back(row(origin.xyz));
    turns_.push_back(row(origin.rpy));
    axes_.push_back(row(axis));
    damping_.push_back(damping);
    masses_.push_back(link.mass_kg);
    centres_.push_back(row(link.centre.xyz));
    inertias_.push_back(turned(link));
    number_of_[link.name] = static_cast<int>(names_.size());
  }

  void add_bodies() {
    number_of_[robot_.root.name] = 0;
    if (options_.free_base) {
      add_body(robot_.root.name,
               fmt::format("line {}, <link> {}", robot_.root.line, in_quotes(robot_.root.name)),
               "free", {}, {0, 0, 1}, 0.0, robot_.root, 0);
    }
    for (std::size_t i = 0; i < robot_.joints.size(); ++i) {
      const UrdfJoint& joint = robot_.joints[i];
      const UrdfLink& link = robot_.links[i];
      if (!link.has_inertia && joint.type != "fixed") {
        robot_.notes.push_back(
            fmt::format("link {} has no <inertial>: it has no mass", in_quotes(link.name)));
      }
      add_body(joint.name, fmt::format("line {}, <joint> {}", joint.line, in_quotes(joint.name)),
               joint.type, joint.origin, joint.axis, joint.damping, link,
               number_of_.at(joint.parent));
    }
    const Numbers parents(parents_.begin(), parents_.end());
    parameters_ = {{"joints", types_},     {"names", names_},       {"parents", parents},
                   {"places_m", origins_}, {"turns_rad", turns_},   {"axes", axes_},
                   {"masses_kg", masses_}, {"centres_m", centres_}, {"inertias_kgm2", inertias_},
                   {"damping", damping_}};
  }

  /// Defects of one entry of a list are those of a joint.
  void build() {
    try {
      component_ = make_part("articulated", parameters_);
    } catch (const ConfigError& error) {
      Issues issues;
      for (const Issue& issue : error.issues()) {
        const std::size_t slash = issue.where.rfind('/');
        std::size_t number = 0;
        const char* const begin = issue.where.data() + (slash == std::string::npos ? 0 : slash + 1);
        const auto read = std::from_chars(begin, issue.where.data() + issue.where.size(), number);
        const bool is_one = read.ec == std::errc() && number < places_.size();
        issues.push_back({is_one ? places_[number] : "", issue.what});
      }
      throw ConfigError(std::move(issues));
    }
  }

  static std::string shown(const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "-";
  }

  void list_limits() {
    for (const UrdfJoint& joint : robot_.joints) {
      const UrdfLimit& limit = joint.limit;
      if (!limit.lower && !limit.upper && !limit.velocity && !limit.effort) continue;
      const char* const unit = joint.type == "prismatic" ? "m" : "rad";
      robot_.notes.push_back(fmt::format(
          "joint {}: limits are not simulated: {} to {} {}, speed {} {}/s, effort {} {}{}",
          in_quotes(joint.name), shown(limit.lower), shown(limit.upper), unit,
          shown(limit.velocity), unit, shown(limit.effort), joint.type == "prismatic" ? "N" : "N m",
          options_.hold && limit.effort.value_or(0.0) > 0.0 ? " (its controller keeps it)" : ""));
    }
  }

  /// M at the start, from the energy: its Hessian by the momenta is M⁻¹.
  Eigen::MatrixXd mass_matrix() const {
    const Subsystem& part = *component_->port_hamiltonian();
    const Eigen::Index n = part.signature().state_size(), nv = part.signature().input_size();
    const Numbers x = part.default_state();
    std::vector<Eigen::Triplet<double>> entries;
    part.hessian(x.data(), entries);
    Eigen::MatrixXd H = Eigen::MatrixXd::Zero(n, n);
    for (const auto& entry : entries) H(entry.row(), entry.col()) += entry.value();
    return H.bottomRightCorner(nv, nv).inverse();
  }

  /// Of a joint that has inertia m alone: a triple pole.
  void hold(Json& part, Json& scenario) const {
    const Eigen::MatrixXd M = mass_matrix();
    Json blocks = Json::array(), inputs = Json::object();
    int velocity = 0;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const std::string& type = types_[i];
      if (type == "fixed") continue;
      const double m = M(velocity, velocity);
      velocity += type == "free" ? 6 : 1;
      if (type == "free") continue;
      const bool turns = type == "revolute";
      const std::string block = "hold_" + names_[i];
      Json own = {
          {"name", block},
          {"kind", "pid"},
          {"setpoint", 0},
          {"measurement", fmt::format("{}.{}_{}", kPart, names_[i], turns ? "angle" : "position")},
          {"proportional", 3 * m * kBandwidth * kBandwidth},
          {"integral", m * kBandwidth * kBandwidth * kBandwidth},
          {"derivative", 3 * m * kBandwidth},
          {"derivative_filter_s", 0.1 / kBandwidth}};
      const std::optional<double> effort = effort_of(names_[i]);
      if (effort && *effort > 0.0) {
        own["minimum"] = -*effort;
        own["maximum"] = *effort;
      }
      blocks.push_back(std::move(own));
      inputs[names_[i] + (turns ? "_torque" : "_force")] = {{"kind", "signal"}, {"signal", block}};
    }
    part["inputs"] = std::move(inputs);
    scenario["signals"] = {{"blocks", std::move(blocks)}};
  }

  std::optional<double> effort_of(const std::string& joint) const {
    const auto found = std::ranges::find(robot_.joints, joint, &UrdfJoint::name);
    return found == robot_.joints.end() ? std::nullopt : found->limit.effort;
  }

  UrdfRobot& robot_;
  const RobotOptions& options_;
  Parameters parameters_;
  std::unique_ptr<Component> component_;
  std::map<std::string, int> number_of_;  ///< of a link: its body, from 1; 0: the world
  Texts places_, names_, types_;
  std::vector<int> parents_;
  Numbers damping_, masses_;
  MatrixRows origins_, turns_, axes_, centres_, inertias_;
};

}  // namespace

std::string robot_scenario(UrdfRobot& robot, const RobotOptions& options) {
  return Writer(robot, options).write();
}

}  // namespace portwave::cli
