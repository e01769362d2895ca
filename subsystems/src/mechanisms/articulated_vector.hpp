#pragma once

#include <type_traits>

#include "core/lane_values.hpp"

// Vectors in space whose entries are numbers, or lanes of numbers that share one rotation. What the recursions
// spend their time in is always inlined: that is a third of a step.

namespace portwave::articulated {

/// T is double or LaneValues.
template <class T>
struct Vec {
  T x, y, z;

  Vec& operator+=(const Vec& other) {
    x += other.x;
    y += other.y;
    z += other.z;
    return *this;
  }
  friend Vec operator+(Vec a, const Vec& b) { return a += b; }
  friend Vec operator-(const Vec& a, const Vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec operator*(double a, const Vec& b) { return {a * b.x, a * b.y, a * b.z}; }
};

using Vec3 = Vec<double>;

inline constexpr Vec3 kUp = {0, 0, 1};
inline constexpr Vec3 kAxes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

template <class T>
T same(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T::all(value);
  }
}

template <class T>
Vec<T> nothing() {
  return {same<T>(0.0), same<T>(0.0), same<T>(0.0)};
}

template <class T>
[[gnu::always_inline]] inline T dot(const Vec3& a, const Vec<T>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <class T>
[[gnu::always_inline]] inline Vec<T> cross(const Vec3& a, const Vec<T>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/// A 3×3 matrix by its rows.
struct Mat3 {
  Vec3 row[3];

  template <class T>
  [[gnu::always_inline]] Vec<T> operator*(const Vec<T>& b) const {
    return {dot(row[0], b), dot(row[1], b), dot(row[2], b)};
  }
  /// Its transpose times b.
  template <class T>
  [[gnu::always_inline]] Vec<T> back(const Vec<T>& b) const {
    return {row[0].x * b.x + row[1].x * b.y + row[2].x * b.z,
            row[0].y * b.x + row[1].y * b.y + row[2].y * b.z,
            row[0].z * b.x + row[1].z * b.y + row[2].z * b.z};
  }
  Mat3 times(const Mat3& other) const {
    return {{other.back(row[0]), other.back(row[1]), other.back(row[2])}};
  }
  friend Mat3 operator+(const Mat3& a, const Mat3& b) {
    return {{a.row[0] + b.row[0], a.row[1] + b.row[1], a.row[2] + b.row[2]}};
  }
  friend Mat3 operator-(const Mat3& a, const Mat3& b) {
    return {{a.row[0] - b.row[0], a.row[1] - b.row[1], a.row[2] - b.row[2]}};
  }
  friend Mat3 operator*(double a, const Mat3& b) {
    return {{a * b.row[0], a * b.row[1], a * b.row[2]}};
  }
};

inline Mat3 identity() { return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }
inline Mat3 transposed(const Mat3& m) {
  return {{{m.row[0].x, m.row[1].x, m.row[2].x},
           {m.row[0].y, m.row[1].y, m.row[2].y},
           {m.row[0].z, m.row[1].z, m.row[2].z}}};
}

/// A velocity (of rotation, of a point), or a force (moment about a point, force).
template <class T>
struct Spatial {
  Vec<T> turn, shift;
};

}  // namespace portwave::articulated
