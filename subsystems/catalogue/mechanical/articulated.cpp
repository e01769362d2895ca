#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Eigenvalues>
#include <fmt/format.h>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "mechanisms/articulated_part.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {
namespace articulated_type {

using articulated::Body;
using articulated::Design;
using articulated::JointKind;
using articulated::Mat3;
using articulated::Vec3;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr const char* kFixed = "fixed";
constexpr const char *kForce = "force", *kTorque = "torque", *kWrench = "wrench";

Mat3 of(const Eigen::Matrix3d& m) {
  return {{{m(0, 0), m(0, 1), m(0, 2)}, {m(1, 0), m(1, 1), m(1, 2)}, {m(2, 0), m(2, 1), m(2, 2)}}};
}
Vec3 of(const Eigen::Vector3d& v) { return {v.x(), v.y(), v.z()}; }

/// Mass, mass centre and moments about a point.
struct Inertia {
  double mass = 0.0;
  Eigen::Vector3d moment = Eigen::Vector3d::Zero();
  Eigen::Matrix3d about = Eigen::Matrix3d::Zero();

  Inertia(double m, const Eigen::Vector3d& centre, const Eigen::Matrix3d& about_centre)
      : mass(m),
        moment(m * centre),
        about(about_centre + m * (centre.squaredNorm() * Eigen::Matrix3d::Identity() -
                                  centre * centre.transpose())) {}

  /// The same in axes in which this body's are `turn`, about a point from which its own is `place`.
  Inertia seen_from(const Eigen::Matrix3d& turn, const Eigen::Vector3d& place) const {
    Inertia out = *this;
    const Eigen::Vector3d c = turn * moment;
    out.moment = c + mass * place;
    out.about = turn * about * turn.transpose() - c * place.transpose() - place * c.transpose() -
                mass * place * place.transpose() +
                (2.0 * c.dot(place) + mass * place.squaredNorm()) * Eigen::Matrix3d::Identity();
    return out;
  }
};

/// A body as it is given: where its axes lie in those of the moving body that it is part of, or of the world.
struct GivenBody {
  int moving = -1;  ///< −1: the world
  Eigen::Matrix3d turn = Eigen::Matrix3d::Identity();
  Eigen::Vector3d place = Eigen::Vector3d::Zero();
};

/// Turns z into an axis.
Eigen::Matrix3d turn_to(const Eigen::Vector3d& axis) {
  return Eigen::Quaterniond::FromTwoVectors(Eigen::Vector3d::UnitZ(), axis).toRotationMatrix();
}

Eigen::Matrix3d roll_pitch_yaw(const Eigen::Vector3d& angles) {
  return (Eigen::AngleAxisd(angles.z(), Eigen::Vector3d::UnitZ()) *
          Eigen::AngleAxisd(angles.y(), Eigen::Vector3d::UnitY()) *
          Eigen::AngleAxisd(angles.x(), Eigen::Vector3d::UnitX()))
      .toRotationMatrix();
}

/// Reads the lists, which must all be as long as that of the joints; every method reports what it finds.
class Reader {
 public:
  explicit Reader(const Parameters& parameters)
      : parameters_(parameters), kinds_(value_of<Texts>(parameters, "joints")) {}

  Design read() {
    const std::size_t n = kinds_.size();
    const auto moving =
        std::ranges::count_if(kinds_, [](const std::string& kind) { return kind != "fixed"; });
    if (n < 1 || moving > articulated::kMostBodies) {
      report("/joints",
             fmt::format("must be a list of 1 to {} joints that move, and fixed ones, got {} that "
                         "move: give limbs as parts of their own, joined at frames",
                         articulated::kMostBodies, moving));
    }
    masses_ = numbers("masses_kg", 0.0, false);
    damping_ = numbers("damping", 0.0, true);
    parents_ = read_parents();
    names_ = read_names("names", n, "joint_");
    places_ = matrix("places_m", at(n), 3);
    turns_ = matrix("turns_rad", at(n), 3);
    axes_ = matrix("axes", at(n), 3);
    centres_ = matrix("centres_m", at(n), 3);
    inertias_ = matrix("inertias_kgm2", at(n), 6);
    throw_if_any(std::move(issues_));
    for (std::size_t i = 0; i < n; ++i) add_body(i);
    read_frames();
    throw_if_any(std::move(issues_));
    check_size();
    throw_if_any(std::move(issues_));
    out_.tree.gravity = number_of(parameters_, "gravity_m_per_s2");
    out_.has_port.assign(out_.names.size(), value_of<bool>(parameters_, "joint_ports"));
    out_.tree.complete();
    return std::move(out_);
  }

