#include "mechanisms/articulated_part.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "mechanisms/articulated_poses.hpp"
#include "mechanisms/mechanism_batch.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave::articulated {
namespace {

using Numbers = std::vector<double>;

/// Relative to its own entry of M, a pivot below this is what rounding leaves of 0.
constexpr double kLeastPivot = 1e-13;

bool has_quaternion(JointKind kind) {
  return kind == JointKind::spherical || kind == JointKind::free;
}

bool is_rotation(JointKind kind) { return kind != JointKind::prismatic; }

int quaternion_of(const Body& body) { return body.q + (body.kind == JointKind::free ? 3 : 0); }
int turn_of(const Body& body) { return body.v + (body.kind == JointKind::free ? 3 : 0); }

/// v = M(q)⁻¹p; NaN where M is not positive definite.
struct Velocity {
  MassMatrix factor;
  VelocityVector v;

  Velocity(const Tree& tree, const double* x)
      : v(Eigen::Map<const VelocityVector>(x + tree.positions, tree.velocities)) {
    tree.mass_matrix(x, factor);
    if (factorise(factor)) {
      solve(factor, v.data());
    } else {
      v.setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }
};

double energy(const Tree& tree, const double* x) {
  const Velocity motion(tree, x);
  const double* const p = x + tree.positions;
  return 0.5 * Eigen::Map<const VelocityVector>(p, tree.velocities).dot(motion.v) +
         tree.potential(x);
}

/// With S the derivative of ∂̄_qH by (q⁺, v⁺), W = ∂(M(q⁺)v⁺)/∂q⁺ and v⁺ = M(q⁺)⁻¹p⁺, ∂v⁺/∂q⁺ = −M⁻¹W.
struct Derivative {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMostPositions,
                             kMostPositions + kMostVelocities>;
  Rows slopes;  ///< of ∂̄_qH by (q⁺, p⁺)
  Rows rates;   ///< of v⁺ by (q⁺, p⁺)

  Derivative(const Tree& tree, const double* x, const double* x_next) {
    const int nq = tree.positions, nv = tree.velocities;
    const Velocity start(tree, x), end(tree, x_next);
    Motion motion(tree);
    std::array<double, kMostPositions> slope;
    std::array<double, kMostVelocities> momentum;
    motion.start_at(x);
    motion.end_at(x_next);
    motion.run(start.v.data(), end.v.data(), slope.data(), momentum.data());
    slopes.resize(nq, nq + nv);
    rates.resize(nv, nq + nv);
    motion.differentiate(x_next, slopes.data(), rates.data());
    rates.leftCols(nq) *= -1.0;
    rates.rightCols(nv).setIdentity();
    for (int j = 0; j < nq + nv; ++j) solve(end.factor, rates.col(j).data());
    const Rows by_rate =
        slopes.rightCols(nv);  // more rows than a mass matrix has, with quaternions
    slopes.leftCols(nq).noalias() += by_rate * rates.leftCols(nq);
    slopes.rightCols(nv).noalias() = by_rate * rates.rightCols(nv);
  }
};

/// A symmetric discrete gradient has half the Hessian as its derivative where both ends meet.
void hessian(const Tree& tree, const double* x, double* out) {
  const int nq = tree.positions, n = nq + tree.velocities;
  const Derivative both(tree, x, x);
  Eigen::Map<Eigen::MatrixXd> H(out, n, n);
  H.topRows(nq) = 2.0 * both.slopes;
  H.bottomRows(n - nq) = both.rates;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < j; ++i) H(i, j) = H(j, i) = 0.5 * (H(i, j) + H(j, i));
  }
}

/// The rate of the quaternion, ½ q (0, ω), and Euler's p × ω.
void set_turn(const Tree& tree, const Body& body, const double* x, Structure& s) {
  const double* const q = x + quaternion_of(body);
  const double* const L = x + tree.positions + turn_of(body);
  const int row = quaternion_of(body), column = tree.positions + turn_of(body);
  const double of_spin[4][3] = {
      {-q[1], -q[2], -q[3]}, {q[0], -q[3], q[2]}, {q[3], q[0], -q[1]}, {-q[2], q[1], q[0]}};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      s.J.coeffRef(row + i, column + j) = 0.5 * of_spin[i][j];
      s.J.coeffRef(column + j, row + i) = -0.5 * of_spin[i][j];
    }
  }
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    s.J.coeffRef(column + i, column + j) = -L[k];
    s.J.coeffRef(column + j, column + i) = L[k];
  }
}

