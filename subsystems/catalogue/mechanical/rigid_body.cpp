#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <fmt/format.h>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/point_places.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {
namespace body_part {

/// The first states of each three; of the quaternion, w comes first.
enum State { kPosition = 0, kMomentum = 3, kQuaternion = 6, kSpin = 10, kStates = 13 };

/// A port for forces on a point of the body, in its axes from the mass centre.
struct Frame {
  std::string name;
  Eigen::Vector3d point;
};

/// The first inputs of each three. Idle ports may be left away.
struct Inputs {
  bool has_force_port = true, has_torque_port = true;
  std::vector<Frame> frames = {};

  int force_port() const { return 0; }
  int torque_port() const { return has_force_port ? 3 : 0; }
  int first_frame() const { return torque_port() + (has_torque_port ? 3 : 0); }
  int force() const { return first_frame() + 3 * static_cast<int>(frames.size()); }
  int torque() const { return force() + 3; }
  int count() const { return torque() + 3; }
};

struct BodyParameters {
  double mass = 1.0;
  std::array<double, 3> inertia = {};
  double damping = 0.0;
  double angular_damping = 0.0;
  double gravity = 0.0;
};

/// From body axes to world axes, of the direction of a quaternion of any length.
Eigen::Matrix3d rotation(const double* quaternion) {
  const Eigen::Vector4d given = Eigen::Map<const Eigen::Vector4d>(quaternion);
  const double length = given.stableNorm();
  if (!(length > 0.0)) return Eigen::Matrix3d::Identity();
  const Eigen::Vector4d unit = given / length;
  const double w = unit[0], x = unit[1], y = unit[2], z = unit[3];
  Eigen::Matrix3d R;
  R << w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
      2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x),
      2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z;
  return R;
}

/// Entries of a sparse matrix that are written again and again.
class Entries {
 public:
  struct Place {
    int row, column;
  };

  /// `pattern` is compressed.
  Entries(const SparseMatrix& pattern, std::vector<Place> places)
      : places_(std::move(places)),
        rows_(pattern.innerIndexPtr(), pattern.innerIndexPtr() + pattern.nonZeros()),
        begins_(pattern.outerIndexPtr(), pattern.outerIndexPtr() + pattern.cols() + 1) {
    for (const auto& [row, column] : places_) {
      const auto begin = rows_.begin() + begins_[static_cast<std::size_t>(column)];
      const auto end = rows_.begin() + begins_[static_cast<std::size_t>(column) + 1];
      number_.push_back(static_cast<int>(std::find(begin, end, row) - rows_.begin()));
    }
  }

  /// `to` usually has the pattern of the constructor.
  void put(const double* values, SparseMatrix& to) const {
    const bool is_known = to.isCompressed() &&
                          static_cast<std::size_t>(to.nonZeros()) == rows_.size() &&
                          static_cast<std::size_t>(to.cols()) + 1 == begins_.size() &&
                          std::equal(begins_.begin(), begins_.end(), to.outerIndexPtr()) &&
                          std::equal(rows_.begin(), rows_.end(), to.innerIndexPtr());
    if (is_known) {
      double* const own = to.valuePtr();
      for (const int number : number_) own[number] = *values++;
      return;
    }
    for (const auto& [row, column] : places_) to.coeffRef(row, column) = *values++;
  }

 private:
  std::vector<Place> places_;
  std::vector<int> rows_, begins_;  ///< the pattern
  std::vector<int> number_;         ///< of each place in it
};

/// What depends on the state: the rate of the quaternion, ½ q (0, ω); Euler's L × ω; and the
/// torques, which are given in world axes and act on L in body axes.
class Attitude {
 public:
  Attitude(const Structure& pattern, const Inputs& inputs)
      : has_port_(inputs.has_torque_port), J_(pattern.J, of_J()), G_(pattern.G, of_G(inputs)) {
    for (std::size_t f = 0; f < inputs.frames.size(); ++f) {
      frames_.push_back({inputs.frames[f].point, Entries(pattern.G, of_frame(inputs, f))});
    }
  }

  void set(const double* x, Structure& s) const {
    set_turn(x, s);
    if (!frames_.empty()) set_arms(x, 1.0, s);
  }