 private:
  static int at(std::size_t i) { return static_cast<int>(i); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void report(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }

  void check_length(const char* name, std::size_t size, std::size_t wanted, const char* of_what) {
    if (size == wanted) return;
    report(std::string("/") + name,
           fmt::format("must have an entry for each of the {} {}, got {}", wanted, of_what, size));
  }

  Numbers numbers(const char* name, double filler, bool is_optional) {
    Numbers out = value_of<Numbers>(parameters_, name);
    if (!is_optional || !out.empty()) check_length(name, out.size(), kinds_.size(), "joints");
    out.resize(kinds_.size(), filler);
    return out;
  }

  Eigen::MatrixXd matrix(const char* name, int rows, int columns) {
    const auto given = parameters_.find(name);
    const auto* const entries = std::get_if<MatrixEntries>(&given->second);
    if (entries != nullptr && entries->empty()) return Eigen::MatrixXd(0, columns);
    return MatrixReader(parameters_, issues_).read(name, rows, columns);
  }

  std::vector<int> read_parents() {
    const Numbers given = value_of<Numbers>(parameters_, "parents");
    std::vector<int> out;
    if (!given.empty()) check_length("parents", given.size(), kinds_.size(), "joints");
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const double parent = i < given.size() ? given[i] : static_cast<double>(i);
      if (!(parent >= 0.0 && parent <= static_cast<double>(i)) || parent != std::floor(parent)) {
        report(
            fmt::format("/parents/{}", i),
            fmt::format("must be 0, the world, or the number of a body before it, 1 to {}, got {}",
                        i, parent));
      }
      out.push_back(at(static_cast<std::size_t>(std::clamp(parent, 0.0, static_cast<double>(i)))) -
                    1);
    }
    return out;
  }

  Texts read_names(const char* name, std::size_t size, const char* by_default) {
    Texts out = value_of<Texts>(parameters_, name);
    if (!out.empty()) check_length(name, out.size(), size, "joints");
    for (std::size_t i = out.size(); i < size; ++i)
      out.push_back(fmt::format("{}{}", by_default, i + 1));
    for (std::size_t i = 0; i < out.size(); ++i) check_name(fmt::format("/{}/{}", name, i), out[i]);
    return out;
  }

  void check_name(const std::string& where, const std::string& name) {
    if (!is_plain_name(name)) {
      report(where,
             fmt::format("must be a name without dots, brackets, blanks, commas or quotes, got {}",
                         in_quotes(name)));
    } else if (!taken_.insert(name).second) {
      report(where, fmt::format("the name {} is already taken", in_quotes(name)));
    }
  }

  static Eigen::Vector3d row(const Eigen::MatrixXd& m, std::size_t i,
                             const Eigen::Vector3d& filler) {
    if (m.rows() == 0) return filler;
    return m.row(at(i)).transpose();
  }

  Eigen::Matrix3d inertia_of(std::size_t i) {
    Eigen::Matrix3d out = Eigen::Matrix3d::Zero();
    if (inertias_.rows() == 0) return out;
    const Eigen::VectorXd I = inertias_.row(at(i)).transpose();
    out << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
    const Eigen::Vector3d own = Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(out).eigenvalues();
    if (own[0] < -1e-12 * own.cwiseAbs().maxCoeff()) {
      report(fmt::format("/inertias_kgm2/{}", i),
             fmt::format(
                 "has the principal moment {:.6g} kg m^2, and none may be negative: the order is "
                 "xx, xy, xz, yy, yz, zz",
                 own[0]));
    }
    return out;
  }