/// take(points, columns of what forces at them do to the velocities).
template <class Take>
void set_frames(const Design& design, const Take& take, Structure& s) {
  const Tree& tree = design.tree;
  int column = design.joint_port_size();
  // As many at once as share the places of the bodies.
  constexpr std::size_t kTogether = 8;
  std::array<Point, kTogether> points;
  std::array<double, kTogether * 3 * kMostVelocities> all;
  const std::size_t count = design.frames.size();
  for (std::size_t first = 0; first < count; first += kTogether) {
    const std::size_t together = std::min(kTogether, count - first);
    for (std::size_t f = 0; f < together; ++f) points[f] = design.frames[first + f].point;
    take(std::span<const Point>(points).first(together), all.data());
    const double* forces = all.data();
    for (std::size_t f = 0; f < together; ++f) {
      for (int k = 0; k < 3; ++k, ++column, forces += tree.velocities) {
        for (int i = points[f].body; i >= 0; i = tree.bodies[at(i)].parent) {
          const Body& body = tree.bodies[at(i)];
          for (int j = body.v; j < body.v + body.velocity_count(); ++j) {
            s.G.coeffRef(tree.positions + j, column) = -forces[j];
          }
        }
      }
    }
  }
}

void set_turns(const Design& design, const double* x, Structure& s) {
  for (const Body& body : design.tree.bodies) {
    if (has_quaternion(body.kind)) set_turn(design.tree, body, x, s);
  }
}

void set_state_dependent(const Design& design, const double* x, Structure& s) {
  set_turns(design, x, s);
  const auto take = [&](std::span<const Point> points, double* out) {
    design.tree.point_forces(x, points, out);
  };
  set_frames(design, take, s);
}

bool is_constant(const Design& design) {
  return design.frames.empty() && std::ranges::none_of(design.tree.bodies, [](const Body& b) {
           return has_quaternion(b.kind);
         });
}

Numbers default_state(const Tree& tree) {
  Numbers x(at(tree.positions + tree.velocities), 0.0);
  for (const Body& body : tree.bodies) {
    if (has_quaternion(body.kind)) x[at(quaternion_of(body))] = 1.0;
  }
  return x;
}

Structure structure_of(const Design& design) {
  const Tree& tree = design.tree;
  const int nq = tree.positions, nv = tree.velocities;
  const int ports = design.joint_port_size() + 3 * static_cast<int>(design.frames.size());
  Structure s = Structure::zero(nq + nv, ports + nv);
  int port = 0;
  for (std::size_t i = 0; i < tree.bodies.size(); ++i) {
    const Body& body = tree.bodies[i];
    const int plain = body.kind == JointKind::free ? 3 : body.kind == JointKind::spherical ? 0 : 1;
    for (int k = 0; k < plain; ++k) {
      s.J.insert(body.q + k, nq + body.v + k) = 1.0;
      s.J.insert(nq + body.v + k, body.q + k) = -1.0;
    }
    for (int j = body.v; j < body.v + body.velocity_count(); ++j) {
      s.R.insert(nq + j, nq + j) = design.damping[i];
      if (design.has_port[i]) s.G.insert(nq + j, port++) = -1.0;
      s.G.insert(nq + j, ports + j) = 1.0;
    }
  }
  set_state_dependent(design, default_state(tree).data(), s);
  return s;
}

void name_coordinates(const Body& body, const std::string& name, Signature& out,
                      std::vector<StateVariable>& momenta) {
  const auto state = [&](const char* what, const char* unit) {
    out.states.push_back({name + what, unit});
  };
  const auto velocity = [&](const char* momentum, const char* unit, const char* input,
                            const char* input_unit) {
    momenta.push_back({name + momentum, unit});
    out.inputs.push_back({name + input, input_unit});
  };
  const bool is_free = body.kind == JointKind::free;
  if (is_free) {
    for (const char* const axis : {"_x", "_y", "_z"}) state(axis, "m");
    velocity("_p_x", "kg m/s", "_force_x", "N");
    velocity("_p_y", "kg m/s", "_force_y", "N");
    velocity("_p_z", "kg m/s", "_force_z", "N");
  }
  if (has_quaternion(body.kind)) {
    for (const char* const part : {"_q_w", "_q_x", "_q_y", "_q_z"}) state(part, "");
    velocity("_L_1", "kg m^2/s", "_torque_1", "N m");
    velocity("_L_2", "kg m^2/s", "_torque_2", "N m");
    velocity("_L_3", "kg m^2/s", "_torque_3", "N m");
  } else if (body.kind == JointKind::revolute) {
    state("_angle", "rad");
    velocity("_momentum", "kg m^2/s", "_torque", "N m");
  } else {
    state("_position", "m");
    velocity("_momentum", "kg m/s", "_force", "N");
  }
}