  /// The middle of a step. Its angular velocity ω turns the body by φ, ω = (4/h) tan(¼φ), and the chord of a turn is
  /// h cos²(¼φ) ω × R s, R half way: so h times the velocity of a frame is exactly its way. cos(¼φ) is the length of the
  /// mean of two quaternions of length 1.
  void set_over(const double* x, const double* dx, Structure& s) const {
    std::array<double, kStates> middle;
    double from = 0.0, to = 0.0, mean = 0.0;
    for (std::size_t i = 0; i < kStates; ++i) middle[i] = x[i] + 0.5 * dx[i];
    for (std::size_t i = kQuaternion; i < kSpin; ++i) {
      const double end = x[i] + dx[i];
      from += x[i] * x[i];
      to += end * end;
      mean += middle[i] * middle[i];
    }
    set_turn(middle.data(), s);
    set_arms(middle.data(), 2.0 * mean / (from + to), s);
  }

  bool has_frames() const { return !frames_.empty(); }

 private:
  struct Arm {
    Eigen::Vector3d point;
    Entries torque;
  };

  void set_arms(const double* middle, double chord, Structure& s) const {
    const Eigen::Matrix3d to_world = rotation(middle + kQuaternion);
    for (const Arm& arm : frames_) {
      const Eigen::Vector3d reach = chord * arm.point;
      std::array<double, 9> G;
      for (int i = 0; i < 3; ++i) {
        Eigen::Map<Eigen::Vector3d>(G.data() + 3 * i) = -reach.cross(to_world.row(i).transpose());
      }
      arm.torque.put(G.data(), s.G);
    }
  }

  void set_turn(const double* x, Structure& s) const {
    const double* const q = x + kQuaternion;
    const double* const L = x + kSpin;
    const double of_spin[4][3] = {
        {-q[1], -q[2], -q[3]}, {q[0], -q[3], q[2]}, {q[3], q[0], -q[1]}, {-q[2], q[1], q[0]}};
    std::array<double, 30> J;
    double* next = J.data();
    for (const auto& row : of_spin) {
      for (const double value : row) {
        *next++ = 0.5 * value;
        *next++ = -0.5 * value;
      }
    }
    for (int i = 0; i < 3; ++i) {
      *next++ = -L[(i + 2) % 3];
      *next++ = L[(i + 2) % 3];
    }
    J_.put(J.data(), s.J);
    const Eigen::Matrix3d to_world = rotation(q);
    std::array<double, 18> G;
    next = G.data();
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        if (has_port_) *next++ = -to_world(i, j);
        *next++ = to_world(i, j);
      }
    }
    G_.put(G.data(), s.G);
  }

 public:
  static std::vector<Entries::Place> of_J() {
    std::vector<Entries::Place> out;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 3; ++j) {
        out.push_back({kQuaternion + i, kSpin + j});
        out.push_back({kSpin + j, kQuaternion + i});
      }
    }
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3;
      out.push_back({kSpin + i, kSpin + j});
      out.push_back({kSpin + j, kSpin + i});
    }
    return out;
  }
  static std::vector<Entries::Place> of_G(const Inputs& inputs) {
    std::vector<Entries::Place> out;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        if (inputs.has_torque_port) out.push_back({kSpin + j, inputs.torque_port() + i});
        out.push_back({kSpin + j, inputs.torque() + i});
      }
    }
    return out;
  }
  /// The torque of a force, input by input.
  static std::vector<Entries::Place> of_frame(const Inputs& inputs, std::size_t frame) {
    std::vector<Entries::Place> out;
    for (int i = 0; i < 3; ++i) {
      const int column = inputs.first_frame() + 3 * static_cast<int>(frame) + i;
      for (int j = 0; j < 3; ++j) out.push_back({kSpin + j, column});
    }
    return out;
  }

 private:
  bool has_port_;
  Entries J_, G_;
  std::vector<Arm> frames_;
};