  void add_body(std::size_t i) {
    const std::string& kind = kinds_[i];
    const GivenBody parent = parents_[i] < 0 ? GivenBody{} : given_[at(parents_[i])];
    const Eigen::Vector3d zero = Eigen::Vector3d::Zero();
    const Eigen::Vector3d place = parent.place + parent.turn * row(places_, i, zero);
    const Eigen::Matrix3d turn = parent.turn * roll_pitch_yaw(row(turns_, i, zero));
    const Inertia own(masses_[i], row(centres_, i, zero), inertia_of(i));
    if (kind == kFixed) {
      given_.push_back({parent.moving, turn, place});
      if (parent.moving >= 0) add(parent.moving, own.seen_from(turn, place));
      if (damping_[i] != 0.0)
        report(fmt::format("/damping/{}", i), "must be 0: a fixed joint does not move");
      return;
    }
    Body body;
    body.parent = parent.moving;
    Eigen::Matrix3d align = Eigen::Matrix3d::Identity();  // from the tree's axes to the given ones
    if (kind == "revolute" || kind == "prismatic") {
      body.kind = kind == "revolute" ? JointKind::revolute : JointKind::prismatic;
      const Eigen::Vector3d axis = row(axes_, i, Eigen::Vector3d::UnitZ());
      if (axis.norm() > 0.0) {
        align = turn_to(axis.normalized());
      } else {
        report(fmt::format("/axes/{}", i),
               "must not be (0, 0, 0): the joint moves along it or about it");
      }
    } else if (kind == "spherical") {
      body.kind = JointKind::spherical;
    } else {
      body.kind = JointKind::free;
      check_free(i);
    }
    body.to_joint = of(Eigen::Matrix3d((turn * align).transpose()));
    body.place = of(place);
    if (body.kind == JointKind::free) {
      body.to_joint = articulated::identity();
      body.place = {0, 0, 0};
    }
    const int number = at(out_.tree.bodies.size());
    out_.tree.bodies.push_back(body);
    out_.names.push_back(names_[i]);
    out_.given.push_back(i);
    out_.damping.push_back(damping_[i]);
    given_.push_back({number, align.transpose(), zero});
    add(number, own.seen_from(align.transpose(), zero));
  }

  void check_free(std::size_t i) {
    if (parents_[i] >= 0)
      report(fmt::format("/parents/{}", i), "must be 0: a free body has no parent");
    if (damping_[i] != 0.0) {
      report(fmt::format("/damping/{}", i),
             "must be 0 for a free body: give its ports what dampens it");
    }
    const Eigen::Vector3d zero = Eigen::Vector3d::Zero();
    if (!row(places_, i, zero).isZero(0.0) || !row(turns_, i, zero).isZero(0.0)) {
      report(fmt::format("/{}/{}", row(places_, i, zero).isZero(0.0) ? "turns_rad" : "places_m", i),
             "must be 0 for a free body (the place and turn of its joint): its state says where it "
             "is");
    }
  }

  void add(int body, const Inertia& inertia) {
    Body& own = out_.tree.bodies[at(body)];
    own.mass += inertia.mass;
    own.moment += of(inertia.moment);
    own.inertia = own.inertia + of(inertia.about);
  }

