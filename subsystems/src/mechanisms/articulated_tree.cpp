#include "mechanisms/articulated_tree.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "mechanisms/articulated_poses.hpp"

namespace portwave::articulated {
namespace {

double length(const Vec3& a) { return std::sqrt(dot(a, a)); }

Mat3 cross_matrix(const Vec3& a) { return {{{0, -a.z, a.y}, {a.z, 0, -a.x}, {-a.y, a.x, 0}}}; }

Mat3 outer(const Vec3& a, const Vec3& b) { return {{a.x * b, a.y * b, a.z * b}}; }

/// Rz(angle)ᵀ A
Mat3 turned(double cosine, double sine, const Mat3& A) {
  return {{cosine * A.row[0] + sine * A.row[1], cosine * A.row[1] - sine * A.row[0], A.row[2]}};
}

/// E of a body at its positions, from the parent's axes.
Mat3 pose(const Body& body, const double* q) {
  switch (body.kind) {
    case JointKind::revolute:
      return turned(std::cos(q[0]), std::sin(q[0]), body.to_joint);
    case JointKind::prismatic:
      return body.to_joint;
    case JointKind::spherical:
      return transposed(rotation(q)).times(body.to_joint);
    case JointKind::free:
      break;
  }
  return transposed(rotation(q + 3));
}

Vec3 place(const Body& body, const double* q) {
  if (body.kind == JointKind::prismatic) return body.place + q[0] * body.to_joint.row[2];
  return body.kind == JointKind::free ? Vec3{q[0], q[1], q[2]} : body.place;
}

}  // namespace

int Body::position_count() const {
  switch (kind) {
    case JointKind::spherical:
      return 4;
    case JointKind::free:
      return 7;
    case JointKind::revolute:
    case JointKind::prismatic:
      break;
  }
  return 1;
}

int Body::velocity_count() const {
  return kind == JointKind::spherical ? 3 : kind == JointKind::free ? 6 : 1;
}

void Tree::complete() {
  positions = velocities = 0;
  weight.assign(bodies.size(), 0.0);
  std::vector<double> reach(bodies.size(), 0.0);
  potential_at_origin = 0.0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    Body& body = bodies[i];
    body.q = positions;
    body.v = velocities;
    positions += body.position_count();
    velocities += body.velocity_count();
    weight[i] = gravity * body.mass;
    const bool has_parent = body.parent >= 0;
    if (has_parent) reach[i] = reach[static_cast<std::size_t>(body.parent)];
    reach[i] += length(body.place);
    potential_at_origin += gravity * (body.mass * reach[i] + length(body.moment));
  }
  if (is_free()) potential_at_origin = 0.0;
  for (std::size_t i = bodies.size(); i-- > 0;) {
    if (bodies[i].parent >= 0) weight[static_cast<std::size_t>(bodies[i].parent)] += weight[i];
  }
}

bool Tree::is_free() const {
  return std::ranges::any_of(bodies, [](const Body& body) { return body.kind == JointKind::free; });
}

double Tree::potential(const double* q) const {
  std::array<Vec3, kMostBodies> up;
  double out = potential_at_origin;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = bodies[i];
    const Vec3 before = body.parent < 0 ? kUp : up[static_cast<std::size_t>(body.parent)];
    up[i] = pose(body, q + body.q) * before;
    out += gravity * dot(body.moment, up[i]) + weight[i] * dot(place(body, q + body.q), before);
  }
  return out;
}

