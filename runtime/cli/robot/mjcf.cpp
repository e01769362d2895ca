#include "robot/mjcf.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/core/component.hpp>

#ifdef PORTWAVE_URDF
#include "robot/mjcf_attributes.hpp"
#include "robot/mjcf_shapes.hpp"
#endif

namespace portwave::cli {

#ifdef PORTWAVE_URDF
namespace {

using Words = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view word, Words words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr const char* kWorld = "world";

class MjcfReader : MjcfAttributes {
 public:
  Robot read(const std::string& text) {
    tinyxml2::XMLDocument document;
    const Element& model = outermost(document, text);
    out_.format = "MJCF";
    out_.root.name = kWorld;
    const char* const name = model.Attribute("model");
    out_.name = name == nullptr ? "robot" : name;
    each(model, {"compiler"}, [&](const Element& one) { read_compiler(one); });
    each(model, {"default"}, [&](const Element& one) { read_defaults(one, "main"); });
    each(model, {"option"}, [&](const Element& one) { read_option(one); });
    each(model, {"worldbody"}, [&](const Element& one) { take_names(one); });
    each(model, {"worldbody"}, [&](const Element& one) { read_world(one); });
    each(model, {"actuator"}, [&](const Element& one) { read_actuators(one); });
    for (const Element* one = model.FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      const std::string_view kind = one->Name();
      if (is_one_of(kind, {"compiler", "default", "option", "worldbody", "actuator", "asset",
                           "visual", "statistic", "size", "custom"}))
        continue;
      if (is_one_of(kind, {"contact", "sensor", "keyframe"})) {
        note(fmt::format("line {}: <{}> is left out", one->GetLineNum(), kind));
      } else {
        fail(*one, "is not read, and may change the motion: take it out, or write it out");
      }
    }
    if (contacts_ > 0) {
      note(fmt::format("contacts of {} geoms are left out: bodies pass through each other",
                       contacts_));
    }
    if (out_.joints.empty() && issues_.empty()) fail(model, "has no <body> in its <worldbody>");
    throw_if_any(std::move(issues_));
    out_.notes = std::move(notes_);
    return std::move(out_);
  }

 private:
  template <class Do>
  static void each(const Element& parent, Words kinds, Do take) {
    for (const Element* one = parent.FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      if (is_one_of(one->Name(), kinds)) take(*one);
    }
  }

  void read_option(const Element& one) {
    for (const char* const name : {"density", "viscosity"}) {
      if (number(one, name).value_or(0.0) != 0.0)
        fail(one, fmt::format("{} of a medium is not read: take it out", name));
    }
    if (const auto g = numbers(one, "gravity", 3)) {
      if ((*g)[0] != 0.0 || (*g)[1] != 0.0 || (*g)[2] > 0.0) {
        fail(one,
             fmt::format("gravity must be along -z, got {}", in_quotes(one.Attribute("gravity"))));
      }
      out_.gravity_m_per_s2 = std::abs((*g)[2]);
    }
    if (one.Attribute("timestep") != nullptr)
      note(fmt::format("line {}: timestep is left out: --step sets it", one.GetLineNum()));
    each(one, {"flag"}, [&](const Element& flag) {
      for (const auto* a = flag.FirstAttribute(); a != nullptr; a = a->Next()) {
        if (std::string_view(a->Value()) != "disable") continue;
        const std::string_view name = a->Name();
        if (name == "gravity") out_.gravity_m_per_s2 = 0.0;
        has_limits_ &= name != "constraint" && name != "limit";
        has_friction_ &= name != "constraint" && name != "frictionloss";
        if (is_one_of(name, {"spring", "damper", "passive", "actuation"})) {
          fail(flag, fmt::format("{} cannot be disabled: take its numbers out", name));
        }
      }
    });
  }

  /// Those that have no name get others.
  void take_names(const Element& parent) {
    for (const Element* one = parent.FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      if (std::string_view(one->Name()) == "body") take_names(*one);
      if (!is_one_of(one->Name(), {"joint", "freejoint"})) continue;
      const char* const name = one->Attribute("name");
      if (name != nullptr && !taken_.insert(name).second) fail(*one, "the name is taken");
    }
  }

  void read_world(const Element& one) {
    for (const Element* own = one.FirstChildElement(); own != nullptr;
         own = own->NextSiblingElement()) {
      if (std::string_view(own->Name()) == "body") {
        read_body(*own, kWorld, Eigen::Vector3d::Zero(), true);
      } else if (!is_without_motion(own->Name())) {
        refuse(*own);
      }
    }
  }