  void read_frames() {
    const Texts& names = value_of<Texts>(parameters_, "frames");
    const Texts& bodies = value_of<Texts>(parameters_, "frame_joints");
    check_length("frame_joints", bodies.size(), names.size(), "frames");
    const Eigen::MatrixXd points = matrix("frame_points_m", at(names.size()), 3);
    Texts kinds = value_of<Texts>(parameters_, "frame_kinds");
    if (!kinds.empty()) check_length("frame_kinds", kinds.size(), names.size(), "frames");
    kinds.resize(names.size(), kForce);
    for (std::size_t i = 0; i < names.size(); ++i) {
      check_name(fmt::format("/frames/{}", i), names[i]);
      const std::string torque = kinds[i] == kWrench ? names[i] + "_torque" : names[i];
      if (kinds[i] == kWrench) check_name(fmt::format("/frames/{}", i), torque);
      if (i >= bodies.size()) continue;
      const auto found = std::find(names_.begin(), names_.end(), bodies[i]);
      if (found == names_.end()) {
        report(fmt::format("/frame_joints/{}", i),
               fmt::format("there is no joint {}.{}", in_quotes(bodies[i]),
                           did_you_mean(bodies[i], names_)));
        continue;
      }
      const GivenBody& body = given_[at(found - names_.begin())];
      if (body.moving < 0) {
        report(fmt::format("/frame_joints/{}", i),
               fmt::format("{} is fixed to the world: nothing moves there", in_quotes(bodies[i])));
        continue;
      }
      const Eigen::Vector3d point = row(points, i, Eigen::Vector3d::Zero());
      const Vec3 place = of(Eigen::Vector3d(body.place + body.turn * point));
      if (kinds[i] != kTorque) out_.frames.push_back({names[i], {body.moving, place}});
      if (kinds[i] != kForce) {
        out_.frames.push_back({torque, {.body = body.moving, .place = place, .turns = true}});
      }
    }
  }
  static std::size_t at(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

  void check_size() {
    int velocities = 0, positions = 0;
    for (const Body& body : out_.tree.bodies) {
      velocities += body.velocity_count();
      positions += body.position_count();
    }
    if (velocities == 0) report("/joints", "must have one that moves");
    if (velocities > articulated::kMostVelocities || positions > articulated::kMostPositions) {
      report("/joints",
             fmt::format("must have at most {} degrees of freedom and {} positions together, got "
                         "{} and {}",
                         articulated::kMostVelocities, articulated::kMostPositions, velocities,
                         positions));
    }
  }

  const Parameters& parameters_;
  const Texts& kinds_;
  Numbers masses_, damping_;
  std::vector<int> parents_;
  Texts names_;
  Eigen::MatrixXd places_, turns_, axes_, centres_, inertias_;
  std::set<std::string> taken_;
  std::vector<GivenBody> given_;
  Design out_;
  Issues issues_;
};

std::unique_ptr<Subsystem> build(const Parameters& parameters) {
  return std::make_unique<articulated::ArticulatedPart>(Reader(parameters).read(),
                                                        allows_active(parameters));
}

ParameterInfo rows(const char* name, const char* unit, const char* summary) {
  ParameterInfo info =
      list_parameter<MatrixEntries>(name, ParameterKind::matrix, summary, MatrixEntries{});
  info.unit = unit;
  return info;
}

ParameterInfo texts(const char* name, const char* summary) {
  return list_parameter<Texts>(name, ParameterKind::texts, summary, Texts{});
}

ParameterInfo kinds() {
  ParameterInfo info = list_parameter<Texts>(
      "joints", ParameterKind::texts, "how each body hangs on its parent, one body to a joint");
  info.choices = {"revolute", "prismatic", "spherical", "free", kFixed};
  return info;
}

ParameterInfo frame_kinds() {
  ParameterInfo info = texts("frame_kinds",
                             "what each frame has a port for: the force on the point, the torque "
                             "on the body, or, as wrench, "
                             "both, the torque at a port <frame>_torque; force if absent");
  info.choices = {kForce, kTorque, kWrench};
  return info;
}

ParameterInfo list_of(ParameterInfo info, bool is_optional) {
  info.kind = ParameterKind::numbers;
  if (is_optional) info.default_value = Numbers{};
  return info;
}

}  // namespace articulated_type
}  // namespace