Structure body_structure(const BodyParameters& p, const Inputs& inputs, const double* x) {
  Structure s = Structure::zero(kStates, inputs.count());
  for (int i = 0; i < 3; ++i) {
    s.J.insert(kPosition + i, kMomentum + i) = 1.0;
    s.J.insert(kMomentum + i, kPosition + i) = -1.0;
    if (p.damping != 0.0) s.R.insert(kMomentum + i, kMomentum + i) = p.damping;
    if (p.angular_damping != 0.0) s.R.insert(kSpin + i, kSpin + i) = p.angular_damping;
    if (inputs.has_force_port) s.G.insert(kMomentum + i, inputs.force_port() + i) = -1.0;
    s.G.insert(kMomentum + i, inputs.force() + i) = 1.0;
    for (int f = 0; f < static_cast<int>(inputs.frames.size()); ++f) {
      s.G.insert(kMomentum + i, inputs.first_frame() + 3 * f + i) = -1.0;
    }
  }
  for (std::size_t f = 0; f < inputs.frames.size(); ++f) {
    for (const auto& [row, column] : Attitude::of_frame(inputs, f)) s.G.insert(row, column) = 0.0;
  }
  for (const auto& [row, column] : Attitude::of_J()) s.J.insert(row, column) = 0.0;
  for (const auto& [row, column] : Attitude::of_G(inputs)) s.G.insert(row, column) = 0.0;
  for (SparseMatrix* M : {&s.J, &s.R, &s.G}) M->makeCompressed();
  Attitude(s, inputs).set(x, s);
  return s;
}

/// H = |p|²/(2m) + m g z + Σ L_i²/(2 I_i): quadratic, and without the quaternion.
Hamiltonian body_storage(const BodyParameters& p) {
  Hamiltonian H;
  H.value = [p](const double* x) {
    double doubled = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double momentum = x[kMomentum + i], spin = x[kSpin + i];
      doubled += momentum * momentum / p.mass + spin * spin / p.inertia[i];
    }
    return 0.5 * doubled + p.mass * p.gravity * x[kPosition + 2];
  };
  H.gradient = [p](const double* x, double* g) {
    std::fill_n(g, kStates, 0.0);
    g[kPosition + 2] = p.mass * p.gravity;
    for (std::size_t i = 0; i < 3; ++i) {
      g[kMomentum + i] = x[kMomentum + i] / p.mass;
      g[kSpin + i] = x[kSpin + i] / p.inertia[i];
    }
  };
  H.hessian = [p](const double* /*x*/, double* hessian) {
    std::fill_n(hessian, kStates * kStates, 0.0);
    for (std::size_t i = 0; i < 3; ++i) {
      hessian[(kMomentum + i) * (kStates + 1)] = 1.0 / p.mass;
      hessian[(kSpin + i) * (kStates + 1)] = 1.0 / p.inertia[i];
    }
  };
  return H;
}

Signature body_signature(const Inputs& inputs) {
  std::vector<Port> ports;
  if (inputs.has_force_port) {
    ports.push_back({"force", Causality::effort_in, Domain::translation, 3});
  }
  if (inputs.has_torque_port) {
    ports.push_back({"torque", Causality::effort_in, Domain::rotation, 3});
  }
  for (const Frame& frame : inputs.frames) {
    ports.push_back({frame.name, Causality::effort_in, Domain::translation, 3});
  }
  return {"rigid_body",
          {{"x", "m"},
           {"y", "m"},
           {"z", "m"},
           {"p_x", "kg m/s"},
           {"p_y", "kg m/s"},
           {"p_z", "kg m/s"},
           {"q_w", ""},
           {"q_x", ""},
           {"q_y", ""},
           {"q_z", ""},
           {"L_1", "kg m^2/s"},
           {"L_2", "kg m^2/s"},
           {"L_3", "kg m^2/s"}},
          std::move(ports),
          {{"force_x", "N"},
           {"force_y", "N"},
           {"force_z", "N"},
           {"torque_x", "N m"},
           {"torque_y", "N m"},
           {"torque_z", "N m"}}};
}

