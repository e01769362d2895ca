#include "robot/robot_scenario.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
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

#include "robot/indented_json.hpp"
#include "robot/joint_parts.hpp"
#include "robot/robot_cut.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// Of the loops of `hold`, beside the joint's own inertia [rad/s].
constexpr double kBandwidth = 20.0;
/// Of a joint's range: how far from its end it starts.
constexpr double kStartMargin = 0.02;

Numbers row(const std::array<double, 3>& v) { return {v[0], v[1], v[2]}; }

Eigen::Matrix3d rotation_of(const std::array<double, 3>& rpy) {
  return (Eigen::AngleAxisd(rpy[2], Eigen::Vector3d::UnitZ()) *
          Eigen::AngleAxisd(rpy[1], Eigen::Vector3d::UnitY()) *
          Eigen::AngleAxisd(rpy[0], Eigen::Vector3d::UnitX()))
      .toRotationMatrix();
}

/// The moments of a link in its own axes, about its mass centre.
Numbers turned(const RobotLink& link) {
  const auto& [xx, xy, xz, yy, yz, zz] = link.inertia;
  const auto& [roll, pitch, yaw] = link.centre.rpy;
  Eigen::Matrix3d I;
  I << xx, xy, xz, xy, yy, yz, xz, yz, zz;
  const Eigen::Matrix3d R = rotation_of(link.centre.rpy);
  if (roll != 0.0 || pitch != 0.0 || yaw != 0.0) I = (R * I * R.transpose()).eval();
  return {I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2)};
}

/// Joints of the file in the coordinates of the part.
class RobotWriter {
 public:
  RobotWriter(Robot& robot, const RobotOptions& options) : robot_(robot), options_(options) {}

  std::string write() {
    add_bodies();
    add_frames();
    build();
    choose_starts();
    lift_base();
    weigh();
    cut();
    add_joints();
    add_ground();
    tell_limits();
    Json scenario = {{"name", robot_.name},
                     {"description", fmt::format("The robot {}, imported from {}.",
                                                 in_quotes(robot_.name), robot_.format)},
                     {"time", {{"step_s", options_.step_s}, {"end_s", options_.duration_s}}},
                     {"subsystems", pieces()},
                     {"couplings", parts_.couplings()},
                     {"method", {{"kind", "auto"}}}};
    for (const Json& own : parts_.parts()) scenario["subsystems"].push_back(own);
    if (!blocks_.empty()) scenario["signals"] = {{"blocks", blocks_}};
    return text_of(scenario) + "\n";
  }

 private:
  /// A sphere that may touch the ground: its port, its part, and the number of its body.
  struct GroundSphere {
    std::string frame, part;
    int body;
    RobotSphere sphere;
  };

