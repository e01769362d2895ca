#include <algorithm>
#include <cmath>

#include "mechanisms/articulated_lanes.hpp"
#include "mechanisms/articulated_poses.hpp"
#include "mechanisms/articulated_tree.hpp"

namespace portwave::articulated {

void Motion::start_at(const double* q) {
  std::copy_n(q, tree_.positions, q_.data());
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    const Body& body = tree_.bodies[i];
    const double* const own = q + body.q;
    Path& path = paths_[i];
    path.place_from = path.place_to = path.place_mean = body.place;
    switch (body.kind) {
      case JointKind::revolute:
        path.cosine = std::cos(own[0]);
        path.sine = std::sin(own[0]);
        path.from = turned_across(path.cosine, path.sine, body.to_joint);
        path.from.row[2] = body.to_joint.row[2];
        break;
      case JointKind::prismatic:
        path.from = path.to = path.mean = body.to_joint;
        path.axis = body.to_joint.row[2];
        path.place_from = body.place + own[0] * path.axis;
        break;
      case JointKind::spherical:
      case JointKind::free:
        path.from = transposed(rotation(own + first_turn(body))).times(body.to_joint);
        if (body.kind == JointKind::free) path.place_from = {own[0], own[1], own[2]};
        break;
    }
    const bool has_parent = body.parent >= 0;
    const Vec3 before = has_parent ? links_[static_cast<std::size_t>(body.parent)].up_from : kUp;
    links_[i].up_from = path.from * before;
  }
}

Poses Motion::start_poses() const {
  Poses out;
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    out.turn[i] = paths_[i].from;
    out.place[i] = paths_[i].place_from;
  }
  return out;
}

void Motion::end_at(const double* q_next) {
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    const Body& body = tree_.bodies[i];
    Path& path = paths_[i];
    const double* const own = q_next + body.q;
    switch (body.kind) {
      case JointKind::revolute:
        end_of_angle(body, own[0], path);
        break;
      case JointKind::prismatic:
        path.place_to = body.place + own[0] * path.axis;
        path.place_mean = mean(path.place_from, path.place_to);
        break;
      case JointKind::free:
        path.place_to = {own[0], own[1], own[2]};
        path.place_mean = mean(path.place_from, path.place_to);
        end_of_turn(body, own + 3, path);
        break;
      case JointKind::spherical:
        end_of_turn(body, own, path);
        break;
    }
  }
}

/// With the middle φ and the half χ of the turn, (cos φ, sin φ) at the ends have the mean cos χ (cos, sin)φ and
/// the increment (sin χ/χ)(−sin, cos)φ Δq.
void Motion::end_of_angle(const Body& body, double angle, Path& path) const {
  const double half = 0.5 * (angle - q_[static_cast<std::size_t>(body.q)]);
  const HalfTurn by(half);
  const double c = by.cosine, s = by.sine;
  const double middle_c = path.cosine * c - path.sine * s;
  const double middle_s = path.sine * c + path.cosine * s;
  const Mat3& A = body.to_joint;
  path.to = turned_across(middle_c * c - middle_s * s, middle_s * c + middle_c * s, A);
  path.mean = turned_across(c * middle_c, c * middle_s, A);
  path.to.row[2] = path.mean.row[2] = A.row[2];
  path.turn[0] = turned_across(-by.sinc * middle_s, by.sinc * middle_c, A);
  path.half = half;
  path.by = by;
}

/// E = N/s, N quadratic in the quaternion and s its squared length: ΔN = s̄ ΔE + Ē Δs.
void Motion::end_of_turn(const Body& body, const double* next, Path& path) const {
  const double* const start = q_.data() + body.q + first_turn(body);
  std::array<double, 4>& middle = path.middle;
  for (std::size_t k = 0; k < 4; ++k) middle[k] = 0.5 * (start[k] + next[k]);
  const double both = 0.5 * (square(start) + square(next));
  path.to = transposed(rotation(next)).times(body.to_joint);
  path.mean = 0.5 * (path.from + path.to);
  for (std::size_t k = 0; k < 4; ++k) {
    const Mat3 N =
        transposed(square_slope(middle.data(), static_cast<int>(k))).times(body.to_joint);
    path.turn[k] = (1.0 / both) * (N - (2.0 * middle[k]) * path.mean);
  }
}

void Motion::run(const double* v, const double* v_next, double* slope, double* momentum) {
  run_out(v, v_next);
  run_back(slope, momentum);
}