NonlinearPortHamiltonian::Options body_options(const BodyParameters& p, const Inputs& inputs,
                                               bool allow_active) {
  NonlinearPortHamiltonian::Options options;
  // One point is exact for a quadratic H.
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.quadrature_points = 1;
  options.polynomial_degree = 2;
  options.allow_active = allow_active;
  options.default_state.assign(kStates, 0.0);
  options.default_state[kQuaternion] = 1.0;
  options.typical_state.assign(kStates, 1.0);  // 1 m, 1 m/s, 1 rad/s
  for (std::size_t i = 0; i < 3; ++i) {
    options.typical_state[kMomentum + i] = p.mass;
    options.typical_state[kSpin + i] = p.inertia[i];
  }
  const Structure structure = body_structure(p, inputs, options.default_state.data());
  options.structure_at = [attitude = Attitude(structure, inputs)](const double* x, Structure& out) {
    attitude.set(x, out);
  };
  return options;
}

class RigidBody final : public NonlinearPortHamiltonian, public LeavesPorts, public PointPlaces {
 public:
  RigidBody(const BodyParameters& p, const Inputs& inputs, const Options& options)
      : NonlinearPortHamiltonian(body_signature(inputs),
                                 body_structure(p, inputs, options.default_state.data()),
                                 body_storage(p), options),
        parameters_(p),
        inputs_(inputs),
        attitude_(structure(), inputs) {}

  /// Of a body with all ports.
  std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const override {
    if (!inputs_.has_force_port || !inputs_.has_torque_port) return nullptr;
    Inputs inputs = {.has_force_port = !idle[0], .has_torque_port = !idle[1]};
    for (std::size_t f = 0; f < inputs_.frames.size(); ++f) {
      if (!idle[2 + f]) inputs.frames.push_back(inputs_.frames[f]);
    }
    return std::make_shared<const RigidBody>(
        parameters_, inputs, body_options(parameters_, inputs, options().allow_active));
  }
  bool structure_depends_on(int state) const override { return state >= kQuaternion; }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    if (!attitude_.has_frames()) return Subsystem::structure_over(x, dx, step_s, out);
    attitude_.set_over(x, dx, out);
  }
  bool place_of(int port, const double* x, double* place) const override {
    const int frame = port - (inputs_.has_force_port ? 1 : 0) - (inputs_.has_torque_port ? 1 : 0);
    const bool is_centre = inputs_.has_force_port && port == 0;
    if (frame < 0 && !is_centre) return false;
    Eigen::Map<Eigen::Vector3d> out(place);
    out = Eigen::Map<const Eigen::Vector3d>(x + kPosition);
    if (!is_centre) {
      out += rotation(x + kQuaternion) * inputs_.frames[static_cast<std::size_t>(frame)].point;
    }
    return true;
  }
  Issues check_initial_state(const double* x) const override {
    const double length = Eigen::Map<const Eigen::Vector4d>(x + kQuaternion).stableNorm();
    if (std::abs(length - 1.0) <= 1e-6) return {};
    return {{"/initial_state",
             fmt::format("the quaternion (q_w, q_x, q_y, q_z) must have length 1, got {:.9g}; "
                         "without rotation it is (1, 0, 0, 0)",
                         length)}};
  }

 private:
  BodyParameters parameters_;
  Inputs inputs_;
  Attitude attitude_;
};

constexpr const char* kInertiaNames[] = {"inertia_1_kgm2", "inertia_2_kgm2", "inertia_3_kgm2"};

void check_inertias(const std::array<double, 3>& inertia) {
  Issues issues;
  for (std::size_t i = 0; i < 3; ++i) {
    const double others = inertia[(i + 1) % 3] + inertia[(i + 2) % 3];
    if (inertia[i] <= others * (1.0 + 1e-12)) continue;
    issues.push_back({std::string("/") + kInertiaNames[i],
                      fmt::format("must not exceed the sum of the other two, {} kg m^2: no body "
                                  "has such moments of inertia, got {}",
                                  others, inertia[i])});
  }
  throw_if_any(std::move(issues));
}

