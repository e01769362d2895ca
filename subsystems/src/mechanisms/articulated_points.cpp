#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "mechanisms/articulated_lanes.hpp"
#include "mechanisms/articulated_tree.hpp"

// What forces and torques on points of bodies do to the velocities over a step. The transposed map takes mean
// velocities to the ways of the points, exactly: what is joined at points stays joined.

namespace portwave::articulated {
/// A turn as a unit quaternion (w, u): σ = u/(1 + w) is tan of a quarter of the angle, along the axis.
struct Motion::Turn {
  double w;
  Vec3 u;

  Vec3 quarter() const { return (1.0 / (1.0 + w)) * u; }
};

namespace {

/// The turn by R⁺Rᵀ, R and R⁺ of quaternions.
Motion::Turn turn_between(const double* from, const double* to) {
  const Vec3 u = {from[1], from[2], from[3]}, v = {to[1], to[2], to[3]};
  const double w = from[0] * to[0] + dot(u, v);
  const Vec3 turned = from[0] * v - to[0] * u + cross(u, v);
  const double inverse = std::copysign(1.0 / std::sqrt(w * w + dot(turned, turned)), w);
  return {inverse * w, inverse * turned};
}

/// The turn of which σ is known.
Motion::Turn turn_by(const Vec3& quarter) {
  const double square = dot(quarter, quarter), inverse = 1.0 / (1.0 + square);
  return {inverse * (1.0 - square), 2.0 * inverse * quarter};
}

Mat3 half_of(const Vec3& quarter) {
  const double quaternion[] = {1.0, quarter.x, quarter.y, quarter.z};
  return rotation(quaternion);
}

}  // namespace

/// A body's axes in the world at both ends, and how its mean angular velocity ω = (4/h)σ, σ of its turn over the step,
/// follows from that of its parent and that of its joint. With (a₀, a) and (b₀, b) the turns of the parent and of the
/// joint, (c₀, c) their product, R the parent's axes half way, and P the projection along a,
///   ω = b₀(1 + a₀)/(1 + c₀) ω of the parent + (1 + b₀)/(1 + c₀) (a₀P + I − P) R ω of the joint.
/// Of a ball joint that is the ω by which its quaternion is stepped, of a revolute one v̄ tan(¼Δq)/(¼Δq).
struct Motion::WorldPath {
  Mat3 from, to;     ///< from the body's axes to the world's
  Mat3 parent_mean;  ///< of the parent's
  Mat3 to_joint;     ///< (1 + b₀)/(1 + c₀) times the transpose of (a₀P + I − P)R
  double gain;       ///< b₀(1 + a₀)/(1 + c₀)
  Vec3 quarter;      ///< σ
};

void Motion::follow(std::span<WorldPath> worlds, bool turns) const {
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    const Body& body = tree_.bodies[i];
    const Path& path = paths_[i];
    WorldPath& own = worlds[i];
    const bool has_parent = body.parent >= 0;
    const WorldPath* const parent =
        has_parent ? &worlds[static_cast<std::size_t>(body.parent)] : nullptr;
    own.from = has_parent ? parent->from.times(transposed(path.from)) : transposed(path.from);
    own.to = has_parent ? parent->to.times(transposed(path.to)) : transposed(path.to);
    own.parent_mean = has_parent ? 0.5 * (parent->from + parent->to) : identity();
    if (!turns) continue;
    const Vec3 before = has_parent ? parent->quarter : Vec3{0, 0, 0};
    const Turn a = turn_by(before), b = turn_of_joint(i);
    const Mat3 half = has_parent ? half_of(before).times(parent->from) : identity();
    const double c = a.w * b.w - dot(a.u, half * b.u);
    // (a₀P + I − P)v = v − a(a·v)/(1 + a₀), as 1 − a₀ = a²/(1 + a₀).
    const Vec3 of_joint = half * b.quarter();
    const Vec3 bent = of_joint - (dot(a.u, of_joint) / (1.0 + a.w)) * a.u;
    const double joint_gain = (1.0 + b.w) / (1.0 + c);
    own.gain = b.w * (1.0 + a.w) / (1.0 + c);
    own.quarter = own.gain * before + joint_gain * bent;
    const Mat3 back = transposed(half);
    for (int k = 0; k < 3; ++k) {
      own.to_joint.row[k] =
          joint_gain * (back.row[k] - (dot(back.row[k], a.u) / (1.0 + a.w)) * a.u);
    }
  }
}

