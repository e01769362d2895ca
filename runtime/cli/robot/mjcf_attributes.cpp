#ifdef PORTWAVE_URDF

#include "robot/mjcf_attributes.hpp"

#include <cctype>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {

void MjcfAttributes::read_compiler(const Element& one) {
  for (const char* const name : {"boundmass", "boundinertia", "settotalmass"}) {
    if (number(one, name).value_or(0.0) > 0.0)
      fail(one, fmt::format("{} is not read: write the masses as they are", name));
  }
  const auto is = [&](const char* name, const char* value) {
    const char* const given = one.Attribute(name);
    return given != nullptr && std::strcmp(given, value) == 0;
  };
  if (is("balanceinertia", "true"))
    fail(one, "balanceinertia is not read: give moments that can be");
  if (is("coordinate", "global")) fail(one, "global coordinates are not read");
  if (const char* const angle = one.Attribute("angle"))
    is_degrees_ = std::strcmp(angle, "radian") != 0;
  if (const char* const autolimits = one.Attribute("autolimits"))
    auto_limits_ = std::strcmp(autolimits, "false") != 0;
  if (const char* const from = one.Attribute("inertiafromgeom")) inertia_from_geoms_ = from;
  inertia_groups_ = numbers(one, "inertiagrouprange", 2).value_or(inertia_groups_);
  if (const char* const axes = one.Attribute("eulerseq")) {
    if (std::strlen(axes) == 3 &&
        std::string_view(axes).find_first_not_of("xyzXYZ") == std::string_view::npos) {
      euler_axes_ = axes;
    } else {
      fail(one, fmt::format("eulerseq must be three of x, y, z, got {}", in_quotes(axes)));
    }
  }
}

void MjcfAttributes::read_defaults(const Element& one, const std::string& parent) {
  const char* const given = one.Attribute("class");
  const std::string name = given != nullptr ? given : parent;
  if (given == nullptr && one.Parent() != nullptr &&
      std::string_view(one.Parent()->Value()) == "default") {
    fail(one, "a class below another one must have a class");
  }
  if (!classes_.contains(name)) classes_[name] = classes_[parent];
  for (const Element* own = one.FirstChildElement(); own != nullptr;
       own = own->NextSiblingElement()) {
    if (std::string_view(own->Name()) == "default") continue;
    for (const auto* a = own->FirstAttribute(); a != nullptr; a = a->Next())
      classes_[name][own->Name()][a->Name()] = a->Value();
  }
  for (const Element* own = one.FirstChildElement("default"); own != nullptr;
       own = own->NextSiblingElement("default")) {
    read_defaults(*own, name);
  }
}

std::optional<std::string> MjcfAttributes::text(const Element& one, const char* name) {
  if (const char* const own = one.Attribute(name)) return std::string(own);
  const char* const own_class = one.Attribute("class");
  const auto found = classes_.find(own_class != nullptr ? own_class : childclass_);
  if (found == classes_.end()) {
    fail(one, fmt::format("there is no default class {}",
                          in_quotes(own_class != nullptr ? own_class : childclass_)));
    return std::nullopt;
  }
  const auto kind = found->second.find(one.Name());
  if (kind == found->second.end()) return std::nullopt;
  const auto value = kind->second.find(name);
  return value == kind->second.end() ? std::nullopt : std::optional(value->second);
}

std::optional<std::vector<double>> MjcfAttributes::reals(const Element& one, const char* name,
                                                         std::size_t count) {
  const auto given = text(one, name);
  if (!given) return std::nullopt;
  auto out = numbers_in(one, name, *given);
  if (!out || out->size() == count) return out;
  report_count(one, name, count, *given);
  return std::nullopt;
}

std::optional<double> MjcfAttributes::real_of(const Element& one, const char* name) {
  const auto own = reals(one, name, 1);
  return own ? std::optional(own->front()) : std::nullopt;
}

double MjcfAttributes::real_from_0(const Element& one, const char* name) {
  const double out = real_of(one, name).value_or(0.0);
  if (out < 0.0) fail(one, fmt::format("{} must be >= 0, got {}", name, out));
  return out;
}

Eigen::Vector3d MjcfAttributes::vector(const Element& one, const char* name,
                                       const Eigen::Vector3d& filler) {
  const auto given = reals(one, name, 3);
  return given ? Eigen::Vector3d((*given)[0], (*given)[1], (*given)[2]) : filler;
}

Eigen::Matrix3d MjcfAttributes::turn(const Element& one) {
  const auto no_direction = [&](const char* name) {
    fail(one, fmt::format("{} gives no direction", name));
    return Eigen::Matrix3d(Eigen::Matrix3d::Identity());
  };
  if (const auto q = reals(one, "quat", 4)) {
    const Eigen::Quaterniond own((*q)[0], (*q)[1], (*q)[2], (*q)[3]);
    return own.norm() > 0.0 ? own.normalized().toRotationMatrix() : no_direction("quat");
  }
  if (const auto a = reals(one, "axisangle", 4)) {
    const Eigen::Vector3d axis((*a)[0], (*a)[1], (*a)[2]);
    if (axis.norm() == 0.0) return no_direction("axisangle");
    return Eigen::AngleAxisd(in_radians((*a)[3]), axis.normalized()).toRotationMatrix();
  }
  if (const auto angles = reals(one, "euler", 3)) {
    Eigen::Matrix3d R = Eigen::Matrix3d::Identity();
    for (std::size_t k = 0; k < 3; ++k) {
      const char letter = euler_axes_[k];
      const int axis = std::tolower(static_cast<unsigned char>(letter)) - 'x';
      const Eigen::Matrix3d own =
          Eigen::AngleAxisd(in_radians((*angles)[k]), Eigen::Vector3d::Unit(axis))
              .toRotationMatrix();
      const bool moves_along = std::islower(static_cast<unsigned char>(letter)) != 0;
      R = moves_along ? Eigen::Matrix3d(R * own) : Eigen::Matrix3d(own * R);
    }
    return R;
  }
  if (const auto a = reals(one, "xyaxes", 6)) {
    const Eigen::Vector3d x = Eigen::Vector3d((*a)[0], (*a)[1], (*a)[2]).normalized();
    Eigen::Vector3d y((*a)[3], (*a)[4], (*a)[5]);
    y -= x * x.dot(y);
    if (!(x.norm() > 0.0 && y.norm() > 0.0)) return no_direction("xyaxes");
    Eigen::Matrix3d R;
    R << x, y.normalized(), x.cross(y.normalized());
    return R;
  }
  if (const auto a = reals(one, "zaxis", 3)) {
    const Eigen::Vector3d z((*a)[0], (*a)[1], (*a)[2]);
    if (z.norm() == 0.0) return no_direction("zaxis");
    return Eigen::Quaterniond::FromTwoVectors(Eigen::Vector3d::UnitZ(), z).toRotationMatrix();
  }
  return Eigen::Matrix3d::Identity();
}

std::array<double, 3> roll_pitch_yaw_of(const Eigen::Matrix3d& R) {
  const double pitch = std::atan2(-R(2, 0), std::hypot(R(0, 0), R(1, 0)));
  const double yaw = std::atan2(R(1, 0), R(0, 0));
  const double c = std::cos(yaw), s = std::sin(yaw);  // Rz(−yaw) R = Ry Rx
  const double roll = std::atan2(s * R(0, 2) - c * R(1, 2), c * R(1, 1) - s * R(0, 1));
  return {roll + 0.0, pitch + 0.0, yaw + 0.0};  // no -0
}

}  // namespace portwave::cli

#endif
