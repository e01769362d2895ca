#include "catalogue/mechanical/planar_arm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <fmt/format.h>

#include "base/sinc.hpp"
#include "catalogue/part_types.hpp"
#include "mechanisms/mechanism_batch.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {

using planar::Arm;
using planar::ArmPorts;
using planar::kMostLinks;
using planar::Matrix;
using planar::Numbers;
using planar::Vector;

Arm make_arm(const Numbers& lengths, const Numbers& masses, const Numbers& centres,
             const Numbers& inertias, double gravity) {
  Arm arm;
  arm.links = static_cast<int>(lengths.size());
  arm.lengths = Eigen::Map<const Eigen::VectorXd>(lengths.data(), arm.links);
  arm.A.setZero(arm.links, arm.links);
  arm.weights.setZero(arm.links);
  double beyond = 0.0;  // mass of the links that follow
  for (int a = arm.links - 1; a >= 0; --a) {
    const auto at = static_cast<std::size_t>(a);
    const double m = masses[at], l = lengths[at], c = centres[at];
    const double moment = m * c + l * beyond;
    arm.A(a, a) = inertias[at] + m * c * c + l * l * beyond;
    for (int b = 0; b < a; ++b) {
      arm.A(a, b) = arm.A(b, a) = arm.lengths[b] * moment;
    }
    arm.weights[a] = gravity * moment;
    beyond += m;
  }
  return arm;
}

/// What both derivatives need, in absolute angles and their momenta π = Bω, π_k = p_k − p_{k+1}.
struct ArmMotion {
  Vector theta, omega;
  Matrix cosines, sines;  ///< A_ab cos(θ_a − θ_b), A_ab sin(θ_a − θ_b)
  Eigen::LLT<Matrix> B;

  ArmMotion(const Arm& arm, const double* x) {
    const int n = arm.links;
    theta.resize(n);
    omega.resize(n);
    Vector sine(n), cosine(n);
    double angle = 0.0;
    for (int k = 0; k < n; ++k) {
      angle += x[k];
      theta[k] = angle;
      sine[k] = std::sin(angle);
      cosine[k] = std::cos(angle);
      omega[k] = x[n + k] - (k + 1 < n ? x[n + k + 1] : 0.0);
    }
    cosines.resize(n, n);
    sines.resize(n, n);
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        cosines(a, b) =
            a == b ? arm.A(a, a) : arm.A(a, b) * (cosine[a] * cosine[b] + sine[a] * sine[b]);
        sines(a, b) = a == b ? 0.0 : arm.A(a, b) * (sine[a] * cosine[b] - cosine[a] * sine[b]);
      }
    }
    B.compute(cosines);
    B.solveInPlace(omega);
  }
};

double arm_energy(const Arm& arm, const double* x) {
  const int n = arm.links;
  const ArmMotion motion(arm, x);
  double energy = 0.0;
  for (int k = 0; k < n; ++k) {
    const double rate = motion.omega[k] - (k > 0 ? motion.omega[k - 1] : 0.0);
    const double half = std::sin(0.5 * motion.theta[k]);
    energy += 0.5 * x[n + k] * rate + 2.0 * arm.weights[k] * half * half;
  }
  return energy;
}