/// Velocities from the base on.
void Motion::run_out(const double* v, const double* v_next) {
  const Spatial<Pair> rest = {nothing<Pair>(), nothing<Pair>()};
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    const Body& body = tree_.bodies[i];
    const Path& path = paths_[i];
    Link& link = links_[i];
    const Link* const parent =
        body.parent < 0 ? nullptr : &links_[static_cast<std::size_t>(body.parent)];
    const Spatial<Pair>& from = parent == nullptr ? rest : parent->from;
    const Spatial<Pair>& to = parent == nullptr ? rest : parent->to;
    const auto velocity = [&](int k) { return pair(v[body.v + k], v_next[body.v + k]); };
    Vec<Pair> shift_from, shift_to;
    if (body.kind == JointKind::free) {
      shift_from = shift_to = {velocity(0), velocity(1), velocity(2)};
    } else {
      shift_from = from.shift - cross(path.place_from, from.turn);
      shift_to = to.shift - cross(path.place_to, to.turn);
    }
    link.before_to = {to.turn, shift_to};
    link.before_mean = {mean(from.turn, to.turn), mean(shift_from, shift_to)};
    link.from = {path.from * from.turn, path.from * shift_from};
    link.to = {path.to * to.turn, path.to * shift_to};
    if (body.kind == JointKind::revolute) {
      link.from.turn.z += velocity(0);
      link.to.turn.z += velocity(0);
    } else if (body.kind == JointKind::prismatic) {
      link.from.shift.z += velocity(0);
      link.to.shift.z += velocity(0);
    } else {
      const int k = first_turn(body);
      const Vec<Pair> turn = {velocity(k), velocity(k + 1), velocity(k + 2)};
      link.from.turn += turn;
      link.to.turn += turn;
    }
    // The force on the one velocity's increment is the momentum of the other.
    const Spatial<Pair> own = momentum_of<Pair>(
        body, {mean(link.from.turn, link.to.turn), mean(link.from.shift, link.to.shift)});
    link.force = {swapped(own.turn), swapped(own.shift)};
    link.momentum = momentum_of<double>(body, {lane(link.to.turn, 1), lane(link.to.shift, 1)});
    link.up_before_to = parent == nullptr ? kUp : parent->up_to;
    link.up_before_mean = parent == nullptr ? kUp : mean(parent->up_from, parent->up_to);
    link.up_to = path.to * link.up_before_to;
    link.lift = tree_.gravity * body.moment;
  }
}

/// Forces back to the base.
void Motion::run_back(double* slope, double* momentum) {
  for (std::size_t i = tree_.bodies.size(); i-- > 0;) {
    const Body& body = tree_.bodies[i];
    const Path& path = paths_[i];
    const Link& link = links_[i];
    const Spatial<Pair>& force = link.force;
    const Vec<Pair> back = path.mean.back(force.shift);
    double* const own = slope + body.q;
    if (body.kind == JointKind::prismatic) {
      own[0] = 0.5 * sum(dot(back, cross(path.axis, link.before_mean.turn))) +
               tree_.weight[i] * dot(path.axis, link.up_before_mean);
    } else {
      const int first = first_turn(body), count = has_quaternion(body) ? 4 : 1;
      for (int k = 0; k < first; ++k) own[k] = k == 2 ? tree_.weight[i] : 0.0;
      for (int k = 0; k < count; ++k) {
        const Mat3& D = path.turn[static_cast<std::size_t>(k)];
        const Pair work = dot(force.turn, D * link.before_mean.turn) +
                          dot(force.shift, D * link.before_mean.shift);
        own[first + k] = dot(link.lift, D * link.up_before_mean) - 0.5 * sum(work);
      }
    }
    const Vec3 momentum_back = path.to.back(link.momentum.shift);
    double* const p = momentum + body.v;
    if (body.kind == JointKind::revolute) {
      p[0] = link.momentum.turn.z;
    } else if (body.kind == JointKind::prismatic) {
      p[0] = link.momentum.shift.z;
    } else {
      const int k = first_turn(body);
      p[k] = link.momentum.turn.x;
      p[k + 1] = link.momentum.turn.y;
      p[k + 2] = link.momentum.turn.z;
      if (k > 0) {
        p[0] = momentum_back.x;
        p[1] = momentum_back.y;
        p[2] = momentum_back.z;
      }
    }
    if (body.parent < 0) continue;
    Link& parent = links_[static_cast<std::size_t>(body.parent)];
    parent.force.turn += path.mean.back(force.turn) + cross(path.place_mean, back);
    parent.force.shift += back;
    parent.momentum.turn += path.to.back(link.momentum.turn) + cross(path.place_to, momentum_back);
    parent.momentum.shift += momentum_back;
    parent.lift += path.mean.back(link.lift) + tree_.weight[i] * path.place_mean;
  }
}

}  // namespace portwave::articulated
