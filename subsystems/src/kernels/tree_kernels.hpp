#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

/// Gradients of the energy of a tree of rigid bodies (articulated::Tree), at as many states as a lane group has.
namespace tree {

inline constexpr int kMostBodies = 24, kMostVelocities = 24;

enum class Joint { revolute, prismatic, spherical, free };

/// articulated::Body, with matrices row by row.
struct Body {
  Joint joint = Joint::revolute;
  int parent = -1;
  int q = 0, v = 0;
  double to_joint[9] = {};
  double place[3] = {};
  double mass = 0.0;
  double moment[3] = {};
  double inertia[9] = {};
  double weight = 0.0;  ///< with that of the bodies that hang on it
};

/// A number of a state is kLaneGroup doubles, one for each lane.
struct Task {
  const Body* bodies = nullptr;
  int count = 0;
  int positions = 0, velocities = 0;
  double gravity = 0.0;
  const double* x = nullptr;  ///< (q, p)
  double* g =
      nullptr;  ///< ∂H/∂q, then v = M⁻¹p; not a number in lanes where M is not positive definite
};

struct Kernels {
  void (*gradients)(const Task& task);
};

const Kernels& kernels();

}  // namespace tree

PORTWAVE_DECLARE_KERNELS(const tree::Kernels kTree)

}  // namespace portwave