namespace {

/// −½vᵀ∂M/∂q v + ∂V/∂q. A turn δ of a body in its own axes changes E u to E u + (E u) × δ.
void position_slopes(const Tree& tree, const Poses& poses, const double* q, const double* v,
                     double* slope) {
  struct Link {
    Vec3 turn_before, up_before;  ///< at the parent, in its axes
    Spatial<double> before, velocity,
        force;  ///< at the joint, without its own velocity, and with it
    Vec3 up, lift;
  };
  const std::vector<Body>& bodies = tree.bodies;
  std::array<Link, kMostBodies> links;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = bodies[i];
    const Mat3& E = poses.turn[i];
    Link& link = links[i];
    const double* const own = v + body.v;
    Vec3 shift = {0, 0, 0};
    link.turn_before = {0, 0, 0};
    link.up_before = kUp;
    if (body.parent >= 0) {
      const Link& parent = links[static_cast<std::size_t>(body.parent)];
      link.turn_before = parent.velocity.turn;
      link.up_before = parent.up;
      shift = parent.velocity.shift - cross(poses.place[i], link.turn_before);
    }
    const bool is_free = body.kind == JointKind::free;
    if (is_free) shift = {own[0], own[1], own[2]};
    link.before = link.velocity = {E * link.turn_before, E * shift};
    if (body.kind == JointKind::revolute) {
      link.velocity.turn.z += own[0];
    } else if (body.kind == JointKind::prismatic) {
      link.velocity.shift.z += own[0];
    } else {
      const double* const turn = own + (is_free ? 3 : 0);
      link.velocity.turn += Vec3{turn[0], turn[1], turn[2]};
    }
    const Spatial<double>& V = link.velocity;
    link.force = {body.inertia * V.turn + cross(body.moment, V.shift),
                  body.mass * V.shift - cross(body.moment, V.turn)};
    link.up = E * link.up_before;
    link.lift = tree.gravity * body.moment;
  }
  for (std::size_t i = bodies.size(); i-- > 0;) {
    const Body& body = bodies[i];
    const Mat3& E = poses.turn[i];
    const Link& link = links[i];
    const Vec3 back = E.back(link.force.shift);
    const Vec3 torque = cross(link.lift, link.up) - cross(link.force.turn, link.before.turn) -
                        cross(link.force.shift, link.before.shift);
    double* own = slope + body.q;
    if (body.kind == JointKind::revolute) {
      own[0] = torque.z;
    } else if (body.kind == JointKind::prismatic) {
      const Vec3& axis = body.to_joint.row[2];
      own[0] =
          dot(back, cross(axis, link.turn_before)) + tree.weight[i] * dot(axis, link.up_before);
    } else {
      const double* quaternion = q + body.q;
      if (body.kind == JointKind::free) {
        own[0] = own[1] = 0.0;
        own[2] = tree.weight[i];
        own += 3;
        quaternion += 3;
      }
      const double w = quaternion[0];
      const Vec3 u = {quaternion[1], quaternion[2], quaternion[3]}, turned = cross(u, torque);
      const double gain = 2.0 / (w * w + dot(u, u));
      own[0] = -gain * dot(u, torque);
      own[1] = gain * (w * torque.x + turned.x);
      own[2] = gain * (w * torque.y + turned.y);
      own[3] = gain * (w * torque.z + turned.z);
    }
    if (body.parent < 0) continue;
    Link& parent = links[static_cast<std::size_t>(body.parent)];
    parent.force.turn += E.back(link.force.turn) + cross(poses.place[i], back);
    parent.force.shift += back;
    parent.lift += E.back(link.lift) + tree.weight[i] * poses.place[i];
  }
}

}  // namespace

void Tree::mass_matrix(const double* q, MassMatrix& M) const {
  Poses poses;
  poses.set(*this, q);
  poses.mass_matrix(*this, M);
}

void Tree::gradient(const double* x, double* g) const {
  Poses poses;
  poses.set(*this, x);
  MassMatrix factor;
  poses.mass_matrix(*this, factor);
  double* const v = g + positions;
  std::copy_n(x + positions, velocities, v);
  if (factorise(factor)) {
    solve(factor, v);
  } else {
    std::fill_n(v, velocities, std::numeric_limits<double>::quiet_NaN());
  }
  position_slopes(*this, poses, x, v, g);
}

void Tree::add_gradient_terms(const double* q, const double* v, double* terms) const {
  MassMatrix M;
  mass_matrix(q, M);
  const VelocityVector speeds = Eigen::Map<const VelocityVector>(v, velocities).cwiseAbs();
  const VelocityVector own = M.diagonal(), momenta = M.cwiseAbs() * speeds;
  const double energy = speeds.dot(momenta);
  if (!factorise(M)) return;
  VelocityVector column(velocities);
  for (int k = 0; k < velocities; ++k) {
    column.setZero();
    column[k] = 1.0;
    solve(M, column.data());
    terms[positions + k] += column.cwiseAbs().dot(momenta);
  }
  double turning = 0.0;  // [rad/s]
  for (const Body& body : bodies) {
    if (body.kind == JointKind::prismatic) continue;
    const int first = body.kind == JointKind::free ? 3 : 0;
    turning += speeds.segment(body.v + first, body.velocity_count() - first).sum();
  }
  for (const Body& body : bodies) {
    if (body.kind == JointKind::prismatic) {
      terms[body.q] += std::sqrt(own[body.v] * energy) * turning;
    } else if (body.kind == JointKind::revolute) {
      terms[body.q] += energy;
    } else {  // twice the angle
      for (int k = body.position_count() - 4; k < body.position_count(); ++k) {
        terms[body.q + k] += 2.0 * energy;
      }
    }
  }
}

void Poses::set(const Tree& tree, const double* q) {
  for (std::size_t i = 0; i < tree.bodies.size(); ++i) {
    turn[i] = pose(tree.bodies[i], q + tree.bodies[i].q);
    place[i] = articulated::place(tree.bodies[i], q + tree.bodies[i].q);
  }
}