PartType articulated_type() {
  using namespace articulated_type;
  PartType type;
  type.name = "articulated";
  type.group = "translation";
  type.summary =
      "A tree of rigid bodies in space, such as a robot: it hangs in the world or is free.";
  type.equations =
      "H(q,p) = p^T M(q)^-1 p/2 + V(q),  V: weights against z,  v = M^-1 p\n"
      "revolute, prismatic: q' = v,  p' = -dH/dq - d v - e + T,  f = -v\n"
      "spherical: q' = q (0, w)/2,  L' = L x w - (q (0, .)/2)^T dH/dq - d w - e + T, in the body's "
      "axes\n"
      "free: position r and p = dT/dr' in world axes beside q and L of a spherical joint\n"
      "frame at a point of a body: f = -its velocity in world axes, the point feels -e; torque: f "
      "= "
      "-w, the body feels -e";
  ParameterInfo gravity =
      non_negative_number("gravity_m_per_s2", "m/s^2", "acceleration g of gravity, against z");
  gravity.default_value = 9.81;
  ParameterInfo damping = non_negative_number(
      "damping", "", "dampers d in the joints, in N m s/rad or N s/m; none if absent");
  ParameterInfo ports;
  ports.name = "joint_ports";
  ports.kind = ParameterKind::boolean;
  ports.summary = "whether the joints have ports";
  ports.default_value = true;
  type.parameters = {
      kinds(),
      texts("names",
            "names of the joints, from which those of ports, states and inputs are made; joint_1, "
            "joint_2, ... if absent"),
      list_of(list_parameter<Numbers>(
                  "parents", ParameterKind::numbers,
                  "the number of the body on which each hangs, from 1, and 0 for the "
                  "world; the one before if absent"),
              true),
      rows("places_m", "m", "x, y, z of each joint in the axes of its parent; 0 if absent"),
      rows("turns_rad", "rad",
           "roll, pitch, yaw of the axes of each joint in those of its parent, as in URDF; 0 if "
           "absent"),
      rows("axes", "", "axis of each revolute and prismatic joint in its own axes; z if absent"),
      list_of(non_negative_number("masses_kg", "kg", "masses of the bodies"), false),
      rows("centres_m", "m", "x, y, z of each mass centre in the axes of its joint; 0 if absent"),
      rows("inertias_kgm2", "kg m^2",
           "xx, xy, xz, yy, yz, zz of each body about its mass centre, in the axes of its joint; 0 "
           "if absent"),
      list_of(std::move(damping), true),
      std::move(gravity),
      std::move(ports),
      texts("frames", "names of ports on points of bodies, in world axes"),
      texts("frame_joints", "the joint whose body each frame is on"),
      rows("frame_points_m", "m", "x, y, z of each frame in the axes of that body; 0 if absent"),
      frame_kinds(),
  };
  type.build = build;
  // A crane that turns on its base, lifts and stretches, with a load on a ball joint.
  type.example = {
      {"joints", Texts{"revolute", "revolute", "prismatic", "spherical"}},
      {"names", Texts{"base", "shoulder", "boom", "load"}},
      {"places_m", MatrixRows{{0, 0, 2}, {0, 0, 1}, {4, 0, 0}, {3, 0, 0}}},
      {"turns_rad", MatrixRows{{0, 0, 0}, {0, 0.3, 0}, {0, 0, 0}, {0, 0, 0}}},
      {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {0, 0, 1}}},
      {"masses_kg", Numbers{80.0, 40.0, 20.0, 15.0}},
      {"centres_m", MatrixRows{{0, 0, 0.5}, {2, 0, 0}, {1, 0, 0}, {0, 0.5, -3}}},
      {"inertias_kgm2", MatrixRows{{20, 0, 0, 20, 0, 10},
                                   {1, 0, 0, 60, 0, 60},
                                   {0.5, 0, 0, 15, 0, 15},
                                   {20, 1, 0, 30, 0, 10}}},
      {"damping", Numbers{4000.0, 20000.0, 3000.0, 800.0}},
      {"frames", Texts{"tip"}},
      {"frame_joints", Texts{"boom"}},
      {"frame_points_m", MatrixRows{{3, 0, 0}}},
      {"frame_kinds", Texts{kWrench}},
  };
  return type;
}

}  // namespace portwave