std::vector<Frame> read_frames(const Parameters& parameters) {
  using Texts = std::vector<std::string>;
  Issues issues;
  const Texts& names = value_of<Texts>(parameters, "frames");
  const auto count = static_cast<int>(names.size());
  const auto* const given = std::get_if<MatrixEntries>(&parameters.find("frame_points_m")->second);
  Eigen::MatrixXd points = Eigen::MatrixXd::Zero(count, 3);
  if (given == nullptr || !given->empty()) {
    points = MatrixReader(parameters, issues).read("frame_points_m", count, 3);
  }
  std::vector<Frame> out;
  std::set<std::string> taken = {"force", "torque"};
  for (int i = 0; i < count; ++i) {
    const std::string& name = names[static_cast<std::size_t>(i)];
    if (!is_plain_name(name)) {
      issues.push_back(
          {fmt::format("/frames/{}", i),
           fmt::format("must be a name without dots, brackets, blanks, commas or quotes, got {}",
                       in_quotes(name))});
    } else if (!taken.insert(name).second) {
      issues.push_back({fmt::format("/frames/{}", i),
                        fmt::format("the name {} is already taken", in_quotes(name))});
    } else if (points.rows() == count) {
      out.push_back({name, points.row(i).transpose()});
    }
  }
  throw_if_any(std::move(issues));
  return out;
}

std::unique_ptr<Subsystem> build_rigid_body(const Parameters& parameters) {
  BodyParameters p = {.mass = number_of(parameters, "mass_kg"),
                      .inertia = {},
                      .damping = number_of(parameters, "damping_Ns_per_m"),
                      .angular_damping = number_of(parameters, "angular_damping_Nms_per_rad"),
                      .gravity = number_of(parameters, "gravity_m_per_s2")};
  for (std::size_t i = 0; i < 3; ++i) p.inertia[i] = number_of(parameters, kInertiaNames[i]);
  check_inertias(p.inertia);
  const Inputs inputs = {.frames = read_frames(parameters)};
  return std::make_unique<RigidBody>(p, inputs, body_options(p, inputs, allows_active(parameters)));
}

}  // namespace body_part
}  // namespace

PartType rigid_body_type() {
  PartType type;
  type.name = "rigid_body";
  type.group = "translation";
  type.summary =
      "A rigid body in space: forces at its mass centre and torques, both in world axes.";
  type.equations =
      "H = |p|^2/(2 m) + m g z + L_1^2/(2 I_1) + L_2^2/(2 I_2) + L_3^2/(2 I_3),  w_i = L_i/I_i\n"
      "r' = p/m,  p' = -m g e_z - c r' - e_force + F\n"
      "q' = q (0, w)/2,  L' = L x w - c_w w + A(q)^T (T - e_torque)\n"
      "f_force = -r',  f_torque = -A(q) w\n"
      "frame at a point s: f = -(r + A(q) s)', the point feels -e\n"
      "L, w in body axes, the principal ones; A(q) turns them into world axes, z being up";
  ParameterInfo gravity =
      non_negative_number("gravity_m_per_s2", "m/s^2", "acceleration g of gravity, against z");
  gravity.default_value = 9.81;
  ParameterInfo points = list_parameter<MatrixEntries>(
      "frame_points_m", ParameterKind::matrix,
      "x, y, z of each frame from the mass centre, in the principal axes; 0 if absent",
      MatrixEntries{});
  points.unit = "m";
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      positive_number(body_part::kInertiaNames[0], "kg m^2", "principal moment of inertia I_1"),
      positive_number(body_part::kInertiaNames[1], "kg m^2", "principal moment of inertia I_2"),
      positive_number(body_part::kInertiaNames[2], "kg m^2", "principal moment of inertia I_3"),
      damper("damping_Ns_per_m", "N s/m", "damper c against the velocity"),
      damper("angular_damping_Nms_per_rad", "N m s/rad", "damper c_w against the rotation"),
      std::move(gravity),
      list_parameter<std::vector<std::string>>(
          "frames", ParameterKind::texts, "names of ports on points of the body, in world axes",
          std::vector<std::string>{}),
      std::move(points),
  };
  type.build = body_part::build_rigid_body;
  type.example = {{"mass_kg", 2.0},          {"inertia_1_kgm2", 1.0},
                  {"inertia_2_kgm2", 1.5},   {"inertia_3_kgm2", 2.0},
                  {"damping_Ns_per_m", 0.1}, {"angular_damping_Nms_per_rad", 0.05}};
  return type;
}

}  // namespace portwave