Signature signature_of(const Design& design) {
  Signature out;
  out.type = "articulated";
  std::vector<StateVariable> momenta;
  for (std::size_t i = 0; i < design.names.size(); ++i) {
    const Body& body = design.tree.bodies[i];
    const std::string& name = design.names[i];
    name_coordinates(body, name, out, momenta);
    if (!design.has_port[i]) continue;
    if (body.kind == JointKind::free) {
      out.ports.push_back({name + "_force", Causality::effort_in, Domain::translation, 3});
      out.ports.push_back({name + "_torque", Causality::effort_in, Domain::rotation, 3});
    } else {
      const Domain domain = is_rotation(body.kind) ? Domain::rotation : Domain::translation;
      out.ports.push_back({name, Causality::effort_in, domain, body.velocity_count()});
    }
  }
  for (const Frame& frame : design.frames) {
    const Domain domain = frame.point.turns ? Domain::rotation : Domain::translation;
    out.ports.push_back({frame.name, Causality::effort_in, domain, 3});
  }
  out.states.insert(out.states.end(), momenta.begin(), momenta.end());
  return out;
}

/// Angles of 1 rad, and of each momentum what alone moves its joint at 0.5 rad/s or m/s.
Numbers typical_state(const Design& design) {
  const Tree& tree = design.tree;
  const Numbers x = default_state(tree);
  MassMatrix M;
  tree.mass_matrix(x.data(), M);
  const VelocityVector own = M.diagonal();
  factorise(M);  // as far as it goes: where it stops, it leaves 1/0
  Issues issues;
  for (std::size_t i = 0; i < tree.bodies.size(); ++i) {
    const Body& body = tree.bodies[i];
    for (int k = body.v; k < body.v + body.velocity_count(); ++k) {
      const double pivot = 1.0 / (M(k, k) * M(k, k));
      if (own[k] > 0.0 && pivot > kLeastPivot * own[k]) continue;
      issues.push_back(
          {fmt::format("/joints/{}", design.given[i]),
           fmt::format("nothing that the joint {} moves by itself has inertia: give the "
                       "bodies that hang on it a mass, or moments of inertia about its axis",
                       in_quotes(design.names[i]))});
      break;
    }
    if (!issues.empty()) break;
  }
  throw_if_any(std::move(issues));
  Numbers typical(x.size(), 1.0);
  for (int k = 0; k < tree.velocities; ++k) {
    VelocityVector unit = VelocityVector::Zero(tree.velocities);
    unit[k] = 1.0;
    solve(M, unit.data());
    typical[at(tree.positions + k)] = 0.5 / unit[k];
  }
  return typical;
}

/// What steps of one stage ask of a tree.
class TreeMechanism final : public Mechanism {
 public:
  explicit TreeMechanism(const Design& design) : tree_(design.tree), motion_(design.tree) {
    layout_.positions = tree_.positions;
    layout_.velocities = tree_.velocities;
    int port = 0;
    for (std::size_t i = 0; i < tree_.bodies.size(); ++i) {
      const Body& body = tree_.bodies[i];
      const int plain = body.velocity_count() - (has_quaternion(body.kind) ? 3 : 0);
      for (int k = 0; k < plain; ++k) layout_.slides.push_back({body.q + k, body.v + k});
      if (has_quaternion(body.kind)) layout_.turns.push_back({quaternion_of(body), turn_of(body)});
      for (int k = 0; k < body.velocity_count(); ++k) {
        layout_.damping.push_back(design.damping[i]);
        layout_.port.push_back(design.has_port[i] ? port++ : -1);
        weights_.push_back(tree_.weight[i]);
      }
    }
    layout_.first_point_port = port;
    layout_.point_ports = 3 * static_cast<int>(design.frames.size());
    for (const Frame& frame : design.frames) points_.push_back(frame.point);
  }

  const Layout& layout() const override { return layout_; }
  void start_at(const double* q) override { motion_.start_at(q); }
  void mass_matrix(MassMatrix& M) const override { motion_.start_poses().mass_matrix(tree_, M); }
  /// g √(m M_kk) with the mass m that a joint moves.
  double weight_bound(int velocity, double M_kk) const override {
    return std::sqrt(tree_.gravity * weights_[at(velocity)] * M_kk);
  }
  void point_forces(double* out) const override {
    motion_.start_poses().point_forces(tree_, points_, out);
  }
  void mean_point_forces(double* out) const override { motion_.point_forces(points_, out); }
  void run(const double* q_next, const double* v, const double* v_next, double* slope,
           double* momentum) override {
    motion_.end_at(q_next);
    motion_.run(v, v_next, slope, momentum);
  }