  static bool is_without_motion(std::string_view kind) {
    return is_one_of(kind, {"geom", "site", "camera", "light"});
  }
  void refuse(const Element& one) {
    fail(one, "is not read, and may change the motion: write out the bodies that it makes");
  }

  std::string unique(const std::string& wanted) {
    std::string out = wanted;
    for (int k = 2; !taken_.insert(out).second; ++k) out = fmt::format("{}_{}", wanted, k);
    return out;
  }

  std::string name_of(const Element& one, const std::string& filler) {
    const char* const given = one.Attribute("name");
    if (given == nullptr) return unique(filler);
    if (!is_plain_name(given)) {
      fail(one, "a name must not have dots, brackets, blanks, commas or quotes here: rename it");
    }
    return given;
  }

  /// `anchor`: where the axes of `parent` lie in the parent body's.
  void read_body(const Element& one, const std::string& parent, const Eigen::Vector3d& anchor,
                 bool is_top) {
    const std::string inherited = childclass_;
    if (const char* const own = one.Attribute("childclass")) childclass_ = own;
    const char* const given = one.Attribute("name");
    const std::string name = given != nullptr ? given : fmt::format("body_{}", ++bodies_);
    if (const char* const mocap = one.Attribute("mocap");
        mocap != nullptr && std::string_view(mocap) == "true")
      fail(one, "is moved by motion capture, which is not read");
    if (number(one, "gravcomp").value_or(0.0) != 0.0)
      fail(one, "gravcomp is not read: take it out");
    const Eigen::Vector3d at = vector(one, "pos", Eigen::Vector3d::Zero()) - anchor;
    const Eigen::Matrix3d R = turn(one);
    std::vector<const Element*> joints;
    each(one, {"joint", "freejoint"}, [&](const Element& joint) { joints.push_back(&joint); });
    Eigen::Vector3d last = Eigen::Vector3d::Zero();
    std::string link = parent;
    for (std::size_t k = 0; k < joints.size(); ++k) {
      RobotJoint joint = read_joint(*joints[k], name, is_top && joints.size() == 1);
      const Eigen::Vector3d own = joint.type == "free"
                                      ? Eigen::Vector3d::Zero()
                                      : vector(*joints[k], "pos", Eigen::Vector3d::Zero());
      joint.parent = link;
      joint.origin = k == 0 ? pose(at + R * own, R) : pose(own - last, Eigen::Matrix3d::Identity());
      last = own;
      link = k + 1 == joints.size() ? name : fmt::format("{}/{}", name, k + 1);
      joint.child = link;
      add(std::move(joint));
    }
    if (joints.empty()) {
      RobotJoint weld;
      weld.name = unique(name);
      weld.line = one.GetLineNum();
      weld.element = "body";
      weld.type = "fixed";
      weld.parent = parent;
      weld.child = link = name;
      weld.origin = pose(at, R);
      add(std::move(weld));
    }
    set_inertia(one, last, out_.links.back());
    for (const Element* own = one.FirstChildElement(); own != nullptr;
         own = own->NextSiblingElement()) {
      const std::string_view kind = own->Name();
      if (kind == "body") {
        read_body(*own, link, last, false);
      } else if (!is_without_motion(kind) && !is_one_of(kind, {"joint", "freejoint", "inertial"})) {
        refuse(*own);
      }
    }
    childclass_ = inherited;
  }

  static RobotPose pose(const Eigen::Vector3d& at, const Eigen::Matrix3d& R) {
    return {{at.x(), at.y(), at.z()}, roll_pitch_yaw_of(R)};
  }

  void add(RobotJoint joint) {
    RobotLink link;
    link.name = joint.child;
    link.line = joint.line;
    link.has_inertia = true;
    if (!links_.insert(link.name).second) {
      issues_.push_back({place_of(joint.line, "body", link.name), "the name is taken"});
    }
    out_.joints.push_back(std::move(joint));
    out_.links.push_back(std::move(link));
  }

