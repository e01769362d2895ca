#include "robot/urdf.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/core/component.hpp>

#ifdef PORTWAVE_URDF
#include "robot/xml_reader.hpp"
#endif

namespace portwave::cli {

#ifdef PORTWAVE_URDF
namespace {

class UrdfReader : XmlReader {
 public:
  Robot read(const std::string& text) {
    tinyxml2::XMLDocument document;
    const Element* const robot = &outermost(document, text);
    if (std::string_view(robot->Name()) != "robot") {
      fail(*robot, "a URDF file has <robot> as its outermost element, and an MJCF file <mujoco>");
      throw_if_any(std::move(issues_));
    }
    out_.format = "URDF";
    out_.name = attribute(*robot, "name").value_or("robot");
    std::vector<RobotLink> links;
    std::vector<RobotJoint> joints;
    std::vector<const Element*> transmissions;
    for (const Element* one = robot->FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      const std::string_view kind = one->Name();
      if (kind == "link") {
        links.push_back(read_link(*one));
      } else if (kind == "joint") {
        joints.push_back(read_joint(*one));
      } else if (kind == "transmission") {
        transmissions.push_back(one);
      } else if (kind.starts_with("xacro:")) {
        fail(*one, "is of xacro, which makes URDF: run xacro on the file first");
      } else if (kind != "material" && kind != "gazebo") {
        note(fmt::format("line {}: <{}> is left out", one->GetLineNum(), kind));
      }
    }
    check_names(links, "link");
    check_names(joints, "joint");
    for (const Element* const one : transmissions) read_transmission(*one, joints);
    check_mimics(joints);
    throw_if_any(std::move(issues_));
    order(std::move(links), std::move(joints));
    throw_if_any(std::move(issues_));
    out_.notes = std::move(notes_);
    return std::move(out_);
  }

 private:
  static std::optional<std::string> attribute(const Element& one, const char* name) {
    const char* const found = one.Attribute(name);
    if (found == nullptr) return std::nullopt;
    return std::string(found);
  }

  RobotPose pose(const Element& parent) {
    RobotPose out;
    const Element* const origin = parent.FirstChildElement("origin");
    if (origin == nullptr) return out;
    if (const auto xyz = numbers(*origin, "xyz", 3)) std::copy_n(xyz->begin(), 3, out.xyz.begin());
    if (const auto rpy = numbers(*origin, "rpy", 3)) std::copy_n(rpy->begin(), 3, out.rpy.begin());
    return out;
  }

  std::string name_of(const Element& one) {
    const auto name = attribute(one, "name");
    if (!name) {
      fail(one, "has no name");
    } else if (!is_plain_name(*name)) {
      fail(one,
           "a name must not have dots, brackets, blanks, commas or quotes here: "
           "rename it");
    }
    return name.value_or("");
  }