 private:
  const Tree& tree_;
  Motion motion_;
  Layout layout_;
  Numbers weights_;  ///< by velocity
  std::vector<Point> points_;
};

Hamiltonian hamiltonian_of(const Tree& tree) {
  Hamiltonian H;
  H.value = [tree](const double* x) { return energy(tree, x); };
  H.gradient = [tree](const double* x, double* g) { tree.gradient(x, g); };
  H.hessian = [tree](const double* x, double* out) { hessian(tree, x, out); };
  return H;
}

/// Empty: they are too many.
std::vector<tree::Body> kernel_bodies_of(const Tree& tree) {
  std::vector<tree::Body> out;
  if (tree.bodies.size() > static_cast<std::size_t>(tree::kMostBodies) ||
      tree.velocities > tree::kMostVelocities) {
    return out;
  }
  const auto joint_of = [](JointKind kind) {
    switch (kind) {
      case JointKind::revolute:
        return tree::Joint::revolute;
      case JointKind::prismatic:
        return tree::Joint::prismatic;
      case JointKind::spherical:
        return tree::Joint::spherical;
      case JointKind::free:
        break;
    }
    return tree::Joint::free;
  };
  const auto put = [](const Vec3& from, double* to) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
  };
  for (std::size_t i = 0; i < tree.bodies.size(); ++i) {
    const Body& body = tree.bodies[i];
    tree::Body& own = out.emplace_back();
    own.joint = joint_of(body.kind);
    own.parent = body.parent;
    own.q = body.q;
    own.v = body.v;
    for (int r = 0; r < 3; ++r) {
      put(body.to_joint.row[r], own.to_joint + 3 * r);
      put(body.inertia.row[r], own.inertia + 3 * r);
    }
    put(body.place, own.place);
    put(body.moment, own.moment);
    own.mass = body.mass;
    own.weight = tree.weight[i];
  }
  return out;
}

NonlinearPortHamiltonian::Options options_of(const Design& design, bool allow_active) {
  NonlinearPortHamiltonian::Options options;
  options.allow_active = allow_active;
  options.discrete_gradient = DiscreteGradient::mean_value;  // in place of it: that of Motion
  // Derived, and of long trees so far apart in size that differences tell nothing of the small ones.
  options.check_derivatives = false;
  options.default_state = default_state(design.tree);
  options.typical_state = typical_state(design);
  if (!is_constant(design)) {
    options.structure_at = [design](const double* x, Structure& out) {
      set_state_dependent(design, x, out);
    };
  }
  return options;
}

}  // namespace

int Design::joint_port_size() const {
  int size = 0;
  for (std::size_t i = 0; i < has_port.size(); ++i) {
    if (has_port[i]) size += tree.bodies[i].velocity_count();
  }
  return size;
}

ArticulatedPart::ArticulatedPart(Design design, bool allow_active)
    : NonlinearPortHamiltonian(signature_of(design), structure_of(design),
                               hamiltonian_of(design.tree), options_of(design, allow_active)),
      design_(std::move(design)),
      kernel_bodies_(kernel_bodies_of(design_.tree)) {}

/// Without them the Newton solver for designs remains, and the structure may become constant.
std::shared_ptr<const Component> ArticulatedPart::without_ports(
    const std::vector<bool>& idle) const {
  Design own = design_;
  std::size_t port = 0;
  for (std::size_t i = 0; i < own.has_port.size(); ++i) {
    if (!own.has_port[i]) continue;
    const bool is_free = own.tree.bodies[i].kind == JointKind::free;
    own.has_port[i] = !(idle[port] && (!is_free || idle[port + 1]));
    port += is_free ? 2 : 1;
  }
  std::erase_if(own.frames, [&](const Frame&) { return static_cast<bool>(idle[port++]); });
  return std::make_shared<const ArticulatedPart>(std::move(own), options().allow_active);
}

/// Frames, and where free bodies hang.
bool ArticulatedPart::place_of(int port, const double* x, double* place) const {
  const Tree& tree = design_.tree;
  Point point;
  int number = 0;
  bool is_found = false;
  for (std::size_t i = 0; i < tree.bodies.size(); ++i) {
    if (!design_.has_port[i]) continue;
    const bool is_free = tree.bodies[i].kind == JointKind::free;
    if (is_free && port == number) {
      point.body = static_cast<int>(i);
      is_found = true;
    }
    number += is_free ? 2 : 1;
  }
  if (port >= number) point = design_.frames[at(port - number)].point;
  if (!(is_found || port >= number) || point.turns) return false;
  const Vec3 out = tree.place_of(x, point);
  place[0] = out.x;
  place[1] = out.y;
  place[2] = out.z;
  return true;
}