  RobotJoint read_joint(const Element& one, const std::string& body, bool may_be_free) {
    RobotJoint out;
    out.line = one.GetLineNum();
    out.name = name_of(one, body + "_joint");
    const bool is_bare = std::string_view(one.Name()) == "freejoint";
    const std::string type = is_bare ? "free" : text(one, "type").value_or("hinge");
    out.damping = is_bare ? 0.0 : real_from_0(one, "damping");
    out.friction = is_bare ? 0.0 : real_from_0(one, "frictionloss");
    out.stiffness = is_bare ? 0.0 : real_from_0(one, "stiffness");
    out.rotor = is_bare ? 0.0 : real_from_0(one, "armature");
    if (!is_bare && text(one, "springdamper").value_or("0 0") != "0 0")
      fail(one, "springdamper is not read: write stiffness and damping");
    if (type == "free" || type == "ball") {
      out.type = type == "free" ? "free" : "spherical";
      read_bare(one, type, out);
      if (type == "free" && !may_be_free)
        fail(one, "is free, which only a body of the world can be, with no other joint");
      return out;
    }
    if (type != "hinge" && type != "slide")
      fail(one, fmt::format("{} is no type of joint: hinge, slide, ball or free", in_quotes(type)));
    out.type = type == "slide" ? "prismatic" : "revolute";
    const Eigen::Vector3d axis = vector(one, "axis", Eigen::Vector3d::UnitZ());
    if (axis.norm() == 0.0) fail(one, "axis must not be 0 0 0");
    out.axis = {axis.x(), axis.y(), axis.z()};
    const auto own_unit = [&](double x) { return out.turns() ? in_radians(x) : x; };
    const double reference = own_unit(real_of(one, "ref").value_or(0.0));
    if (reference != 0.0) {
      note(fmt::format("joint {}: its coordinate counts from ref = {}", in_quotes(out.name),
                       reference));
    }
    references_[out.name] = reference;
    out.spring_rest = own_unit(real_of(one, "springref").value_or(0.0)) - reference;
    if (!has_friction_) out.friction = 0.0;
    if (const auto range = reals(one, "range", 2); range && has_limits_ && is_limited(one)) {
      out.limit.lower = own_unit((*range)[0]) - reference;
      out.limit.upper = own_unit((*range)[1]) - reference;
      if (!(*out.limit.lower < *out.limit.upper))
        fail(one, fmt::format("range must grow, got {}", in_quotes(*text(one, "range"))));
    }
    take_effort(one, "actuatorfrcrange", 1.0, out);
    return out;
  }

  /// Joints that have no port for a single torque.
  void read_bare(const Element& one, const std::string& type, RobotJoint& out) {
    const auto refuse_number = [&](const char* name, double value) {
      if (value != 0.0)
        fail(one, fmt::format("{} of a {} joint is not read: take it out", name, type));
    };
    if (type == "free") refuse_number("damping", out.damping);
    refuse_number("frictionloss", out.friction);
    refuse_number("stiffness", out.stiffness);
    refuse_number("armature", out.rotor);
    if (type == "ball" && text(one, "range") && is_limited(one))
      fail(one, "range of a ball joint is not read: take it out");
  }

  bool is_limited(const Element& one, const char* attribute = "limited") {
    const std::string limited = text(one, attribute).value_or("auto");
    return limited == "true" || (limited == "auto" && auto_limits_);
  }

  void take_effort(const Element& one, const char* name, double scale, RobotJoint& joint) {
    const auto range = reals(one, name, 2);
    if (!range) return;
    if (!((*range)[0] <= (*range)[1])) {
      fail(one, fmt::format("{} must not fall, got {}", name, in_quotes(*text(one, name))));
      return;
    }
    const double most = scale * std::max(std::abs((*range)[0]), std::abs((*range)[1]));
    if (most > 0.0) joint.limit.effort = std::min(most, joint.limit.effort.value_or(most));
  }

  void set_inertia(const Element& one, const Eigen::Vector3d& anchor, RobotLink& link) {
    const Element* const given = one.FirstChildElement("inertial");
    MassSum sum;
    const bool by_geoms =
        inertia_from_geoms_ == "true" || (inertia_from_geoms_ == "auto" && given == nullptr);
    if (given != nullptr && !by_geoms) read_inertial(*given, sum);
    each(one, {"geom"}, [&](const Element& geom) { read_geom(geom, by_geoms, sum); });
    const Eigen::Vector3d c = sum.centre();
    const Eigen::Matrix3d I = sum.moments();
    link.mass_kg = sum.mass();
    link.centre.xyz = {c.x() - anchor.x(), c.y() - anchor.y(), c.z() - anchor.z()};
    link.inertia = {I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2)};
  }