void Poses::mass_matrix(const Tree& tree, MassMatrix& M) const {
  const std::vector<Body>& bodies = tree.bodies;
  const int velocities = tree.velocities;
  struct Composite {
    double mass;
    Vec3 moment;
    Mat3 inertia;
  };
  std::array<Composite, kMostBodies> composites;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    composites[i] = {bodies[i].mass, bodies[i].moment, bodies[i].inertia};
  }
  M.setZero(velocities, velocities);
  for (std::size_t i = bodies.size(); i-- > 0;) {
    const Body& body = bodies[i];
    const Composite& own = composites[i];
    const Mat3& E = turn[i];
    for (int k = 0; k < body.velocity_count(); ++k) {
      // The momentum that this velocity alone gives is a force on what carries the body.
      const bool is_free = body.kind == JointKind::free;
      Spatial<double> momentum;
      if (body.kind == JointKind::prismatic || (is_free && k < 3)) {
        const Vec3 u = is_free ? E * kAxes[k] : kUp;
        momentum = {cross(own.moment, u), own.mass * u};
      } else {
        const Vec3 w = body.kind == JointKind::revolute ? kUp : kAxes[k % 3];
        momentum = {own.inertia * w, -1.0 * cross(own.moment, w)};
      }
      const int column = body.v + k;
      carry(tree, static_cast<int>(i), momentum,
            [&M, column](int row, double value) { M(row, column) = M(column, row) = value; });
    }
    if (body.parent < 0) continue;
    Composite& to = composites[static_cast<std::size_t>(body.parent)];
    const Vec3 c = E.back(own.moment), r = place[i], both = c + (0.5 * own.mass) * r;
    to.inertia = to.inertia + transposed(E).times(own.inertia.times(E)) +
                 (2.0 * dot(both, r)) * identity() - outer(both, r) - outer(r, both);
    to.moment += c + own.mass * r;
    to.mass += own.mass;
  }
}

void Poses::point_forces(const Tree& tree, std::span<const Point> points, double* out) const {
  std::fill_n(out, 3 * tree.velocities * static_cast<std::ptrdiff_t>(points.size()), 0.0);
  for (const auto& [body, point, turns] : points) {
    Mat3 from_world = turn[static_cast<std::size_t>(body)];
    for (int i = tree.bodies[static_cast<std::size_t>(body)].parent; i >= 0;
         i = tree.bodies[static_cast<std::size_t>(i)].parent) {
      from_world = from_world.times(turn[static_cast<std::size_t>(i)]);
    }
    for (int k = 0; k < 3; ++k, out += tree.velocities) {
      const Vec3 own = from_world * kAxes[k];
      const Spatial<double> force =
          turns ? Spatial<double>{own, {0, 0, 0}} : Spatial<double>{cross(point, own), own};
      carry(tree, body, force, [out](int row, double value) { out[row] = value; });
    }
  }
}

void Tree::point_forces(const double* q, std::span<const Point> points, double* out) const {
  if (points.empty()) return;
  Poses poses;
  poses.set(*this, q);
  poses.point_forces(*this, points, out);
}

Vec3 Tree::place_of(const double* q, const Point& point) const {
  Poses poses;
  poses.set(*this, q);
  Vec3 out = point.place;
  for (int i = point.body; i >= 0; i = bodies[static_cast<std::size_t>(i)].parent) {
    const auto own = static_cast<std::size_t>(i);
    out = poses.place[own] + poses.turn[own].back(out);
  }
  return out;
}

Mat3 rotation(const double* quaternion) {
  const double w = quaternion[0];
  const Vec3 v = {quaternion[1], quaternion[2], quaternion[3]};
  const double square = w * w + dot(v, v);
  return (1.0 / square) *
         ((w * w - dot(v, v)) * identity() + 2.0 * outer(v, v) + 2.0 * w * cross_matrix(v));
}

bool factorise(MassMatrix& M) {
  const int n = static_cast<int>(M.rows());
  for (int j = 0; j < n; ++j) {
    double diagonal = M(j, j);
    for (int k = 0; k < j; ++k) diagonal -= M(j, k) * M(j, k);
    if (!(diagonal > 0.0)) {
      M(j, j) = std::numeric_limits<double>::infinity();  // where it stopped
      return false;
    }
    const double inverse = 1.0 / std::sqrt(diagonal);
    M(j, j) = inverse;
    for (int i = j + 1; i < n; ++i) {
      double entry = M(i, j);
      for (int k = 0; k < j; ++k) entry -= M(i, k) * M(j, k);
      M(i, j) = entry * inverse;
    }
  }
  return true;
}

void solve(const MassMatrix& L, double* x) {
  const int n = static_cast<int>(L.rows());
  for (int i = 0; i < n; ++i) {
    double own = x[i];
    for (int k = 0; k < i; ++k) own -= L(i, k) * x[k];
    x[i] = own * L(i, i);
  }
  for (int i = n - 1; i >= 0; --i) {
    double own = x[i];
    for (int k = i + 1; k < n; ++k) own -= L(k, i) * x[k];
    x[i] = own * L(i, i);
  }
}

}  // namespace portwave::articulated
