#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "mechanisms/articulated_tree.hpp"
#include "mechanisms/articulated_vector.hpp"

namespace portwave::articulated {

/// Where the bodies of a tree are, each beside its parent.
struct Poses {
  std::array<Mat3, kMostBodies> turn;
  std::array<Vec3, kMostBodies> place;

  void set(const Tree& tree, const double* q);
  /// Tree::mass_matrix, by composite inertias, each carried to the joint of the parent.
  void mass_matrix(const Tree& tree, MassMatrix& M) const;
  /// Tree::point_forces.
  void point_forces(const Tree& tree, std::span<const Point> points, double* out) const;

  /// put(velocity, the part of a force on a body that acts on it), for all velocities that move the body.
  template <class Put>
  void carry(const Tree& tree, int body, Spatial<double> force, const Put& put) const {
    while (true) {
      const Body& own = tree.bodies[static_cast<std::size_t>(body)];
      const Mat3& E = turn[static_cast<std::size_t>(body)];
      const Vec3 back = E.back(force.shift);
      if (own.kind == JointKind::revolute) {
        put(own.v, force.turn.z);
      } else if (own.kind == JointKind::prismatic) {
        put(own.v, force.shift.z);
      } else {
        int v = own.v;
        if (own.kind == JointKind::free) {
          put(v++, back.x);
          put(v++, back.y);
          put(v++, back.z);
        }
        put(v, force.turn.x);
        put(v + 1, force.turn.y);
        put(v + 2, force.turn.z);
      }
      if (own.parent < 0) return;
      force.turn = E.back(force.turn) + cross(place[static_cast<std::size_t>(body)], back);
      force.shift = back;
      body = own.parent;
    }
  }
};

}  // namespace portwave::articulated