  void read_inertial(const Element& one, MassSum& sum) {
    const double mass = required_number(one, "mass");
    if (mass < 0.0) fail(one, fmt::format("mass must be >= 0, got {}", mass));
    Eigen::Matrix3d I = Eigen::Matrix3d::Zero();
    if (const auto full = numbers(one, "fullinertia", 6)) {
      const std::vector<double>& v = *full;  // xx yy zz xy xz yz
      I << v[0], v[3], v[4], v[3], v[1], v[5], v[4], v[5], v[2];
    } else if (const auto d = numbers(one, "diaginertia", 3)) {
      I.diagonal() << (*d)[0], (*d)[1], (*d)[2];
    } else if (mass > 0.0) {
      fail(one, "has neither diaginertia nor fullinertia");
    }
    const Eigen::Matrix3d R = turn(one);
    sum.add(mass, vector(one, "pos", Eigen::Vector3d::Zero()), R * I * R.transpose());
  }

  void read_geom(const Element& one, bool has_mass, MassSum& sum) {
    const auto whole = [&](const char* name, double filler) {
      return real_of(one, name).value_or(filler);
    };
    if (whole("contype", 1.0) != 0.0 || whole("conaffinity", 1.0) != 0.0) ++contacts_;
    if (!has_mass) return;
    const double group = whole("group", 0.0);
    if (group < inertia_groups_[0] || group > inertia_groups_[1]) return;
    const std::string kind = text(one, "type").value_or("sphere");
    if (kind == "plane" || kind == "hfield") return;
    const auto given = real_of(one, "mass");
    const double density = real_of(one, "density").value_or(1000.0);
    if (given ? *given == 0.0 : density == 0.0) return;
    if (given.value_or(0.0) < 0.0 || density < 0.0) fail(one, "mass and density must be >= 0");
    const auto count = static_cast<std::size_t>(size_count(kind));
    if (count == 0) {
      fail(one, fmt::format("has the shape {}, whose mass is not found here: give its body "
                            "<inertial>, or the geom mass=\"0\"",
                            in_quotes(kind)));
      return;
    }
    if (text(one, "shellinertia").value_or("false") == "true") {
      fail(one, "shellinertia is not read: give its body <inertial>");
    }
    MjcfShape shape{.kind = kind};
    Eigen::Vector3d at = vector(one, "pos", Eigen::Vector3d::Zero());
    Eigen::Matrix3d R = Eigen::Matrix3d::Identity();
    std::vector<double> size;
    if (const auto size_text = text(one, "size"))
      size = numbers_in(one, "size", *size_text).value_or(std::vector<double>(3, 1.0));
    const auto ends = reals(one, "fromto", 6);
    if (ends && kind != "sphere") {
      const Eigen::Vector3d from((*ends)[0], (*ends)[1], (*ends)[2]),
          to((*ends)[3], (*ends)[4], (*ends)[5]);
      at = 0.5 * (from + to);
      R = Eigen::Quaterniond::FromTwoVectors(Eigen::Vector3d::UnitZ(), to - from)
              .toRotationMatrix();
      const double half = 0.5 * (to - from).norm();
      size.resize(1, 0.0);
      size = count == 2 ? std::vector<double>{size[0], half}
                        : std::vector<double>{size[0], size[0], half};
    } else {
      R = turn(one);
    }
    if (size.size() < count ||
        std::any_of(size.begin(), size.begin() + static_cast<std::ptrdiff_t>(count),
                    [](double x) { return !(x > 0.0); })) {
      fail(one,
           fmt::format("size of a {} must be {} number{} > 0", kind, count, count == 1 ? "" : "s"));
      return;
    }
    std::copy_n(size.begin(), count, shape.size.begin());
    const double mass = given ? *given : density * volume(shape);
    const Eigen::Matrix3d own = (mass * moments_of_unit_mass(shape)).asDiagonal();
    sum.add(mass, at, R * own * R.transpose());
  }

  void read_actuators(const Element& parent) {
    for (const Element* one = parent.FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      const std::string_view kind = one->Name();
      const bool is_servo = kind == "position" || kind == "velocity";
      const bool is_idle = is_one_of(kind, {"motor", "damper", "adhesion"}) ||
                           (kind == "general" && text(*one, "biastype").value_or("none") == "none");
      const auto name = text(*one, "joint");
      if (!is_servo && !is_idle) {
        fail(*one, "is not read: motor, position and velocity are");
      } else if (!name) {
        if (is_servo) {
          fail(*one, "drives no joint, which is not read");
        } else {
          note(fmt::format("{} is left out: it drives no joint", place_of(*one)));
        }
      } else {
        drive(*one, kind, *name);
      }
    }
  }