  void add_body(const std::string& name, const std::string& place, const std::string& type,
                const RobotPose& origin, const std::array<double, 3>& axis, double damping,
                const RobotLink& link, int parent) {
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
      const RobotJoint& joint = robot_.joints[i];
      const RobotLink& link = robot_.links[i];
      if (!link.has_inertia && joint.type != "fixed") {
        robot_.notes.push_back(
            fmt::format("link {} has no <inertial>: it has no mass", in_quotes(link.name)));
      }
      const bool is_free = joint.type == "free";  // its state says where it is
      add_body(joint.name, place_of(joint), joint.type, is_free ? RobotPose{} : joint.origin,
               joint.axis, joint.damping, link, number_of_.at(joint.parent));
      if (is_free) start_free(joint);
    }
    const Numbers parents(parents_.begin(), parents_.end());
    parameters_ = {{"joints", types_},     {"names", names_},       {"parents", parents},
                   {"places_m", origins_}, {"turns_rad", turns_},   {"axes", axes_},
                   {"masses_kg", masses_}, {"centres_m", centres_}, {"inertias_kgm2", inertias_},
                   {"damping", damping_}};
    if (robot_.gravity_m_per_s2 != 9.81) parameters_["gravity_m_per_s2"] = robot_.gravity_m_per_s2;
  }

  /// A port at each sphere that may touch the ground.
  void add_frames() {
    if (!options_.ground) return;
    int others = 0;
    for_links([&](const RobotLink& link, int body) {
      others += link.other_shapes;
      const bool moves = body > 0;
      for (std::size_t k = 0; moves && k < link.spheres.size(); ++k) {
        const std::string number = k == 0 ? "" : fmt::format("_{}", k + 1);
        spheres_.push_back({fmt::format("{}_contact{}", link.name, number),
                            fmt::format("{}_ground{}", link.name, number), body, link.spheres[k]});
      }
    });
    if (spheres_.empty()) {
      throw ConfigError("", "--ground: no link that moves has a <sphere> in a <collision>");
    }
    if (others > 0) {
      robot_.notes.push_back(
          fmt::format("{} of <collision> {} no sphere, and does not touch the ground", others,
                      others == 1 ? "is" : "are"));
    }
    Texts frames, joints;
    MatrixRows points;
    for (const GroundSphere& own : spheres_) {
      frames.push_back(own.frame);
      joints.push_back(names_[static_cast<std::size_t>(own.body - 1)]);
      points.push_back(row(own.sphere.centre));
    }
    parameters_["frames"] = frames;
    parameters_["frame_joints"] = joints;
    parameters_["frame_points_m"] = points;
  }

  /// act(link, number of its body).
  template <class Act>
  void for_links(const Act& act) const {
    act(robot_.root, number_of_.at(robot_.root.name));
    for (const RobotLink& link : robot_.links) act(link, number_of_.at(link.name));
  }

  /// Where the bodies lie at the start.
  void find_poses() {
    poses_ = {Eigen::Isometry3d::Identity()};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      poses_.push_back(poses_[static_cast<std::size_t>(parents_[i])] * pose_in_parent(i));
    }
  }

  Eigen::Vector3d centre_of(const GroundSphere& own) const {
    return poses_[static_cast<std::size_t>(own.body)] *
           Eigen::Vector3d(own.sphere.centre[0], own.sphere.centre[1], own.sphere.centre[2]);
  }

  /// A base that --free-base frees is lifted until all spheres are above ground.
  void lift_base() {
    find_poses();
    if (spheres_.empty() || !options_.free_base) return;
    double lowest = std::numeric_limits<double>::infinity();
    for (const GroundSphere& own : spheres_) {
      lowest = std::min(lowest, centre_of(own).z() - own.sphere.radius);
    }
    lift_ = std::round(-1e12 * lowest) / 1e12;
    start_[robot_.root.name + "_z"] = lift_;
  }

  /// The pieces, and what welds them together; without --cut the robot is one.
  void cut() {
    if (options_.cut.empty()) {
      cut_.pieces = {{kRobotPart, parameters_, {}}};
      return;
    }
    std::vector<Eigen::Isometry3d> poses = poses_;
    for (std::size_t i = 1; i < poses.size(); ++i) poses[i].translation().z() += lift_;
    cut_ = cut_robot(kRobotPart, parameters_, options_.cut, poses);
    parts_.set_owners(cut_.owner);
    for (const auto& [inner, outer] : cut_.welds) parts_.add_weld(inner, outer);
  }

  /// Of the joint to which a state or an input belongs, the longest that it can be.
  std::string owner_of(const std::string& name) const {
    std::string joint;
    for (const std::string& own : names_) {
      if (own.size() > joint.size() && name.starts_with(own + "_")) joint = own;
    }
    return parts_.owner_of(joint);
  }

  Json pieces() const {
    Json out = Json::array();
    for (const RobotPiece& piece : cut_.pieces) {
      Json part = {{"name", piece.name},
                   {"type", "articulated"},
                   {"parameters", parameters_json(piece.parameters)}};
      Json start = piece.start, inputs = Json::object();
      for (const auto& [key, value] : start_.items()) {
        if (owner_of(key) == piece.name) start[key] = value;
      }
      for (const auto& [key, value] : inputs_.items()) {
        if (owner_of(key) == piece.name) inputs[key] = value;
      }
      if (!start.empty()) part["initial_state"] = start;
      if (!inputs.empty()) part["inputs"] = inputs;
      out.push_back(std::move(part));
    }
    return out;
  }

  void add_ground() {
    if (spheres_.empty()) return;
    double mass = 0.0;
    for (const double own : masses_) mass += own;
    const auto tidy = [](double x) { return std::round(1e12 * x) / 1e12; };
    for (const GroundSphere& own : spheres_) {
      const Eigen::Vector3d centre = centre_of(own);
      parts_.add_ground(own.part,
                        {.frame = own.frame,
                         .radius = own.sphere.radius,
                         .x = tidy(centre.x()),
                         .y = tidy(centre.y()),
                         .z = tidy(centre.z() + lift_),
                         .mass = mass / static_cast<double>(spheres_.size())},
                        robot_.gravity_m_per_s2, stop_time(options_), options_.step_s);
    }
  }

  Eigen::Isometry3d pose_in_parent(std::size_t i) const {
    Eigen::Isometry3d out = Eigen::Isometry3d::Identity();
    const auto joint = std::ranges::find(robot_.joints, names_[i], &RobotJoint::name);
    if (joint == robot_.joints.end()) return out;  // the free base
    const auto& xyz = joint->origin.xyz;
    out.translate(Eigen::Vector3d(xyz[0], xyz[1], xyz[2]));
    out.rotate(rotation_of(joint->origin.rpy));
    const Eigen::Vector3d axis =
        Eigen::Vector3d(joint->axis[0], joint->axis[1], joint->axis[2]).normalized();
    if (joint->turns()) out.rotate(Eigen::AngleAxisd(joint->start, axis));
    if (joint->type == "prismatic") out.translate(joint->start * axis);
    return out;
  }

  void start_free(const RobotJoint& joint) {
    constexpr const char* kPlaces[] = {"_x", "_y", "_z"};
    for (std::size_t k = 0; k < 3; ++k) {
      if (joint.origin.xyz[k] != 0.0) start_[joint.name + kPlaces[k]] = joint.origin.xyz[k];
    }
    if (joint.origin.rpy == std::array<double, 3>{}) return;
    const Eigen::Quaterniond q(rotation_of(joint.origin.rpy));
    start_[joint.name + "_q_w"] = q.w();
    start_[joint.name + "_q_x"] = q.x();
    start_[joint.name + "_q_y"] = q.y();
    start_[joint.name + "_q_z"] = q.z();
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

  /// The joint that leads a follower in the end, and what it is times the leader's coordinate plus an offset.
  struct Lead {
    RobotJoint& joint;
    double multiplier, offset;
  };
  Lead lead_of(const RobotJoint& follower) const {
    double multiplier = 1.0, offset = 0.0;
    RobotJoint* at = &named(follower.name);
    for (; at->mimic; at = &named(at->mimic->joint)) {
      offset += multiplier * at->mimic->offset;
      multiplier *= at->mimic->multiplier;
    }
    return {*at, multiplier, offset};
  }

  /// What stops a follower stops the joint that leads.
  void gather_ranges() {
    for (const RobotJoint& joint : robot_.joints) {
      if (!joint.mimic || !joint.limit.lower) continue;
      const Lead lead = lead_of(joint);
      double lower = (*joint.limit.lower - lead.offset) / lead.multiplier;
      double upper = (*joint.limit.upper - lead.offset) / lead.multiplier;
      if (lower > upper) std::swap(lower, upper);
      RobotLimit& limit = lead.joint.limit;
      limit.lower = std::max(lower, limit.lower.value_or(lower));
      limit.upper = std::min(upper, limit.upper.value_or(upper));
      if (*limit.lower < *limit.upper) continue;
      throw ConfigError(place_of(joint),
                        fmt::format("its range leaves the joint {}, which it follows, no room",
                                    in_quotes(lead.joint.name)));
    }
  }

  /// Joints start at 0, or near the end of their range that is nearer, or where they follow.
  void choose_starts() {
    if (options_.limits) gather_ranges();
    for (RobotJoint& joint : robot_.joints) {
      if (!options_.limits || !joint.moves_alone() || joint.mimic || !joint.limit.lower) continue;
      const double lower = *joint.limit.lower, upper = *joint.limit.upper;
      if (lower <= 0.0 && upper >= 0.0) continue;
      const double margin =
          kStartMargin * (upper - lower);  // no stop that opens and closes by rounding
      joint.start = lower > 0.0 ? lower + margin : upper - margin;
    }
    for (RobotJoint& joint : robot_.joints) {
      if (joint.mimic) {
        const Lead lead = lead_of(joint);
        joint.start = lead.multiplier * lead.joint.start + lead.offset;
      }
      if (joint.start == 0.0) continue;
      start_[joint.name + (joint.turns() ? "_angle" : "_position")] = joint.start;
      robot_.notes.push_back(
          fmt::format("joint {} starts at {} {}{}", in_quotes(joint.name), joint.start, unit(joint),
                      joint.mimic ? fmt::format(", where {} puts it", in_quotes(joint.mimic->joint))
                                  : ": 0 is out of its range"));
    }
  }

  static std::string place_of(const RobotJoint& joint) {
    return fmt::format("line {}, <{}> {}", joint.line, joint.element, in_quotes(joint.name));
  }

  RobotJoint& named(const std::string& joint) const {
    return *std::ranges::find(robot_.joints, joint, &RobotJoint::name);
  }

  bool has_motor(const RobotJoint& joint) const {
    return options_.motors && joint.moves_alone() && !joint.mimic &&
           (joint.has_motor ||
            std::ranges::none_of(robot_.joints, [](const RobotJoint& j) { return j.has_motor; }));
  }

  /// The mass matrix at the start, in the velocities that are free where joints follow others; and of these
  /// coordinates what each joint has.
  void weigh() {
    const Subsystem& part = *component_->port_hamiltonian();
    const Signature& signature = part.signature();
    const Eigen::Index n = signature.state_size(), nv = signature.input_size();
    Numbers x = part.default_state();
    for (std::size_t k = 0; k < signature.states.size(); ++k) {
      const auto given = start_.find(signature.states[k].name);
      if (given != start_.end()) x[k] = given->get<double>();
    }
    std::vector<Eigen::Triplet<double>> entries;
    part.hessian(x.data(), entries);
    Eigen::MatrixXd H = Eigen::MatrixXd::Zero(n, n);
    for (const auto& entry : entries) H(entry.row(), entry.col()) += entry.value();
    Eigen::MatrixXd M = H.bottomRightCorner(nv, nv).inverse();
    int velocity = 0;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (types_[i] == "fixed") continue;
      velocity_of_[names_[i]] = velocity;
      velocity += types_[i] == "free" ? 6 : types_[i] == "spherical" ? 3 : 1;
    }
    // Of followers nothing is left but their share in those that lead.
    Eigen::MatrixXd T = Eigen::MatrixXd::Identity(nv, nv);
    for (const RobotJoint& joint : robot_.joints) {
      if (!joint.mimic) continue;
      const int row = velocity_of_.at(joint.name);
      T(row, row) = 0.0;
      const Lead lead = lead_of(joint);
      T(row, velocity_of_.at(lead.joint.name)) = lead.multiplier;
    }
    const Eigen::MatrixXd reduced = T.transpose() * M * T;
    for (const RobotJoint& joint : robot_.joints) {
      if (!joint.moves_alone()) continue;
      JointFigures& own = figures_[joint.name];
      const int row = velocity_of_.at(joint.name);
      own.start = joint.start;
      own.held_inertia = joint.mimic ? M(row, row) : reduced(row, row);
      own.weight = robot_.gravity_m_per_s2 * std::sqrt(mass_on(joint) * own.held_inertia);
      if (has_motor(joint)) drives_[joint.name] = joint_drive(joint, own, robot_.notes);
      const auto drive = drives_.find(joint.name);
      const double rotor = drive == drives_.end() ? joint.rotor : drive->second.rotor_at_joint();
      M(row, row) += rotor;
      own.held_inertia += rotor;
    }
    Eigen::MatrixXd loaded = T.transpose() * M * T;
    for (Eigen::Index k = 0; k < nv; ++k) {
      if (T.col(k).isZero()) loaded(k, k) = 1.0;
    }
    const Eigen::MatrixXd mobility = T * loaded.inverse() * T.transpose();
    for (auto& [name, own] : figures_) {
      const int row = velocity_of_.at(name);
      own.free_inertia = 1.0 / mobility(row, row);
    }
  }

  double mass_on(const RobotJoint& joint) const {
    Numbers mass = masses_;
    for (std::size_t i = mass.size(); i-- > 0;) {
      if (names_[i] == joint.name) return mass[i];
      if (parents_[i] > 0) mass[static_cast<std::size_t>(parents_[i] - 1)] += mass[i];
    }
    return 0.0;
  }

  void add_joints() {
    for (const Port& port : component_->signature().ports) {
      if (std::ranges::find(spheres_, port.name, &GroundSphere::frame) != spheres_.end()) continue;
      const auto joint = std::ranges::find(robot_.joints, port.name, &RobotJoint::name);
      if (joint == robot_.joints.end() || !joint->mimic) parts_.add_robot_port(port.name);
    }
    for (const RobotJoint& joint : robot_.joints) {
      if (!joint.moves_alone()) continue;
      const JointFigures& own = figures_.at(joint.name);
      if (joint.mimic) {
        add_follower(joint);
        continue;
      }
      if (options_.limits && joint.limit.lower) parts_.add_stops(joint, own, stop_time(options_));
      if (joint.friction > 0.0) parts_.add_friction(joint, own, options_.step_s);
      if (joint.stiffness > 0.0) parts_.add_spring(joint, own);
      const auto drive = drives_.find(joint.name);
      const bool has_drive = drive != drives_.end();
      if (!has_drive && joint.rotor > 0.0) parts_.add_rotor(joint);
      const std::string controller = add_controller(joint, has_drive ? &drive->second : nullptr);
      if (has_drive) {
        parts_.add_motor(joint, own, drive->second, controller);
      } else if (!controller.empty()) {
        inputs_[joint.name + (joint.turns() ? "_torque" : "_force")] = {{"kind", "signal"},
                                                                        {"signal", controller}};
      }
    }
  }

  void add_follower(const RobotJoint& joint) {
    const Lead lead = lead_of(joint);
    parts_.add_mimic(joint, lead.joint, lead.multiplier);
    if (joint.friction > 0.0) {
      parts_.add_followers_friction(joint, lead.joint, lead.multiplier,
                                    figures_.at(lead.joint.name), options_.step_s);
    }
  }

  /// Gains of efforts at the joint.
  struct Gains {
    double proportional = 0.0, integral = 0.0, derivative = 0.0, filter_s = 0.0;
  };

  /// Its name; empty if the joint has none.
  std::string add_controller(const RobotJoint& joint, const JointDrive* drive) {
    if ((options_.hold && options_.motors && drive == nullptr)) return "";
    Gains gains;
    std::string name;
    if (options_.hold) {
      gains =
          holding(figures_.at(joint.name).held_inertia, drive == nullptr ? 0.0 : drive->damping());
      name = "hold_" + joint.name;
    } else if (joint.servo) {
      gains = {.proportional = joint.servo->proportional, .derivative = joint.servo->derivative};
      name = joint.servo->name;
    } else {
      return "";
    }
    const double scale = drive == nullptr ? 1.0 : 1.0 / drive->effort_per_volt();
    Json own = {{"name", name},
                {"kind", "pid"},
                {"setpoint", joint.start},
                {"measurement", fmt::format("{}.{}_{}", parts_.owner_of(joint.name), joint.name,
                                            joint.turns() ? "angle" : "position")},
                {"proportional", scale * gains.proportional}};
    if (!options_.hold) own["setpoint"] = joint.servo->target;
    if (gains.integral != 0.0) own["integral"] = scale * gains.integral;
    if (gains.derivative != 0.0) own["derivative"] = scale * gains.derivative;
    if (gains.filter_s != 0.0) own["derivative_filter_s"] = gains.filter_s;
    const auto most = drive == nullptr ? joint.limit.effort : std::optional(drive->volts);
    if (most) {
      own["minimum"] = -*most;
      own["maximum"] = *most;
    }
    blocks_.push_back(std::move(own));
    return name;
  }

  /// A triple pole of a joint that has inertia alone. A motor dampens: where it does so more than the poles ask
  /// for, they are those of a joint with more inertia.
  static Gains holding(double inertia, double damping) {
    const double m = std::max(inertia, damping / (3.0 * kBandwidth));
    const double derivative = 3.0 * m * kBandwidth - damping;
    Gains out = {.proportional = 3.0 * m * kBandwidth * kBandwidth,
                 .integral = m * kBandwidth * kBandwidth * kBandwidth};
    if (derivative > 1e-9 * m * kBandwidth) {
      out.derivative = derivative;
      out.filter_s = 0.1 / kBandwidth;
    }
    return out;
  }

  static const char* unit(const RobotJoint& joint) { return joint.turns() ? "rad" : "m"; }

  void tell_limits() {
    for (const RobotJoint& joint : robot_.joints) {
      if (!joint.moves_alone()) continue;
      const RobotLimit& limit = joint.limit;
      Texts missing;
      if (limit.lower && !options_.limits) {
        missing.push_back(fmt::format("{} to {} {}", *limit.lower, *limit.upper, unit(joint)));
      }
      if (!drives_.contains(joint.name)) {
        if (limit.velocity)
          missing.push_back(fmt::format("speed {} {}/s", *limit.velocity, unit(joint)));
        const bool is_kept = joint.servo || options_.hold;
        if (limit.effort && !joint.mimic && !is_kept)
          missing.push_back(
              fmt::format("effort {} {}", *limit.effort, joint.turns() ? "N m" : "N"));
        if (options_.motors && !joint.mimic) {
          robot_.notes.push_back(fmt::format(
              "joint {} has no motor: the file gives motors to others", in_quotes(joint.name)));
        }
      }
      if (missing.empty()) continue;
      robot_.notes.push_back(fmt::format("joint {}: limits are not simulated: {}",
                                         in_quotes(joint.name), fmt::join(missing, ", ")));
    }
  }

  Robot& robot_;
  const RobotOptions& options_;
  Parameters parameters_;
  std::unique_ptr<Component> component_;
  std::map<std::string, int> number_of_;  ///< of a link: its body, from 1; 0: the world
  Texts places_, names_, types_;
  std::vector<int> parents_;
  Numbers damping_, masses_;
  MatrixRows origins_, turns_, axes_, centres_, inertias_;
  Json start_ = Json::object(), inputs_ = Json::object(), blocks_ = Json::array();
  std::vector<GroundSphere> spheres_;
  std::vector<Eigen::Isometry3d> poses_;  ///< of the world, then by body, before the base is lifted
  double lift_ = 0.0;
  RobotCut cut_;
  std::map<std::string, int> velocity_of_;
  std::map<std::string, JointFigures> figures_;
  std::map<std::string, JointDrive> drives_;
  JointParts parts_;
};

}  // namespace

double stop_time(const RobotOptions& options) {
  return options.stop_time_s > 0.0 ? options.stop_time_s : std::max(20.0 * options.step_s, 0.01);
}

std::string robot_scenario(Robot& robot, const RobotOptions& options) {
  return RobotWriter(robot, options).write();
}

}  // namespace portwave::cli
