#pragma once

#include <type_traits>

#include "core/lane_values.hpp"
#include "mechanisms/articulated_tree.hpp"
#include "mechanisms/articulated_vector.hpp"

// What the recursions over a tree and their derivatives share.

namespace portwave::articulated {

template <class T>
[[gnu::always_inline]] inline T dot(const Vec<T>& a,
                                    const Vec<T>& b) requires(!std::is_same_v<T, double>) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

inline LaneValues<2> pair(double a, double b) {
  const double both[] = {a, b};
  return LaneValues<2>::from(both);
}

inline LaneValues<2> swapped(const LaneValues<2>& a) {
  double both[2];
  a.to(both);
  return pair(both[1], both[0]);
}

inline Vec<LaneValues<2>> swapped(const Vec<LaneValues<2>>& a) {
  return {swapped(a.x), swapped(a.y), swapped(a.z)};
}

template <int width>
double lane(const LaneValues<width>& a, int which) {
  double all[width];
  a.to(all);
  return all[which];
}

template <int width>
Vec3 lane(const Vec<LaneValues<width>>& a, int which) {
  return {lane(a.x, which), lane(a.y, which), lane(a.z, which)};
}

inline constexpr int kWidth = kDirections;
using Lanes = LaneValues<kWidth>;

inline Lanes only(int which, double value) {
  double all[kWidth] = {};
  all[which] = value;
  return Lanes::from(all);
}

inline void put(Vec<Lanes>& to, int which, const Vec3& value) {
  to += Vec<Lanes>{only(which, value.x), only(which, value.y), only(which, value.z)};
}

inline bool is_lane(int which) { return which >= 0 && which < kWidth; }

inline double sum(const LaneValues<2>& a) { return lane(a, 0) + lane(a, 1); }

/// I V
template <class T>
[[gnu::always_inline]] inline Spatial<T> momentum_of(const Body& body, const Spatial<T>& velocity) {
  return {body.inertia * velocity.turn + cross(body.moment, velocity.shift),
          body.mass * velocity.shift - cross(body.moment, velocity.turn)};
}

template <class T>
[[gnu::always_inline]] inline Vec<T> mean(const Vec<T>& a, const Vec<T>& b) {
  return 0.5 * (a + b);
}

/// R of a quaternion times its squared length, and its derivative by one of the four, which is linear in it.
inline Mat3 square_slope(const double* quaternion, int k) {
  const double w = quaternion[0], x = quaternion[1], y = quaternion[2], z = quaternion[3];
  switch (k) {
    case 0:
      return 2.0 * Mat3{{{w, -z, y}, {z, w, -x}, {-y, x, w}}};
    case 1:
      return 2.0 * Mat3{{{x, y, z}, {y, -x, -w}, {z, w, -x}}};
    case 2:
      return 2.0 * Mat3{{{-y, x, w}, {x, y, z}, {-w, z, -y}}};
    default:
      return 2.0 * Mat3{{{-z, -w, x}, {w, -z, y}, {x, y, z}}};
  }
}

inline double square(const double* quaternion) {
  double out = 0.0;
  for (int k = 0; k < 4; ++k) out += quaternion[k] * quaternion[k];
  return out;
}

inline int first_turn(const Body& body) { return body.kind == JointKind::free ? 3 : 0; }

inline bool has_quaternion(const Body& body) {
  return body.kind == JointKind::spherical || body.kind == JointKind::free;
}

/// Rz(angle)ᵀ A without its last row, for cosines and sines of any length.
[[gnu::always_inline]] inline Mat3 turned_across(double cosine, double sine, const Mat3& A) {
  return {{cosine * A.row[0] + sine * A.row[1], cosine * A.row[1] - sine * A.row[0], {0, 0, 0}}};
}

}  // namespace portwave::articulated