  RobotLink read_link(const Element& one) {
    RobotLink out;
    out.name = name_of(one);
    out.line = one.GetLineNum();
    read_surface(one, out);
    const Element* const inertial = one.FirstChildElement("inertial");
    if (inertial == nullptr) return out;
    out.has_inertia = true;
    out.centre = pose(*inertial);
    if (const Element* const mass = inertial->FirstChildElement("mass")) {
      out.mass_kg = required_number(*mass, "value");
      if (out.mass_kg < 0.0) fail(*mass, fmt::format("must be >= 0 kg, got {}", out.mass_kg));
    } else {
      fail(one, "its <inertial> has no <mass>");
    }
    if (const Element* const inertia = inertial->FirstChildElement("inertia")) {
      constexpr const char* kNames[] = {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"};
      for (std::size_t k = 0; k < 6; ++k) {
        const bool is_mixed = k == 1 || k == 2 || k == 4;
        out.inertia[k] = is_mixed ? number(*inertia, kNames[k]).value_or(0.0)
                                  : required_number(*inertia, kNames[k]);
      }
    } else {
      fail(one, "its <inertial> has no <inertia>");
    }
    return out;
  }

  void read_surface(const Element& one, RobotLink& out) {
    for (const Element* own = one.FirstChildElement("collision"); own != nullptr;
         own = own->NextSiblingElement("collision")) {
      const Element* const geometry = own->FirstChildElement("geometry");
      const Element* const sphere =
          geometry == nullptr ? nullptr : geometry->FirstChildElement("sphere");
      if (sphere == nullptr) {
        ++out.other_shapes;
        continue;
      }
      const double radius = required_number(*sphere, "radius");
      if (radius < 0.0) fail(*sphere, fmt::format("radius must be >= 0 m, got {}", radius));
      out.spheres.push_back({pose(*own).xyz, radius});
    }
  }

  RobotJoint read_joint(const Element& one) {
    RobotJoint out;
    out.name = name_of(one);
    out.line = one.GetLineNum();
    out.type = read_type(one);
    out.origin = pose(one);
    out.parent = end_of(one, "parent");
    out.child = end_of(one, "child");
    if (const Element* const axis = one.FirstChildElement("axis")) {
      if (const auto xyz = numbers(*axis, "xyz", 3)) std::copy_n(xyz->begin(), 3, out.axis.begin());
      const bool turns = out.type == "revolute" || out.type == "prismatic";
      if (turns && out.axis == std::array<double, 3>{}) fail(*axis, "must not be 0 0 0");
    }
    const Element* const dynamics = one.FirstChildElement("dynamics");
    if (dynamics != nullptr && out.type != "fixed") {
      out.damping = number_from_0(*dynamics, "damping");
      out.friction = number_from_0(*dynamics, "friction");
    }
    if (const Element* const mimic = one.FirstChildElement("mimic")) out.mimic = read_mimic(*mimic);
    read_limit(one, out);
    return out;
  }

  std::string read_type(const Element& one) {
    const auto type = attribute(one, "type");
    if (!type) {
      fail(one, "has no type");
      return "fixed";
    }
    if (*type == "continuous") return "revolute";
    if (*type == "floating") return "free";
    if (*type == "revolute" || *type == "prismatic" || *type == "fixed") return *type;
    if (*type == "planar") {
      fail(one, "is planar, which is not read: give it two prismatic joints and a continuous one");
    } else {
      fail(one,
           fmt::format("{} is no type of joint: revolute, continuous, prismatic, fixed or floating",
                       in_quotes(*type)));
    }
    return "fixed";
  }

  std::string end_of(const Element& one, const char* which) {
    const Element* const end = one.FirstChildElement(which);
    const auto link = end == nullptr ? std::nullopt : attribute(*end, "link");
    if (!link) fail(one, fmt::format("has no <{} link=\"...\"/>", which));
    return link.value_or("");
  }

  void read_limit(const Element& one, RobotJoint& out) {
    const Element* const limit = one.FirstChildElement("limit");
    if (limit == nullptr || out.type == "fixed" || out.type == "free") return;
    const auto positive = [&](const char* name) {
      const auto given = number(*limit, name);  // exporters write 0 where they know none
      if (given && *given < 0.0) fail(*limit, fmt::format("{} must be >= 0, got {}", name, *given));
      return given && *given > 0.0 ? given : std::nullopt;
    };
    out.limit.effort = positive("effort");
    out.limit.velocity = positive("velocity");
    const auto lower = number(*limit, "lower"), upper = number(*limit, "upper");
    if (attribute(one, "type") == "continuous" || (!lower && !upper)) return;
    out.limit.lower = lower.value_or(0.0);  // absent: 0, as URDF has it
    out.limit.upper = upper.value_or(0.0);
    if (*out.limit.lower > *out.limit.upper) {
      fail(*limit,
           fmt::format("lower, {}, is above upper, {}", *out.limit.lower, *out.limit.upper));
    } else if (*out.limit.lower == *out.limit.upper) {
      note(fmt::format(
          "line {}: joint {}: its range, {} to {}, is left out: make a joint that does "
          "not move fixed",
          limit->GetLineNum(), in_quotes(out.name), *out.limit.lower, *out.limit.upper));
      out.limit.lower = out.limit.upper = std::nullopt;
    }
  }

  RobotMimic read_mimic(const Element& one) {
    RobotMimic out;
    out.joint = attribute(one, "joint").value_or("");
    if (out.joint.empty()) fail(one, "has no joint");
    out.multiplier = number(one, "multiplier").value_or(1.0);
    out.offset = number(one, "offset").value_or(0.0);
    if (out.multiplier == 0.0) fail(one, "multiplier must not be 0: make the joint fixed");
    return out;
  }

  void check_mimics(const std::vector<RobotJoint>& joints) {
    std::map<std::string, const RobotJoint*> of_name;
    std::vector<std::string> names;
    for (const RobotJoint& joint : joints) {
      of_name.emplace(joint.name, &joint);
      names.push_back(joint.name);
    }
    for (const RobotJoint& joint : joints) {
      if (!joint.mimic) continue;
      const auto report = [&](std::string what) {
        issues_.push_back({place_of(joint.line, "joint", joint.name), std::move(what)});
      };
      const auto leader = of_name.find(joint.mimic->joint);
      if (!joint.moves_alone()) {
        report("follows another joint (<mimic>), which only one that turns or slides can");
      } else if (leader == of_name.end()) {
        report(fmt::format("follows the joint {}, and there is none.{}",
                           in_quotes(joint.mimic->joint), did_you_mean(joint.mimic->joint, names)));
      } else if (!leader->second->moves_alone()) {
        report(fmt::format("follows the joint {}, which neither turns nor slides",
                           in_quotes(joint.mimic->joint)));
      } else {
        const RobotJoint* at = &joint;
        for (std::size_t steps = 0; at != nullptr && at->mimic && steps <= joints.size(); ++steps) {
          const auto next = of_name.find(at->mimic->joint);
          at = next == of_name.end() ? nullptr : next->second;  // told of that joint
        }
        if (at != nullptr && at->mimic) report("follows itself in the end: one joint must lead");
      }
    }
  }

  /// In ROS 1 the reduction is below the actuator, in ROS 2 below the joint, and once it was below neither.
  void read_transmission(const Element& one, std::vector<RobotJoint>& joints) {
    std::optional<double> reduction;
    std::vector<std::string> driven;
    const auto take = [&](const Element& parent) {
      for (const char* const name : {"mechanicalReduction", "mechanical_reduction"}) {
        const Element* const own = parent.FirstChildElement(name);
        if (own == nullptr) continue;
        const std::string text = own->GetText() == nullptr ? "" : own->GetText();
        const auto given = numbers_in(*own, "the reduction", text);
        if (given && given->size() != 1) report_count(*own, "the reduction", 1, text);
        if (!given || given->size() != 1) continue;
        reduction = given->front();
        if (*reduction == 0.0) fail(*own, "must not be 0");
      }
    };
    take(one);
    for (const Element* own = one.FirstChildElement(); own != nullptr;
         own = own->NextSiblingElement()) {
      const std::string_view kind = own->Name();
      if (kind == "actuator" || kind == "joint") take(*own);
      if (kind == "joint") driven.push_back(attribute(*own, "name").value_or(""));
    }
    if (driven.size() != 1) {
      note(fmt::format("{} is left out: it drives {} joints, and motors drive one each",
                       place_of(one), driven.size()));
      return;
    }
    const auto found = std::ranges::find(joints, driven.front(), &RobotJoint::name);
    if (found == joints.end()) {
      std::vector<std::string> names;
      for (const RobotJoint& joint : joints) names.push_back(joint.name);
      fail(one, fmt::format("there is no joint {}.{}", in_quotes(driven.front()),
                            did_you_mean(driven.front(), names)));
      return;
    }
    found->has_motor = true;
    found->reduction = reduction;
  }

  template <class Named>
  void check_names(const std::vector<Named>& all, std::string_view kind) {
    std::map<std::string, int> first;
    for (const Named& one : all) {
      const auto [place, is_new] = first.emplace(one.name, one.line);
      if (is_new || one.name.empty()) continue;
      issues_.push_back({place_of(one.line, kind, one.name),
                         fmt::format("the name is taken since line {}", place->second)});
    }
  }

  /// Finds the root, and puts the joints into an order in which parents come first.
  void order(std::vector<RobotLink> links, std::vector<RobotJoint> joints) {
    std::map<std::string, const RobotLink*> link_of;
    std::vector<std::string> names;
    for (const RobotLink& link : links) {
      link_of.emplace(link.name, &link);
      names.push_back(link.name);
    }
    std::map<std::string, const RobotJoint*> joint_to;
    for (const RobotJoint& joint : joints) {
      for (const std::string& end : {joint.parent, joint.child}) {
        if (link_of.contains(end)) continue;
        issues_.push_back(
            {place_of(joint.line, "joint", joint.name),
             fmt::format("there is no link {}.{}", in_quotes(end), did_you_mean(end, names))});
      }
      const auto [place, is_new] = joint_to.emplace(joint.child, &joint);
      if (is_new) continue;
      issues_.push_back(
          {place_of(joint.line, "joint", joint.name),
           fmt::format("the link {} is the child of {} already, and a tree gives it one parent",
                       in_quotes(joint.child), in_quotes(place->second->name))});
    }
    throw_if_any(std::move(issues_));
    std::vector<const RobotLink*> roots;
    for (const RobotLink& link : links) {
      if (!joint_to.contains(link.name)) roots.push_back(&link);
    }
    if (roots.empty()) {
      throw ConfigError("",
                        links.empty() ? "has no <link>" : "has no root: its joints make a loop");
    }
    for (std::size_t i = 1; i < roots.size(); ++i) {
      issues_.push_back({place_of(roots[i]->line, "link", roots[i]->name),
                         fmt::format("is no child of any joint, nor is {}: a tree has one root",
                                     in_quotes(roots[0]->name))});
    }
    out_.root = *roots[0];
    std::set<std::string> reached = {out_.root.name};
    for (bool grows = true; grows;) {
      grows = false;
      for (const RobotJoint& joint : joints) {
        if (!reached.contains(joint.parent) || reached.contains(joint.child)) continue;
        reached.insert(joint.child);
        out_.joints.push_back(joint);
        out_.links.push_back(*link_of.at(joint.child));
        grows = true;
      }
    }
    for (const RobotJoint& joint : joints) {
      if (roots.size() > 1 || reached.contains(joint.child)) continue;
      issues_.push_back({place_of(joint.line, "joint", joint.name),
                         fmt::format("is in a loop: {} does not hang on the root {}",
                                     in_quotes(joint.child), in_quotes(out_.root.name))});
    }
    for (const RobotJoint& joint : out_.joints) {
      if (joint.type != "free" || (joint.parent == out_.root.name && out_.root.mass_kg == 0.0))
        continue;
      issues_.push_back(
          {place_of(joint.line, "joint", joint.name),
           "is floating, which a joint can be only on a root without mass: it frees what hangs "
           "on it from the world"});
    }
  }

  Robot out_;
};

}  // namespace

Robot read_urdf(const std::string& text) { return UrdfReader().read(text); }

#else

Robot read_urdf(const std::string& /*text*/) {
  throw std::runtime_error(
      "portwave was built without tinyxml2, which reads URDF: install libtinyxml2-dev "
      "(./dev deps does) and build it again");
}

#endif

}  // namespace portwave::cli