/// In the axes of the parent.
Motion::Turn Motion::turn_of_joint(std::size_t i) const {
  const Body& body = tree_.bodies[i];
  const Path& path = paths_[i];
  if (body.kind == JointKind::prismatic) return {1.0, {0, 0, 0}};
  if (body.kind == JointKind::revolute) {
    return {path.by.cosine, path.by.sine * body.to_joint.row[2]};
  }
  const double* const start = q_.data() + body.q + first_turn(body);
  double end[4];
  for (std::size_t k = 0; k < 4; ++k) end[k] = 2.0 * path.middle[k] - start[k];
  const Turn turn = turn_between(start, end);
  return {turn.w, body.to_joint.back(turn.u)};
}

/// Of the torque T on a body, what acts on the velocities of joint i.
void Motion::torque_at(std::size_t i, const WorldPath& own, const Vec3& torque, double* out) const {
  const Body& body = tree_.bodies[i];
  const Vec3 at_parent = own.to_joint * torque;
  if (body.kind == JointKind::revolute) {
    const double quarter = 0.5 * paths_[i].half;
    const bool is_small = std::abs(quarter) < 1e-4;
    const double stretch = is_small ? 1.0 + quarter * quarter / 3.0 : std::tan(quarter) / quarter;
    out[body.v] = stretch * dot(body.to_joint.row[2], at_parent);
  } else if (body.kind != JointKind::prismatic) {
    const Vec3 own_axes = rotation(paths_[i].middle.data()).back(body.to_joint * at_parent);
    double* const turn = out + body.v + first_turn(body);
    turn[0] = own_axes.x;
    turn[1] = own_axes.y;
    turn[2] = own_axes.z;
  }
}

/// Of the force F on a point, what acts on the velocities of joint i. The way of a point that is at s in the body's
/// axes, E from those of the parent and R of the parent in the world, is R̄Δ(Eᵀs) + ΔR Ēᵀs̄; ΔR is taken apart in the
/// same way, so that s̄ is carried on by means.
void Motion::force_at(std::size_t i, const WorldPath& own, const Vec3& force, const Vec3& place,
                      double* out) const {
  const Body& body = tree_.bodies[i];
  const Path& path = paths_[i];
  const Vec3 at_parent = own.parent_mean.back(force);
  if (body.kind == JointKind::prismatic) {
    out[body.v] = dot(path.axis, at_parent);
    return;
  }
  if (body.kind == JointKind::revolute) {
    out[body.v] = dot(path.turn[0] * at_parent, place);
    return;
  }
  if (body.kind == JointKind::free) {
    out[body.v] = force.x;
    out[body.v + 1] = force.y;
    out[body.v + 2] = force.z;
  }
  double work[4];
  for (std::size_t k = 0; k < 4; ++k) work[k] = dot(path.turn[k] * at_parent, place);
  const auto& m = path.middle;
  double* const turn = out + body.v + first_turn(body);
  turn[0] = 0.5 * (m[0] * work[1] - m[1] * work[0] + m[3] * work[2] - m[2] * work[3]);
  turn[1] = 0.5 * (m[0] * work[2] - m[2] * work[0] + m[1] * work[3] - m[3] * work[1]);
  turn[2] = 0.5 * (m[0] * work[3] - m[3] * work[0] + m[2] * work[1] - m[1] * work[2]);
}

void Motion::point_forces(std::span<const Point> points, double* out) const {
  if (points.empty()) return;
  std::array<WorldPath, kMostBodies> worlds;
  const int last = std::ranges::max(points, {}, &Point::body).body;  // parents come first
  follow(std::span(worlds).first(static_cast<std::size_t>(last) + 1),
         std::ranges::any_of(points, &Point::turns));
  std::fill_n(out, 3 * tree_.velocities * static_cast<std::ptrdiff_t>(points.size()), 0.0);
  for (const Point& point : points) {
    Vec3 place = point.place;
    double gain = 1.0;
    for (int i = point.body; i >= 0; i = tree_.bodies[static_cast<std::size_t>(i)].parent) {
      const auto at = static_cast<std::size_t>(i);
      const Path& path = paths_[at];
      const WorldPath& own = worlds[at];
      double* column = out;
      for (int k = 0; k < 3; ++k, column += tree_.velocities) {
        if (point.turns) {
          torque_at(at, own, gain * kAxes[k], column);
        } else {
          force_at(at, own, kAxes[k], place, column);
        }
      }
      if (point.turns) {
        gain *= own.gain;
      } else {
        place = path.place_mean + path.mean.back(place);
      }
    }
    out += 3 * tree_.velocities;
  }
}

}  // namespace portwave::articulated