  void drive(const Element& one, std::string_view kind, const std::string& name) {
    const auto found = std::ranges::find(out_.joints, name, &RobotJoint::name);
    if (found == out_.joints.end()) {
      std::vector<std::string> names;
      for (const RobotJoint& joint : out_.joints) names.push_back(joint.name);
      fail(one, fmt::format("there is no joint {}.{}", in_quotes(name), did_you_mean(name, names)));
      return;
    }
    const bool is_servo = kind == "position" || kind == "velocity";
    if (!found->moves_alone()) {
      if (is_servo)
        fail(one, "drives a joint that neither turns nor slides, which is not read");
      else
        note(fmt::format("{} is left out: its joint neither turns nor slides", place_of(one)));
      return;
    }
    double gear = 1.0;
    if (const auto given = text(one, "gear")) {
      const auto all = numbers_in(one, "gear", *given);
      if (all && !all->empty()) gear = all->front();
      if (gear == 0.0) {
        fail(one, "gear must not begin with 0: nothing of the actuator would reach its joint");
        return;
      }
    }
    found->has_motor = true;
    take_effort(one, "forcerange", std::abs(gear), *found);
    if (kind == "motor") take_effort(one, "ctrlrange", std::abs(gear), *found);
    if (!is_servo) return;
    if (found->servo) {
      fail(one, fmt::format("is the second servo at the joint {}: one is read", in_quotes(name)));
      return;
    }
    for (const char* const other : {"dampratio", "timeconst"}) {
      if (real_of(one, other).value_or(0.0) != 0.0)
        fail(one, fmt::format("{} is not read: give kp and kv", other));
    }
    for (const char* const gain : {"kp", "kv"}) {
      if (const auto given = real_of(one, gain); given && *given < 0.0) {
        fail(one, fmt::format("{} must be >= 0, got {}: the servo would push away from its target",
                              gain, *given));
      }
    }
    const bool is_position = kind == "position";
    RobotServo servo;
    servo.name = name + "_servo";
    servo.proportional = is_position ? real_of(one, "kp").value_or(1.0) * gear * gear : 0.0;
    servo.derivative = real_of(one, "kv").value_or(is_position ? 0.0 : 1.0) * gear * gear;
    const double control = nearest_control(one, is_position, *found);
    if (is_position) servo.target = control / gear - references_[name];
    if (!is_position && control != 0.0) {
      fail(one, "ctrlrange must not exclude 0: a speed to keep is not read");
    }
    note(fmt::format("{} is a sampled controller whose target is {}", place_of(one),
                     is_position ? servo.target : 0.0));
    found->servo = std::move(servo);
  }

  /// That which is allowed and nearest to 0, of a servo; in its own coordinate, with `ref` and gear.
  double nearest_control(const Element& one, bool is_position, const RobotJoint& joint) {
    std::optional<std::pair<double, double>> allowed;
    if (const auto range = reals(one, "ctrlrange", 2); range && is_limited(one, "ctrllimited")) {
      if (!((*range)[0] < (*range)[1])) {
        fail(one, fmt::format("ctrlrange must grow, got {}", in_quotes(*text(one, "ctrlrange"))));
        return 0.0;
      }
      allowed = {(*range)[0], (*range)[1]};
    } else if (const double share = real_of(one, "inheritrange").value_or(0.0);
               is_position && share > 0.0 && joint.limit.lower) {
      const double middle = 0.5 * (*joint.limit.lower + *joint.limit.upper),
                   reach = 0.5 * share * (*joint.limit.upper - *joint.limit.lower),
                   reference = references_[joint.name];
      allowed = {reference + middle - reach, reference + middle + reach};
    }
    return allowed ? std::clamp(0.0, allowed->first, allowed->second) : 0.0;
  }

  Robot out_;
  std::set<std::string> taken_, links_ = {kWorld};
  std::map<std::string, double> references_;  ///< `ref` by joint, in rad or m
  int bodies_ = 0, contacts_ = 0;
  bool has_limits_ = true, has_friction_ = true;  ///< not disabled
};

}  // namespace

Robot read_mjcf(const std::string& text) { return MjcfReader().read(text); }

#else

Robot read_mjcf(const std::string& /*text*/) {
  throw std::runtime_error(
      "portwave was built without tinyxml2, which reads MJCF: install libtinyxml2-dev "
      "(./dev deps does) and build it again");
}

#endif

}  // namespace portwave::cli