// ∂H/∂θ_k = ω_k Σ_b A_kb sin(θ_k − θ_b) ω_b + g μ_k sin θ_k,   ∂H/∂π = ω.
void arm_gradient(const Arm& arm, const double* x, double* g) {
  const int n = arm.links;
  std::array<double, kMostLinks> sine, cosine, omega, along, across;
  std::array<double, kMostLinks * kMostLinks> L;  // row by row
  const double* const A = arm.A.data();           // symmetric
  const double* const weights = arm.weights.data();
  double* const w = omega.data();
  double angle = 0.0;
  for (int k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    angle += x[k];
    sine[at] = std::sin(angle);
    cosine[at] = std::cos(angle);
    w[k] = x[n + k] - (k + 1 < n ? x[n + k + 1] : 0.0);
  }
  const double *const s = sine.data(), *const c = cosine.data();
  for (int a = 0; a < n; ++a) {  // B = L Lᵀ, and ω = L⁻¹π
    double* const row = L.data() + a * n;
    for (int b = 0; b < a; ++b) {
      const double* const other = L.data() + b * n;
      double entry = A[a * n + b] * (c[a] * c[b] + s[a] * s[b]);
      for (int k = 0; k < b; ++k) entry -= row[k] * other[k];
      row[b] = entry / other[b];
      w[a] -= row[b] * w[b];
    }
    double entry = A[a * n + a];
    for (int k = 0; k < a; ++k) entry -= row[k] * row[k];
    row[a] = std::sqrt(entry);
    w[a] /= row[a];
  }
  for (int a = n - 1; a >= 0; --a) {
    const double* const row = L.data() + a * n;
    w[a] /= row[a];
    for (int b = 0; b < a; ++b) w[b] -= row[b] * w[a];
  }
  for (int k = 0; k < n; ++k) {
    along[static_cast<std::size_t>(k)] = c[k] * w[k];
    across[static_cast<std::size_t>(k)] = s[k] * w[k];
  }
  double torque = 0.0;
  for (int k = n - 1; k >= 0; --k) {
    double by_cosine = 0.0, by_sine = 0.0;
    for (int b = 0; b < n; ++b) {
      if (b == k) continue;
      by_cosine += A[k * n + b] * along[static_cast<std::size_t>(b)];
      by_sine += A[k * n + b] * across[static_cast<std::size_t>(b)];
    }
    torque += w[k] * (s[k] * by_cosine - c[k] * by_sine) + weights[k] * s[k];
    g[k] = torque;
    g[n + k] = w[k] - (k > 0 ? w[k - 1] : 0.0);
  }
}

// With w_j = ∂B/∂θ_j ω, W = (w_1, …):
//   ∂²H/∂π² = B⁻¹,   ∂²H/∂π∂θ = −B⁻¹W,   ∂²H/∂θ² = WᵀB⁻¹W − ½ ∂²(ωᵀBω)/∂θ² + V''.
void arm_hessian(const Arm& arm, const double* x, double* hessian) {
  const int n = arm.links;
  const ArmMotion motion(arm, x);
  const Vector& omega = motion.omega;
  Matrix W = motion.sines * omega.asDiagonal();
  W.diagonal() = -motion.sines * omega;
  const Matrix inverse = motion.B.solve(Matrix::Identity(n, n));
  Matrix mixed = -(inverse * W);
  Matrix angles = -(W.transpose() * mixed);
  const Matrix products = omega.asDiagonal() * motion.cosines * omega.asDiagonal();
  angles -= products;
  for (int k = 0; k < n; ++k) {
    angles(k, k) += products.row(k).sum() + arm.weights[k] * std::cos(motion.theta[k]);
  }
  // From θ and π to relative angles and their momenta: sums over the links that follow, and
  // differences of neighbours.
  const auto sum_rows = [n](Matrix& m) {
    for (int k = n - 2; k >= 0; --k) m.row(k) += m.row(k + 1);
  };
  const auto sum_columns = [n](Matrix& m) {
    for (int k = n - 2; k >= 0; --k) m.col(k) += m.col(k + 1);
  };
  const auto subtract_rows = [n](Matrix& m) {
    for (int k = n - 1; k > 0; --k) m.row(k) -= m.row(k - 1);
  };
  sum_rows(angles);
  sum_columns(angles);
  sum_columns(mixed);
  subtract_rows(mixed);
  Matrix momenta = inverse;
  subtract_rows(momenta);
  momenta.transposeInPlace();
  subtract_rows(momenta);
  Eigen::Map<Eigen::MatrixXd> out(hessian, 2 * n, 2 * n);
  out.topLeftCorner(n, n) = 0.5 * (angles + angles.transpose());
  out.bottomLeftCorner(n, n) = mixed;
  out.topRightCorner(n, n) = mixed.transpose();
  out.bottomRightCorner(n, n) = 0.5 * (momenta + momenta.transpose());
}

/// (cos from − cos to)/(to − from), from + step = to, and its derivative by `to`.
struct MeanSine {
  double value = 0.0, slope = 0.0;

  MeanSine() = default;
  MeanSine(double from, double step) {
    const double half = 0.5 * step, middle = from + half;
    const double sine = std::sin(middle), cosine = std::cos(middle);
    const Sinc sinc(half);
    value = sine * sinc.value;
    slope = 0.5 * (cosine * sinc.value + sine * sinc.slope);
  }
};

