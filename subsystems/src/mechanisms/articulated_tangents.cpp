#include <algorithm>
#include <cmath>

#include "base/sinc.hpp"
#include "mechanisms/articulated_lanes.hpp"
#include "mechanisms/articulated_tree.hpp"

namespace portwave::articulated {

/// How E⁺ and D depend on the positions of their own joint.
struct Motion::OwnSlopes {
  int count = 0;  ///< of positions that turn
  std::array<Mat3, 4> to;
  std::array<std::array<Mat3, 4>, 4> turn;  ///< [k][m]: D_k by position m
};

Motion::OwnSlopes Motion::own_slopes(int i, const double* q_next) const {
  const Body& body = tree_.bodies[static_cast<std::size_t>(i)];
  const Path& path = paths_[static_cast<std::size_t>(i)];
  OwnSlopes out;
  if (body.kind == JointKind::prismatic) return out;
  if (body.kind == JointKind::revolute) {
    out.count = 1;
    const double start = q_[static_cast<std::size_t>(body.q)], end = q_next[body.q];
    const double half = 0.5 * (end - start), middle = start + half;
    const Sinc sinc(half);
    const double c = std::cos(middle), s = std::sin(middle);
    out.to[0] = turned_across(-std::sin(end), std::cos(end), body.to_joint);
    out.turn[0][0] = turned_across(-0.5 * (sinc.value * c + sinc.slope * s),
                                   0.5 * (sinc.slope * c - sinc.value * s), body.to_joint);
    return out;
  }
  out.count = 4;
  const double* const from = q_.data() + body.q + first_turn(body);
  const double* const next = q_next + body.q + first_turn(body);
  double middle[4];
  for (int k = 0; k < 4; ++k) middle[k] = 0.5 * (from[k] + next[k]);
  const double both = 0.5 * (square(from) + square(next)), end = square(next);
  for (int m = 0; m < 4; ++m) {
    const Mat3 N = transposed(square_slope(next, m)).times(body.to_joint);
    out.to[static_cast<std::size_t>(m)] = (1.0 / end) * (N - (2.0 * next[m]) * path.to);
  }
  for (int k = 0; k < 4; ++k) {
    for (int m = 0; m < 4; ++m) {
      double unit[4] = {0, 0, 0, 0};
      unit[m] = 0.5;
      Mat3 D = transposed(square_slope(unit, k)).times(body.to_joint);
      if (k == m) D = D - path.mean;
      D = D - middle[k] * out.to[static_cast<std::size_t>(m)] -
          next[m] * path.turn[static_cast<std::size_t>(k)];
      out.turn[static_cast<std::size_t>(k)][static_cast<std::size_t>(m)] = (1.0 / both) * D;
    }
  }
  return out;
}

/// The derivatives of what a Link holds, by kWidth directions.
struct Motion::Tangent {
  std::array<Spatial<Lanes>, 2> to, before_mean, force;  ///< of v and of v⁺
  Spatial<Lanes> from;                                   ///< of v⁺ alone
  Spatial<Lanes> momentum;
  Vec<Lanes> up, up_before_mean, lift;
  std::array<Vec<Lanes>, 2> back;  ///< `force.shift` in the parent's axes
  Vec<Lanes> momentum_back;        ///< and `momentum.shift`
};

/// Directions beside one another, all of them positions or all of them velocities. The velocities v⁺ move neither
/// E⁺ nor what v gives.
struct Motion::Directions {
  int first;
  bool are_rates;
  const OwnSlopes* slopes;  ///< by body, for positions

  /// The lane of a position or velocity; none: outside 0 to kWidth − 1.
  int lane_of_position(int q) const { return are_rates ? -1 : q - first; }
  int lane_of_velocity(int v) const { return are_rates ? v - first : -1; }

  /// v⁺ moves the force on the increment of v alone, and its own mean alone: sides 0 to forces() − 1, and from
  /// first_mean() on.
  int forces() const { return are_rates ? 1 : 2; }
  int first_mean() const { return are_rates ? 1 : 0; }