Issues ArticulatedPart::check_initial_state(const double* x) const {
  Issues issues;
  for (std::size_t i = 0; i < design_.names.size(); ++i) {
    const Body& body = design_.tree.bodies[i];
    if (!has_quaternion(body.kind)) continue;
    const double length = Eigen::Map<const Eigen::Vector4d>(x + quaternion_of(body)).stableNorm();
    if (std::abs(length - 1.0) <= 1e-6) continue;
    issues.push_back(
        {"/initial_state",
         fmt::format("the quaternion (q_w, q_x, q_y, q_z) of {} must have length 1, got "
                     "{:.9g}; without rotation it is (1, 0, 0, 0)",
                     in_quotes(design_.names[i]), length)});
  }
  return issues;
}

void ArticulatedPart::discrete_gradient(const double* x, const double* x_next, double* g) const {
  const Tree& tree = design_.tree;
  const Velocity start(tree, x), end(tree, x_next);
  std::array<double, kMostVelocities> momentum;
  Motion motion(tree);
  motion.start_at(x);
  motion.end_at(x_next);
  motion.run(start.v.data(), end.v.data(), g, momentum.data());
  for (int k = 0; k < tree.velocities; ++k) {
    g[tree.positions + k] = 0.5 * (start.v[k] + end.v[k]);
  }
}

void ArticulatedPart::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  const Tree& tree = design_.tree;
  const Derivative both(tree, x, x_next);
  const int nq = tree.positions, nv = tree.velocities;
  for (int j = 0; j < nq + nv; ++j) {
    for (int i = 0; i < nq; ++i) jacobian.emplace_back(i, j, both.slopes(i, j));
    for (int i = 0; i < nv; ++i) jacobian.emplace_back(nq + i, j, 0.5 * both.rates(i, j));
  }
}

void ArticulatedPart::add_gradient_terms(const double* /*x*/, const double* x_next, const double* g,
                                         double* terms) const {
  const Tree& tree = design_.tree;
  if (gradients_cancel()) tree.add_gradient_terms(x_next, g + tree.positions, terms);
}

void ArticulatedPart::gradients(const double* x, double* g) const {
  const Tree& tree = design_.tree;
  tree::kernels().gradients({.bodies = kernel_bodies_.data(),
                             .count = static_cast<int>(kernel_bodies_.size()),
                             .positions = tree.positions,
                             .velocities = tree.velocities,
                             .gravity = tree.gravity,
                             .x = x,
                             .g = g});
}

/// Frames depend on all positions, and turns on their quaternions and momenta.
bool ArticulatedPart::structure_depends_on(int state) const {
  const Tree& tree = design_.tree;
  if (!design_.frames.empty() && state < tree.positions) return true;
  for (const Body& body : tree.bodies) {
    if (!has_quaternion(body.kind)) continue;
    const int q = state - quaternion_of(body), p = state - tree.positions - turn_of(body);
    if ((q >= 0 && q < 4) || (p >= 0 && p < 3)) return true;
  }
  return false;
}

/// Turns at the middle, and frames by the ways that they take.
void ArticulatedPart::structure_over(const double* x, const double* dx, double step_s,
                                     Structure& out) const {
  if (design_.frames.empty()) return Subsystem::structure_over(x, dx, step_s, out);
  const Tree& tree = design_.tree;
  std::array<double, kMostPositions + kMostVelocities> moved;
  const int n = tree.positions + tree.velocities;
  for (int i = 0; i < n; ++i) moved[at(i)] = x[i] + 0.5 * dx[i];
  set_turns(design_, moved.data(), out);
  for (int i = 0; i < tree.positions; ++i) moved[at(i)] = x[i] + dx[i];
  Motion motion(tree);
  motion.start_at(x);
  motion.end_at(moved.data());
  const auto take = [&](std::span<const Point> points, double* forces) {
    motion.point_forces(points, forces);
  };
  set_frames(design_, take, out);
}

std::unique_ptr<StepBatch> ArticulatedPart::make_batch(
    std::span<const Component* const> parts) const {
  return make_mechanism_batch(
      port_hamiltonian_parts(parts),
      [](const Subsystem& part) {
        return std::make_unique<TreeMechanism>(dynamic_cast<const ArticulatedPart&>(part).design());
      },
      {.max_steps = options().max_newton_steps});
}

}  // namespace portwave::articulated

namespace portwave::tree {

const Kernels& kernels() { return PORTWAVE_KERNELS(kTree); }

}  // namespace portwave::tree