/// The columns of a force on the tip, which is at Σ l_k (sin θ_k, −cos θ_k), over a step by dx; null: at x.
void set_tip(const Arm& arm, const double* x, const double* dx, int port, Structure& s) {
  const auto theta = planar::absolute_angles(arm, x);
  std::array<double, kMostLinks> turn = {};
  if (dx != nullptr) turn = planar::absolute_angles(arm, dx);
  planar::for_tip_moments(
      arm, [&](int k) { return theta[static_cast<std::size_t>(k)]; },
      [&](int k) { return turn[static_cast<std::size_t>(k)]; },
      [&](int k, double across, double along) {
        s.G.coeffRef(arm.links + k, port) = -across;
        s.G.coeffRef(arm.links + k, port + 1) = -along;
      });
}

Structure arm_structure(const Arm& arm, const Numbers& damping, const ArmPorts& own) {
  const int n = arm.links;
  const int ports = own.of_joints() + (own.tip ? 2 : 0);
  int port = 0;
  Structure s = Structure::zero(2 * n, ports + n);
  for (int k = 0; k < n; ++k) {
    s.J.insert(k, n + k) = 1.0;
    s.J.insert(n + k, k) = -1.0;
    s.R.insert(n + k, n + k) = damping[static_cast<std::size_t>(k)];
    if (own.joints[static_cast<std::size_t>(k)]) s.G.insert(n + k, port++) = -1.0;
    s.G.insert(n + k, ports + k) = 1.0;
  }
  if (own.tip) set_tip(arm, Numbers(static_cast<std::size_t>(n), 0.0).data(), nullptr, port, s);
  return s;
}

Signature arm_signature(int links, const ArmPorts& own) {
  Signature signature;
  signature.type = "planar_arm";
  for (int k = 1; k <= links; ++k) {
    signature.states.push_back({fmt::format("angle_{}", k), "rad"});
    if (own.joints[static_cast<std::size_t>(k - 1)]) {
      signature.ports.push_back(
          {fmt::format("joint_{}", k), Causality::effort_in, Domain::rotation, 1});
    }
    signature.inputs.push_back({fmt::format("torque_{}", k), "N m"});
  }
  for (int k = 1; k <= links; ++k) {
    signature.states.push_back({fmt::format("momentum_{}", k), "kg m^2/s"});
  }
  if (own.tip) signature.ports.push_back({"tip", Causality::effort_in, Domain::translation, 2});
  return signature;
}

Hamiltonian hamiltonian_of(const Arm& arm) {
  Hamiltonian H;
  H.value = [arm](const double* x) { return arm_energy(arm, x); };
  H.gradient = [arm](const double* x, double* g) { arm_gradient(arm, x, g); };
  H.hessian = [arm](const double* x, double* hessian) { arm_hessian(arm, x, hessian); };
  return H;
}

/// The discrete gradient of H in closed form. With B and B⁺ of the two ends, π = Bω and
/// S_ab = −Δcos(θ_a − θ_b)/Δ(θ_a − θ_b),
///   T⁺ − T = ½(ω + ω⁺)ᵀΔπ − ½ ω⁺ᵀΔB ω,   ΔB_ab = −A_ab S_ab (Δθ_a − Δθ_b),
/// so that
///   ∂̄_π = ½(ω + ω⁺),   ∂̄_θk = ½ Σ_b A_kb S_kb (ω⁺_k ω_b + ω⁺_b ω_k) + g μ_k (−Δcos θ_k/Δθ_k).
/// Symmetric, exact to the round-off of its terms at every step, and without differences of H, whose
/// noise is that of M⁻¹.
///
/// H does not change over whole turns, which are taken away first: increments of the angles would be
/// lost in them.
class PlanarArm final : public NonlinearPortHamiltonian, public LeavesPorts {
 public:
  PlanarArm(Arm arm, Numbers damping, const ArmPorts& ports, Options options)
      : NonlinearPortHamiltonian(arm_signature(arm.links, ports),
                                 arm_structure(arm, damping, ports), hamiltonian_of(arm),
                                 with_tip(std::move(options), arm, ports)),
        arm_(std::move(arm)),
        damping_(std::move(damping)),
        ports_(ports) {}