  /// act(lane, its OwnSlopes, number) for the positions of a body that turn it.
  template <class Act>
  void for_turns(const Body& body, std::size_t i, const Act& act) const {
    if (are_rates) return;
    for (int m = 0; m < slopes[i].count; ++m) {
      const int lane = body.q + first_turn(body) + m - first;
      if (lane >= 0 && lane < kWidth) act(lane, slopes[i], static_cast<std::size_t>(m));
    }
  }
};

void Motion::differentiate(const double* q_next, double* slopes, double* momenta) const {
  std::array<OwnSlopes, kMostBodies> own;
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    own[i] = own_slopes(static_cast<int>(i), q_next);
  }
  for (const bool are_rates : {false, true}) {
    const int count = are_rates ? tree_.velocities : tree_.positions;
    double* const by_slopes = slopes + (are_rates ? tree_.positions * tree_.positions : 0);
    double* const by_momenta = momenta + (are_rates ? tree_.positions * tree_.velocities : 0);
    for (int first = 0; first < count; first += kWidth) {
      const Directions directions = {first, are_rates, own.data()};
      std::array<Tangent, kMostBodies> tangents;
      tangents_out(directions, tangents.data());
      tangents_back(directions, tangents.data(), by_slopes, by_momenta);
    }
  }
}

void Motion::tangents_out(const Directions& directions, Tangent* tangents) const {
  const Spatial<Lanes> rest = {nothing<Lanes>(), nothing<Lanes>()};
  for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
    const Body& body = tree_.bodies[i];
    const Path& path = paths_[i];
    const Link& link = links_[i];
    Tangent& own = tangents[i];
    const Tangent* const parent = body.parent < 0 ? nullptr : &tangents[body.parent];
    if (!directions.are_rates) {
      own.up = parent == nullptr ? nothing<Lanes>() : parent->up;
      own.up_before_mean = 0.5 * own.up;
      own.up = path.to * own.up;
      directions.for_turns(body, i, [&](int at, const OwnSlopes& slopes, std::size_t m) {
        put(own.up, at, slopes.to[m] * link.up_before_to);
      });
      own.lift = nothing<Lanes>();
    }
    for (std::size_t c = directions.are_rates ? 1 : 0; c < 2; ++c) {
      const Spatial<Lanes>& to = parent == nullptr ? rest : parent->to[c];
      Vec<Lanes> shift = to.shift - cross(path.place_to, to.turn);
      if (!directions.are_rates) {
        const Vec3 turn_before = lane(link.before_to.turn, static_cast<int>(c));
        const Vec3 shift_before = lane(link.before_to.shift, static_cast<int>(c));
        const int at = directions.lane_of_position(body.q);
        if (body.kind == JointKind::prismatic && is_lane(at)) {
          put(shift, at, -1.0 * cross(path.axis, turn_before));
        }
        own.before_mean[c] = {0.5 * to.turn, 0.5 * shift};
        own.to[c] = {path.to * to.turn, path.to * shift};
        directions.for_turns(body, i, [&](int which, const OwnSlopes& slopes, std::size_t m) {
          put(own.to[c].turn, which, slopes.to[m] * turn_before);
          put(own.to[c].shift, which, slopes.to[m] * shift_before);
        });
        own.force[1 - c] = momentum_of<Lanes>(body, {0.5 * own.to[c].turn, 0.5 * own.to[c].shift});
        continue;
      }
      const Spatial<Lanes>& from = parent == nullptr ? rest : parent->from;
      Vec<Lanes> shift_from = from.shift - cross(path.place_from, from.turn);
      const auto add = [&](Vec<Lanes>& first, Vec<Lanes>& second, int velocity, const Vec3& axis) {
        const int at = directions.lane_of_velocity(velocity);
        if (!is_lane(at)) return;
        put(first, at, axis);
        put(second, at, axis);
      };
      const int turns = first_turn(body);
      for (int k = 0; k < turns; ++k) add(shift, shift_from, body.v + k, kAxes[k]);
      own.before_mean[1] = {mean(from.turn, to.turn), mean(shift_from, shift)};
      own.to[1] = {path.to * to.turn, path.to * shift};
      own.from = {path.from * from.turn, path.from * shift_from};
      if (body.kind == JointKind::prismatic) {
        add(own.to[1].shift, own.from.shift, body.v, kUp);
      } else if (body.kind == JointKind::revolute) {
        add(own.to[1].turn, own.from.turn, body.v, kUp);
      } else {
        for (int k = 0; k < 3; ++k) {
          add(own.to[1].turn, own.from.turn, body.v + turns + k, kAxes[k]);
        }
      }
      own.force[0] = momentum_of<Lanes>(
          body, {mean(own.from.turn, own.to[1].turn), mean(own.from.shift, own.to[1].shift)});
    }
    own.momentum = momentum_of(body, own.to[1]);
  }
}

