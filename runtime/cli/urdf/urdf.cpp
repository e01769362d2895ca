#include "urdf/urdf.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/core/component.hpp>

#include "line/verb.hpp"

#ifdef PORTWAVE_URDF
#include <tinyxml2.h>
#endif

namespace portwave::cli {

#ifdef PORTWAVE_URDF
namespace {

using tinyxml2::XMLElement;

constexpr double kAny = 1e100;

/// Every defect of a file, each with the line and the element.
class Reader {
 public:
  UrdfRobot read(const std::string& text) {
    tinyxml2::XMLDocument document;
    document.Parse(text.data(), text.size());
    if (document.Error()) {
      throw ConfigError(fmt::format("line {}", document.ErrorLineNum()),
                        fmt::format("is no XML: {}", document.ErrorStr()));
    }
    const XMLElement* const robot = document.RootElement();
    if (robot == nullptr) throw ConfigError("", "has no element");
    if (std::string_view(robot->Name()) != "robot") {
      fail(*robot, "a URDF file has <robot> as its outermost element");
      throw_if_any(std::move(issues_));
    }
    out_.name = attribute(*robot, "name").value_or("robot");
    std::vector<UrdfLink> links;
    std::vector<UrdfJoint> joints;
    for (const XMLElement* one = robot->FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      const std::string_view kind = one->Name();
      if (kind == "link") {
        links.push_back(read_link(*one));
      } else if (kind == "joint") {
        joints.push_back(read_joint(*one));
      } else if (kind.starts_with("xacro:")) {
        fail(*one, "is of xacro, which makes URDF: run xacro on the file first");
      } else if (kind != "material" && kind != "gazebo" && kind != "transmission") {
        note(fmt::format("line {}: <{}> is left out", one->GetLineNum(), kind));
      }
    }
    check_names(links, "link");
    check_names(joints, "joint");
    throw_if_any(std::move(issues_));
    order(std::move(links), std::move(joints));
    throw_if_any(std::move(issues_));
    return std::move(out_);
  }

 private:
  static std::string place_of(const XMLElement& one) {
    const char* const name = one.Attribute("name");
    return name == nullptr ? fmt::format("line {}, <{}>", one.GetLineNum(), one.Name())
                           : place_of(one.GetLineNum(), one.Name(), name);
  }
  static std::string place_of(int line, std::string_view kind, const std::string& name) {
    return fmt::format("line {}, <{}> {}", line, kind, in_quotes(name));
  }

  void fail(const XMLElement& one, std::string what) {
    issues_.push_back({place_of(one), std::move(what)});
  }
  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  std::optional<std::string> attribute(const XMLElement& one, const char* name) {
    const char* const found = one.Attribute(name);
    if (found == nullptr) return std::nullopt;
    return std::string(found);
  }

  /// The numbers of an attribute, parted by blanks; none if it is absent or has a defect.
  std::optional<std::vector<double>> numbers(const XMLElement& one, const char* name,
                                             std::size_t count) {
    const auto text = attribute(one, name);
    if (!text) return std::nullopt;
    std::vector<double> out;
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t begin = text->find_first_not_of(" \t\r\n", at);
      if (begin == std::string::npos) break;
      at = std::min(text->find_first_of(" \t\r\n", begin), text->size());
      const std::string_view word = std::string_view(*text).substr(begin, at - begin);
      if (!RealRange{-kAny, kAny}.defect(word).empty()) {
        fail(one, fmt::format("{}: {} is not a number", name, in_quotes(std::string(word))));
        return std::nullopt;
      }
      out.push_back(real(word));
    }
    if (out.size() == count) return out;
    fail(one, fmt::format("{} must be {} number{}, got {}", name, count, count == 1 ? "" : "s",
                          in_quotes(*text)));
    return std::nullopt;
  }
  std::optional<double> number(const XMLElement& one, const char* name) {
    const auto own = numbers(one, name, 1);
    return own ? std::optional(own->front()) : std::nullopt;
  }
  double required_number(const XMLElement& one, const char* name) {
    if (one.Attribute(name) == nullptr) fail(one, fmt::format("has no {}", name));
    return number(one, name).value_or(0.0);
  }

  UrdfPose pose(const XMLElement& parent) {
    UrdfPose out;
    const XMLElement* const origin = parent.FirstChildElement("origin");
    if (origin == nullptr) return out;
    if (const auto xyz = numbers(*origin, "xyz", 3)) std::copy_n(xyz->begin(), 3, out.xyz.begin());
    if (const auto rpy = numbers(*origin, "rpy", 3)) std::copy_n(rpy->begin(), 3, out.rpy.begin());
    return out;
  }