  /// Without the tip the structure is constant.
  std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const override {
    ArmPorts own = ports_;
    std::size_t port = 0;
    for (std::size_t k = 0; k < own.joints.size(); ++k) {
      if (own.joints[k]) own.joints[k] = !idle[port++];
    }
    if (own.tip) own.tip = !idle[port];
    return std::make_shared<const PlanarArm>(arm_, damping_, own, options());
  }

  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return make_mechanism_batch(port_hamiltonian_parts(parts),
                                [](const Subsystem& part) {
                                  const auto& own = dynamic_cast<const PlanarArm&>(part);
                                  return planar::make_arm_mechanism(own.arm_, own.damping_,
                                                                    own.ports_);
                                },
                                {.max_steps = options().max_newton_steps});
  }

  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    const int n = arm_.links;
    const Ends ends(arm_, x, x_next);
    const Vector &from = ends.motion.omega, &to = ends.next.omega;
    double torque = 0.0;
    for (int k = n - 1; k >= 0; --k) {
      double sum = 0.0;
      for (int b = 0; b < n; ++b) {
        if (b != k) sum += ends.sines(k, b) * (to[k] * from[b] + to[b] * from[k]);
      }
      torque += 0.5 * sum + arm_.weights[k] * ends.falls[static_cast<std::size_t>(k)].value;
      g[k] = torque;
      g[n + k] = 0.5 * (from[k] + to[k]);
    }
    for (int k = n - 1; k > 0; --k) g[n + k] -= g[n + k - 1];
  }

  // With C_kj = ∂(∂̄_θk)/∂ω⁺_j and W = (∂B⁺/∂θ_j ω⁺), ω⁺ = B⁺⁻¹π⁺ has ∂ω⁺/∂θ⁺ = −B⁺⁻¹W.
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const int n = arm_.links;
    const Ends ends(arm_, x, x_next);
    const Vector &from = ends.motion.omega, &to = ends.next.omega;
    Matrix W = ends.next.sines * to.asDiagonal();
    W.diagonal() = -ends.next.sines * to;
    Matrix C(n, n), angles(n, n);
    for (int k = 0; k < n; ++k) {
      double turned = 0.0, steeper = 0.0;
      for (int b = 0; b < n; ++b) {
        if (b == k) continue;
        const double by_angle = 0.5 * ends.slopes(k, b) * (to[k] * from[b] + to[b] * from[k]);
        turned += ends.sines(k, b) * from[b];
        steeper += by_angle;
        C(k, b) = 0.5 * ends.sines(k, b) * from[k];
        angles(k, b) = -by_angle;
      }
      C(k, k) = 0.5 * turned;
      angles(k, k) = steeper + arm_.weights[k] * ends.falls[static_cast<std::size_t>(k)].slope;
    }
    const Matrix inverse = ends.next.B.solve(Matrix::Identity(n, n));
    const Matrix rates = -(inverse * W);  // ∂ω⁺/∂θ⁺
    angles += C * rates;
    Matrix turning = C * inverse, moving = 0.5 * rates, momenta = 0.5 * inverse;
    // From θ and π to relative angles and their momenta.
    for (Matrix* const m : {&angles, &turning}) {
      for (int k = n - 2; k >= 0; --k) m->row(k) += m->row(k + 1);
    }
    for (Matrix* const m : {&moving, &momenta}) {
      for (int k = n - 1; k > 0; --k) m->row(k) -= m->row(k - 1);
    }
    for (Matrix* const m : {&angles, &moving}) {
      for (int k = n - 2; k >= 0; --k) m->col(k) += m->col(k + 1);
    }
    for (Matrix* const m : {&turning, &momenta}) {
      for (int k = n - 1; k > 0; --k) m->col(k) -= m->col(k - 1);
    }
    const auto add = [&jacobian, n](const Matrix& m, int row, int column) {
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) jacobian.emplace_back(row + i, column + j, m(i, j));
      }
    };
    add(angles, 0, 0);
    add(moving, n, 0);
    add(turning, 0, n);
    add(momenta, n, n);
  }

  bool structure_depends_on(int state) const override { return state < arm_.links; }
  /// The tip by the way that it takes.
  void structure_over(const double* x, const double* dx, double /*step_s*/,
                      Structure& out) const override {
    if (ports_.tip) set_tip(arm_, x, dx, ports_.of_joints(), out);
  }

 private:
  static Options with_tip(Options options, const Arm& arm, const ArmPorts& ports) {
    options.structure_at = {};
    if (!ports.tip) return options;
    options.structure_at = [arm, port = ports.of_joints()](const double* x, Structure& out) {
      set_tip(arm, x, nullptr, port, out);
    };
    return options;
  }

  /// The two ends of a step, without whole turns.
  struct Ends {
    std::array<double, 2 * kMostLinks> x, x_next;
    ArmMotion motion, next;
    Matrix sines, slopes;  ///< A_ab S_ab, and its derivative by θ⁺_a
    std::array<MeanSine, kMostLinks> falls;

    Ends(const Arm& arm, const double* from, const double* to)
        : x(unwound(arm, from, from)),
          x_next(unwound(arm, from, to)),
          motion(arm, x.data()),
          next(arm, x_next.data()),
          sines(arm.links, arm.links),
          slopes(arm.links, arm.links) {
      const int n = arm.links;
      Vector turn(n);  // Δθ of the increments, not of sums
      double sum = 0.0;
      for (int k = 0; k < n; ++k) {
        const auto at = static_cast<std::size_t>(k);
        turn[k] = sum += x_next[at] - x[at];
        falls[at] = MeanSine(motion.theta[k], turn[k]);
      }
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < a; ++b) {
          const MeanSine mean(motion.theta[a] - motion.theta[b], turn[a] - turn[b]);
          sines(a, b) = arm.A(a, b) * mean.value;
          sines(b, a) = -sines(a, b);
          slopes(a, b) = slopes(b, a) = arm.A(a, b) * mean.slope;
        }
      }
    }

    static std::array<double, 2 * kMostLinks> unwound(const Arm& arm, const double* from,
                                                      const double* state) {
      std::array<double, 2 * kMostLinks> out;
      for (int i = 0; i < 2 * arm.links; ++i) {
        const bool is_wound = i < arm.links && std::abs(from[i]) > 2.0 * std::numbers::pi;
        const double start = is_wound ? std::remainder(from[i], 2.0 * std::numbers::pi) : from[i];
        out[static_cast<std::size_t>(i)] = is_wound ? start + (state[i] - from[i]) : state[i];
      }
      return out;
    }
  };

  Arm arm_;
  Numbers damping_;
  ArmPorts ports_;
};