void Motion::tangents_back(const Directions& directions, Tangent* tangents, double* slopes,
                           double* momenta) const {
  const int columns =
      (directions.are_rates ? tree_.velocities : tree_.positions) - directions.first;
  const auto store = [&](const Lanes& values, int row, int rows, double* to) {
    double all[kWidth];
    values.to(all);
    for (int d = 0; d < std::min(kWidth, columns); ++d) {
      to[(directions.first + d) * rows + row] = all[d];
    }
  };
  for (std::size_t i = tree_.bodies.size(); i-- > 0;) {
    const Body& body = tree_.bodies[i];
    Tangent& own = tangents[i];
    const Mat3& to = paths_[i].to;
    for (int c = 0; c < directions.forces(); ++c) {
      Vec<Lanes>& back = own.back[static_cast<std::size_t>(c)];
      back = paths_[i].mean.back(own.force[static_cast<std::size_t>(c)].shift);
      directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
        put(back, at, 0.5 * other.to[m].back(lane(links_[i].force.shift, c)));
      });
    }
    own.momentum_back = to.back(own.momentum.shift);
    directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
      put(own.momentum_back, at, other.to[m].back(links_[i].momentum.shift));
    });
    std::array<Lanes, 7> slope;
    for (Lanes& one : slope) one = Lanes::all(0.0);
    if (body.kind == JointKind::prismatic) {
      slope[0] = tangent_of_slide(directions, i, own);
    } else {
      const int first = first_turn(body), turns = has_quaternion(body) ? 4 : 1;
      for (int k = 0; k < turns; ++k) {
        slope[static_cast<std::size_t>(first + k)] =
            tangent_of_turn(directions, i, static_cast<std::size_t>(k), own);
      }
    }
    const Vec<Lanes>&force = own.momentum_back, &torque = own.momentum.turn;
    std::array<Lanes, 6> p = {force.x, force.y, force.z, torque.x, torque.y, torque.z};
    if (body.kind == JointKind::revolute) p[0] = torque.z;
    if (body.kind == JointKind::prismatic) p[0] = own.momentum.shift.z;
    if (body.kind == JointKind::spherical) std::copy_n(p.begin() + 3, 3, p.begin());
    for (int k = 0; k < body.position_count(); ++k) {
      store(slope[static_cast<std::size_t>(k)], body.q + k, tree_.positions, slopes);
    }
    for (int k = 0; k < body.velocity_count(); ++k) {
      store(p[static_cast<std::size_t>(k)], body.v + k, tree_.velocities, momenta);
    }
    if (body.parent >= 0) carry_tangents(directions, i, own, tangents[body.parent]);
  }
}