  std::string name_of(const XMLElement& one) {
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

  UrdfLink read_link(const XMLElement& one) {
    UrdfLink out;
    out.name = name_of(one);
    out.line = one.GetLineNum();
    const XMLElement* const inertial = one.FirstChildElement("inertial");
    if (inertial == nullptr) return out;
    out.has_inertia = true;
    out.centre = pose(*inertial);
    if (const XMLElement* const mass = inertial->FirstChildElement("mass")) {
      out.mass_kg = required_number(*mass, "value");
      if (out.mass_kg < 0.0) fail(*mass, fmt::format("must be >= 0 kg, got {}", out.mass_kg));
    } else {
      fail(one, "its <inertial> has no <mass>");
    }
    if (const XMLElement* const inertia = inertial->FirstChildElement("inertia")) {
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

  UrdfJoint read_joint(const XMLElement& one) {
    UrdfJoint out;
    out.name = name_of(one);
    out.line = one.GetLineNum();
    out.type = read_type(one);
    out.origin = pose(one);
    out.parent = end_of(one, "parent");
    out.child = end_of(one, "child");
    if (const XMLElement* const axis = one.FirstChildElement("axis")) {
      if (const auto xyz = numbers(*axis, "xyz", 3)) std::copy_n(xyz->begin(), 3, out.axis.begin());
      const bool turns = out.type == "revolute" || out.type == "prismatic";
      if (turns && out.axis == std::array<double, 3>{}) fail(*axis, "must not be 0 0 0");
    }
    if (const XMLElement* const dynamics = one.FirstChildElement("dynamics")) {
      out.damping = number(*dynamics, "damping").value_or(0.0);
      if (out.damping < 0.0)
        fail(*dynamics, fmt::format("damping must be >= 0, got {}", out.damping));
      if (const double friction = number(*dynamics, "friction").value_or(0.0); friction != 0.0) {
        note(fmt::format("joint {}: dry friction of {} is left out; join a \"{}\" to its port",
                         in_quotes(out.name), friction,
                         out.type == "prismatic" ? "coulomb_damper" : "rotational_coulomb_damper"));
      }
    }
    if (one.FirstChildElement("mimic") != nullptr) {
      fail(one,
           "follows another joint (<mimic>), which is not read: make it fixed, or take <mimic> out "
           "and "
           "join the two by a gear");
    }
    read_limit(one, out);
    return out;
  }

  std::string read_type(const XMLElement& one) {
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

  std::string end_of(const XMLElement& one, const char* which) {
    const XMLElement* const end = one.FirstChildElement(which);
    const auto link = end == nullptr ? std::nullopt : attribute(*end, "link");
    if (!link) fail(one, fmt::format("has no <{} link=\"...\"/>", which));
    return link.value_or("");
  }

  void read_limit(const XMLElement& one, UrdfJoint& out) {
    const XMLElement* const limit = one.FirstChildElement("limit");
    if (limit == nullptr || out.type == "fixed" || out.type == "free") return;
    out.limit = {number(*limit, "lower"), number(*limit, "upper"), number(*limit, "effort"),
                 number(*limit, "velocity")};
    if (out.limit.lower && out.limit.upper && *out.limit.lower > *out.limit.upper) {
      fail(*limit,
           fmt::format("lower, {}, is above upper, {}", *out.limit.lower, *out.limit.upper));
    }
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
  void order(std::vector<UrdfLink> links, std::vector<UrdfJoint> joints) {
    std::map<std::string, const UrdfLink*> link_of;
    std::vector<std::string> names;
    for (const UrdfLink& link : links) {
      link_of.emplace(link.name, &link);
      names.push_back(link.name);
    }
    std::map<std::string, const UrdfJoint*> joint_to;
    for (const UrdfJoint& joint : joints) {
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
    std::vector<const UrdfLink*> roots;
    for (const UrdfLink& link : links) {
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
      for (const UrdfJoint& joint : joints) {
        if (!reached.contains(joint.parent) || reached.contains(joint.child)) continue;
        reached.insert(joint.child);
        out_.joints.push_back(joint);
        out_.links.push_back(*link_of.at(joint.child));
        grows = true;
      }
    }
    for (const UrdfJoint& joint : joints) {
      if (roots.size() > 1 || reached.contains(joint.child)) continue;
      issues_.push_back({place_of(joint.line, "joint", joint.name),
                         fmt::format("is in a loop: {} does not hang on the root {}",
                                     in_quotes(joint.child), in_quotes(out_.root.name))});
    }
    for (const UrdfJoint& joint : out_.joints) {
      if (joint.type != "free" || (joint.parent == out_.root.name && out_.root.mass_kg == 0.0))
        continue;
      issues_.push_back(
          {place_of(joint.line, "joint", joint.name),
           "is floating, which a joint can be only on a root without mass: it frees what hangs "
           "on it from the world"});
    }
  }

  UrdfRobot out_;
  Issues issues_;
};

}  // namespace

UrdfRobot read_urdf(const std::string& text) { return Reader().read(text); }

#else

UrdfRobot read_urdf(const std::string& /*text*/) {
  throw std::runtime_error(
      "portwave was built without tinyxml2, which reads URDF: install libtinyxml2-dev "
      "(./dev deps does) and build it again");
}

#endif

}  // namespace portwave::cli