/// Reads the lists, which must all be as long as that of the lengths, and fills in what is absent.
struct ArmLists {
  Numbers lengths, masses, centres, inertias, damping;

  explicit ArmLists(const Parameters& p)
      : lengths(value_of<Numbers>(p, "lengths_m")),
        masses(value_of<Numbers>(p, "masses_kg")),
        centres(value_of<Numbers>(p, "centres_m")),
        inertias(value_of<Numbers>(p, "inertias_kgm2")),
        damping(value_of<Numbers>(p, "damping_Nms_per_rad")) {
    Issues issues;
    const std::size_t n = lengths.size();
    if (n < 1 || n > static_cast<std::size_t>(kMostLinks)) {
      issues.push_back({"/lengths_m", fmt::format("must be a list of 1 to {} links, got {} numbers",
                                                  kMostLinks, n)});
    }
    const auto check = [&](const char* name, const Numbers& list, bool optional) {
      if (list.size() == n || (optional && list.empty())) return;
      issues.push_back({std::string("/") + name,
                        fmt::format("must have a number for each of the {} links of lengths_m, "
                                    "got {}",
                                    n, list.size())});
    };
    check("masses_kg", masses, false);
    check("centres_m", centres, true);
    check("inertias_kgm2", inertias, true);
    check("damping_Nms_per_rad", damping, true);
    throw_if_any(std::move(issues));
    damping.resize(n, 0.0);
    for (std::size_t k = centres.size(); k < n; ++k) centres.push_back(0.5 * lengths[k]);
    for (std::size_t k = inertias.size(); k < n; ++k) {
      inertias.push_back(masses[k] * lengths[k] * lengths[k] / 12.0);
    }
    for (std::size_t k = 0; k < n; ++k) {
      if (inertias[k] > 0.0 || centres[k] != 0.0) continue;
      issues.push_back({fmt::format("/inertias_kgm2/{}", k),
                        "must be > 0 kg m^2 for a link whose mass centre is in its joint, got 0"});
    }
    throw_if_any(std::move(issues));
  }
};