/// Of ∂̄H by the place of a prismatic joint.
Motion::Lanes Motion::tangent_of_slide(const Directions& directions, std::size_t i,
                                       const Tangent& own) const {
  const Path& path = paths_[i];
  const Link& link = links_[i];
  Lanes out = Lanes::all(0.0);
  for (int c = 0; c < 2; ++c) {
    const auto side = static_cast<std::size_t>(c);
    if (c < directions.forces()) {
      out += 0.5 * dot(cross(path.axis, lane(link.before_mean.turn, c)), own.back[side]);
    }
    if (c < directions.first_mean()) continue;
    const Vec3 back = path.mean.back(lane(link.force.shift, c));
    out += 0.5 * dot(cross(back, path.axis), own.before_mean[side].turn);
  }
  if (!directions.are_rates) out += tree_.weight[i] * dot(path.axis, own.up_before_mean);
  return out;
}

/// Of ∂̄H by a position that turns the body.
Motion::Lanes Motion::tangent_of_turn(const Directions& directions, std::size_t i, std::size_t k,
                                      const Tangent& own) const {
  const Mat3& D = paths_[i].turn[k];
  const Link& link = links_[i];
  const Body& body = tree_.bodies[i];
  Lanes out = Lanes::all(0.0);
  for (int c = 0; c < 2; ++c) {
    const auto side = static_cast<std::size_t>(c);
    const Vec3 turn_mean = lane(link.before_mean.turn, c);
    const Vec3 shift_mean = lane(link.before_mean.shift, c);
    const Vec3 force = lane(link.force.shift, c), torque = lane(link.force.turn, c);
    if (c < directions.forces()) {
      out -= 0.5 * (dot(D * turn_mean, own.force[side].turn) +
                    dot(D * shift_mean, own.force[side].shift));
    }
    if (c >= directions.first_mean()) {
      out -= 0.5 * (dot(D.back(torque), own.before_mean[side].turn) +
                    dot(D.back(force), own.before_mean[side].shift));
    }
    directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
      const Mat3& dD = other.turn[k][m];
      out -= only(at, 0.5 * (dot(torque, dD * turn_mean) + dot(force, dD * shift_mean)));
    });
  }
  if (directions.are_rates) return out;
  out += dot(D * link.up_before_mean, own.lift) + dot(D.back(link.lift), own.up_before_mean);
  directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
    out += only(at, dot(link.lift, other.turn[k][m] * link.up_before_mean));
  });
  return out;
}

/// What a body adds to the forces on its parent.
void Motion::carry_tangents(const Directions& directions, std::size_t i, const Tangent& own,
                            Tangent& parent) const {
  const Body& body = tree_.bodies[i];
  const Path& path = paths_[i];
  const Link& link = links_[i];
  const int here = directions.lane_of_position(body.q);
  const bool slides = body.kind == JointKind::prismatic && is_lane(here);
  for (int c = 0; c < directions.forces(); ++c) {
    const auto side = static_cast<std::size_t>(c);
    Vec<Lanes> torque =
        path.mean.back(own.force[side].turn) + cross(path.place_mean, own.back[side]);
    directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
      put(torque, at, 0.5 * other.to[m].back(lane(link.force.turn, c)));
    });
    if (slides) {
      put(torque, here, 0.5 * cross(path.axis, path.mean.back(lane(link.force.shift, c))));
    }
    parent.force[side].turn += torque;
    parent.force[side].shift += own.back[side];
  }
  Vec<Lanes> turn = path.to.back(own.momentum.turn) + cross(path.place_to, own.momentum_back);
  directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
    put(turn, at, other.to[m].back(link.momentum.turn));
  });
  if (slides) put(turn, here, cross(path.axis, path.to.back(link.momentum.shift)));
  parent.momentum.turn += turn;
  parent.momentum.shift += own.momentum_back;
  if (directions.are_rates) return;
  Vec<Lanes> lift = path.mean.back(own.lift);
  directions.for_turns(body, i, [&](int at, const OwnSlopes& other, std::size_t m) {
    put(lift, at, 0.5 * other.to[m].back(link.lift));
  });
  if (slides) put(lift, here, (0.5 * tree_.weight[i]) * path.axis);
  parent.lift += lift;
}

}  // namespace portwave::articulated