std::unique_ptr<Subsystem> build_planar_arm(const Parameters& parameters) {
  const ArmLists lists(parameters);
  const bool tip = value_of<bool>(parameters, "tip_port");
  const Arm arm = make_arm(lists.lengths, lists.masses, lists.centres, lists.inertias,
                           number_of(parameters, "gravity_m_per_s2"));
  NonlinearPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.discrete_gradient = DiscreteGradient::mean_value;  // in place of it: that of PlanarArm
  // Derived above, and of long arms so far apart in size that differences tell nothing of the small
  // ones.
  options.check_derivatives = false;
  // Angles of 1 rad, and of each momentum what alone turns its joint of the stretched arm at 0.5 rad/s.
  const auto states = static_cast<std::size_t>(2 * arm.links);
  Numbers hessian(states * states);
  arm_hessian(arm, Numbers(states, 0.0).data(), hessian.data());
  options.typical_state.assign(states, 1.0);
  for (std::size_t i = states / 2; i < states; ++i) {
    options.typical_state[i] = 0.5 / hessian[i * states + i];
  }
  const ArmPorts ports = {std::vector<bool>(states / 2, true), tip};
  return std::make_unique<PlanarArm>(arm, lists.damping, ports, std::move(options));
}

ParameterInfo numbers(ParameterInfo info, bool optional) {
  info.kind = ParameterKind::numbers;
  if (optional) info.default_value = Numbers{};
  return info;
}

}  // namespace

PartType planar_arm_type() {
  PartType type;
  type.name = "planar_arm";
  type.group = "rotation";
  type.summary = "An arm of up to 20 links in a vertical plane; it hangs where all angles are 0.";
  type.equations =
      "H(q,p) = p^T M(q)^-1 p/2 + V(q),  q: relative joint angles,  theta_k = q_1 + ... + q_k\n"
      "q' = M^-1 p,  p_k' = -dH/dq_k - d_k q_k' - e_k + T_k,  f_k = -q_k'\n"
      "tip at sum l_k (sin theta_k, -cos theta_k):  f_tip = -velocity, the tip feels -e_tip";
  ParameterInfo gravity =
      non_negative_number("gravity_m_per_s2", "m/s^2", "acceleration g of gravity");
  gravity.default_value = 9.81;
  ParameterInfo centres;
  centres.name = "centres_m";
  centres.unit = "m";
  centres.summary = "distances from a joint to the mass centre of its link; its middle if absent";
  ParameterInfo tip;
  tip.name = "tip_port";
  tip.kind = ParameterKind::boolean;
  tip.summary = "whether there is a port \"tip\" for forces (x, y) on the end of the last link";
  tip.default_value = false;
  type.parameters = {
      numbers(positive_number("lengths_m", "m", "lengths l of the links, from the base on"), false),
      numbers(positive_number("masses_kg", "kg", "their masses"), false),
      numbers(std::move(centres), true),
      numbers(non_negative_number("inertias_kgm2", "kg m^2",
                                  "moments of inertia about their mass centres; those of thin "
                                  "rods if absent"),
              true),
      numbers(non_negative_number("damping_Nms_per_rad", "N m s/rad",
                                  "dampers d in the joints; none if absent"),
              true),
      std::move(gravity),
      std::move(tip),
  };
  type.build = build_planar_arm;
  type.example = {{"lengths_m", Numbers{4.0, 3.0}},
                  {"masses_kg", Numbers{20.0, 15.0}},
                  {"centres_m", Numbers{2.0, 1.5}},
                  {"inertias_kgm2", Numbers{30.0, 12.0}},
                  {"damping_Nms_per_rad", Numbers{20.0, 10.0}},
                  {"tip_port", true}};
  return type;
}

}  // namespace portwave
