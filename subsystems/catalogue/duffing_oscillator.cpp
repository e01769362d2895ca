#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "part_types.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace portwave {
namespace {

enum State { kPosition, kVelocity, kElongation, kStates };

/// Root of the strictly increasing cubic ((c₃w + c₂)w + c₁)w + c₀ by Newton from the root of its
/// linear part. Newton on an increasing cubic cannot cycle: beyond the root, away from the
/// inflection, it falls monotonically, and from the other side its first step leads there. The
/// error after a step is below (relative step)², so a step under 1e-9 leaves round-off only.
/// False when an argument is not finite.
bool solve_increasing_cubic(double c3, double c2, double c1, double c0, double& root) {
  constexpr int kMaxSteps = 200;
  constexpr double kRelativeStep = 1e-9;
  double w = -c0 / c1;
  for (int i = 0; i < kMaxSteps; ++i) {
    const double value = ((c3 * w + c2) * w + c1) * w + c0;
    const double slope = (3.0 * c3 * w + 2.0 * c2) * w + c1;
    const double step = value / slope;
    w -= step;
    if (std::abs(step) <= kRelativeStep * std::abs(w)) {
      root = w;
      return true;
    }
    if (w == 0.0 && step == 0.0) break;
  }
  root = w;
  return w == 0.0;
}

/// The step in the mean velocity w = (v + v⁺)/2: with κ = k₁₂h/2 + c₁₂ and ρ = κ/(κ + γ),
///   u = (s a − k₁₂δ + κw)/(κ + γ),  b = a − (2γ/s)u,
///   2m(w − v)/h + ¼k₃h³ w³ + k₃qh² w² + (c_w + ³⁄₂k₃q²h) w + A₀ − ρ s a = 0,
///   c_w = k₁h/2 + c₁ + γρ,  A₀ = k₁q + k₃q³ − γk₁₂δ/(κ + γ) − F,
/// increasing in w since 6q² + 8qd + 3d² has no real root (d = hw). It is solved for the increment
/// w − v, whose rounding errors are smaller than those of w by a factor of the order of h; where the
/// spring outweighs the inertia (h far beyond the period) v is the larger of the two, and w is solved for.
class DuffingBatch final : public StepBatch {
 public:
  DuffingBatch(std::span<const Subsystem* const> parts,
               std::vector<DuffingOscillatorParameters> parameters)
      : StepBatch(static_cast<int>(parts.size()), kStates, 1, 1),
        parameters_(std::move(parameters)),
        maps_(parts.size()),
        frozen_(parts.size()) {}

  void prepare(double h, const double* impedance) override {
    for (std::size_t l = 0; l < maps_.size(); ++l) {
      const DuffingOscillatorParameters& p = parameters_[l];
      const double gamma = impedance[l];
      const double kappa = 0.5 * h * p.coupling_stiffness_N_per_m + p.coupling_damping_Ns_per_m;
      Map& m = maps_[l];
      m.h = h;
      m.s = std::sqrt(2.0 * gamma / h);
      m.kappa = kappa;
      m.share = 1.0 / (kappa + gamma);
      m.rho_s = kappa * m.share * m.s;
      m.cubic = 0.25 * p.cubic_stiffness_N_per_m3 * h * h * h;
      m.inertia = 2.0 * p.mass_kg / h;
      m.linear = 0.5 * h * p.stiffness_N_per_m + p.damping_Ns_per_m + gamma * kappa * m.share;
      m.transmission = 2.0 * gamma * m.share;
      m.wave_per_force = 2.0 * gamma / m.s * m.share;
      if (!(kappa + gamma > 0.0) ||
          !(m.inertia + m.linear > 0.0)) {  // only negative dampers can do that
        throw ConfigError("", "the implicit step is singular at this step size");
      }
      m.elongation_force = gamma * p.coupling_stiffness_N_per_m * m.share;
    }
  }

  void freeze(LaneRange range, const double* x, const double* input) override {
    for (auto l = static_cast<std::size_t>(range.first); l < static_cast<std::size_t>(range.last);
         ++l) {
      const DuffingOscillatorParameters& p = parameters_[l];
      const Map& m = maps_[l];
      const double* xl = x + l * kStates;
      const double q = xl[kPosition], k3 = p.cubic_stiffness_N_per_m3;
      const double v = xl[kVelocity];
      Frozen& f = frozen_[l];
      f.q = q;
      f.v = v;
      f.delta = xl[kElongation];
      f.force = input == nullptr ? 0.0 : input[l];
      const double w2 = k3 * q * m.h * m.h, w1 = m.linear + 1.5 * k3 * q * q * m.h;
      const bool inertia_rules = std::abs((m.cubic * v + w2) * v + w1) <= m.inertia;
      const double w0 = inertia_rules ? v : 0.0;
      f.base = w0;
      f.c2 = w2 + 3.0 * m.cubic * w0;
      f.c1 = m.inertia + w1 + (2.0 * w2 + 3.0 * m.cubic * w0) * w0;
      f.c0 = m.inertia * (w0 - v) + ((m.cubic * w0 + w2) * w0 + w1) * w0 +
             (p.stiffness_N_per_m + k3 * q * q) * q - m.elongation_force * f.delta - f.force;
      f.b0 = m.wave_per_force * (m.kappa * w0 - p.coupling_stiffness_N_per_m * f.delta);
    }
  }

  LaneStatus scatter(LaneRange range, const double* a, double* b) override {
    for (int l = range.first; l < range.last; ++l) {
      double increment;
      if (!solve(static_cast<std::size_t>(l), a[l], increment, b[l])) return fault(a[l], l);
    }
    return {};
  }

  LaneStatus advance(LaneRange range, const double* a, double* x_next, double* b,
                     StepEnergy* energy) override {
    for (int l = range.first; l < range.last; ++l) {
      const auto lane = static_cast<std::size_t>(l);
      double increment;
      if (!solve(lane, a[l], increment, b[l])) return fault(a[l], l);
      commit(lane, a[l], increment, x_next + lane * kStates, energy[l]);
    }
    return {};
  }

 private:
  struct Map {
    double h, s, kappa, share, rho_s, cubic, linear, inertia, transmission, wave_per_force,
        elongation_force;
  };
  struct Frozen {
    double q, v, delta, force, base, c2, c1, c0, b0;
  };

  /// `increment` is w − base.
  bool solve(std::size_t lane, double a, double& increment, double& b) const {
    const Map& m = maps_[lane];
    const Frozen& f = frozen_[lane];
    if (!solve_increasing_cubic(m.cubic, f.c2, f.c1, f.c0 - m.rho_s * a, increment)) {
      return false;
    }
    b = a - (m.transmission * a + f.b0 + m.wave_per_force * m.kappa * increment);
    return true;
  }

  static LaneStatus fault(double a, int lane) {
    return {lane, std::isfinite(a) ? StepFault::not_converged : StepFault::not_finite};
  }

  void commit(std::size_t lane, double a, double increment, double* next,
              StepEnergy& energy) const {
    const DuffingOscillatorParameters& p = parameters_[lane];
    const Map& m = maps_[lane];
    const Frozen& f = frozen_[lane];
    const double k12 = p.coupling_stiffness_N_per_m;
    const double w = f.base + increment;
    const double u = (m.s * a - k12 * f.delta + m.kappa * w) * m.share;
    const double q = f.q + m.h * w, v = f.v + 2.0 * ((f.base - f.v) + increment),
                 delta = f.delta + m.h * (u - w);
    next[kPosition] = q;
    next[kVelocity] = v;
    next[kElongation] = delta;
    energy.storage_J =
        0.5 * (p.mass_kg * v * v + p.stiffness_N_per_m * q * q +
               0.5 * p.cubic_stiffness_N_per_m3 * (q * q) * (q * q) + k12 * delta * delta);
    energy.magnitude_J = 4.0 * energy.storage_J;  // no term is negative, none of degree above 4
    energy.dissipated_J =
        m.h * (p.damping_Ns_per_m * w * w + p.coupling_damping_Ns_per_m * (u - w) * (u - w));
    energy.external_supply_J = m.h * f.force * w;
  }

  std::vector<DuffingOscillatorParameters> parameters_;
  std::vector<Map> maps_;
  std::vector<Frozen> frozen_;
};

Signature duffing_signature() {
  return {"duffing_oscillator",
          {{"q1", "m"}, {"v1", "m/s"}, {"delta", "m"}},
          {{"coupling", Causality::flow_in, Domain::translation, 1}},
          {{"force", "N"}}};
}

Structure duffing_structure(const DuffingOscillatorParameters& p) {
  Structure s = Structure::zero(kStates, 2);
  const double m = p.mass_kg, c12 = p.coupling_damping_Ns_per_m;
  s.J.insert(kPosition, kVelocity) = 1.0 / m;
  s.J.insert(kVelocity, kPosition) = -1.0 / m;
  s.J.insert(kVelocity, kElongation) = 1.0 / m;
  s.J.insert(kElongation, kVelocity) = -1.0 / m;
  s.R.insert(kVelocity, kVelocity) = (p.damping_Ns_per_m + c12) / (m * m);
  s.G.insert(kElongation, 0) = 1.0;
  s.G.insert(kVelocity, 1) = 1.0 / m;
  s.P.insert(kVelocity, 0) = -c12 / m;
  s.S.insert(0, 0) = c12;
  return s;
}

class DuffingOscillator final : public Subsystem {
 public:
  explicit DuffingOscillator(const DuffingOscillatorParameters& p)
      : Subsystem(duffing_signature()), p_(p), structure_(duffing_structure(p)) {
    throw_if_any(validate(structure_, kStates, 2,
                          {.allow_active = p.allow_active, .names = variable_names(signature())}));
  }

  double storage(const double* x) const override {
    const double q = x[kPosition], v = x[kVelocity], d = x[kElongation];
    return 0.5 * (p_.mass_kg * v * v + p_.stiffness_N_per_m * q * q +
                  0.5 * p_.cubic_stiffness_N_per_m3 * (q * q) * (q * q) +
                  p_.coupling_stiffness_N_per_m * d * d);
  }
  void gradient(const double* x, double* g) const override { discrete_gradient(x, x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    g[kPosition] = p_.stiffness_N_per_m * 0.5 * (q0 + q) +
                   0.25 * p_.cubic_stiffness_N_per_m3 * (q0 + q) * (q0 * q0 + q * q);
    g[kVelocity] = p_.mass_kg * 0.5 * (x[kVelocity] + y[kVelocity]);
    g[kElongation] = p_.coupling_stiffness_N_per_m * 0.5 * (x[kElongation] + y[kElongation]);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    jacobian.emplace_back(kPosition, kPosition,
                          0.5 * p_.stiffness_N_per_m + 0.25 * p_.cubic_stiffness_N_per_m3 *
                                                           (q0 * q0 + 2.0 * q0 * q + 3.0 * q * q));
    jacobian.emplace_back(kVelocity, kVelocity, 0.5 * p_.mass_kg);
    jacobian.emplace_back(kElongation, kElongation, 0.5 * p_.coupling_stiffness_N_per_m);
  }
  const Structure& structure() const override { return structure_; }
  bool is_active() const override { return p_.allow_active; }
  std::string batch_key() const override { return "duffing_oscillator"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Subsystem* const> parts) const override {
    std::vector<DuffingOscillatorParameters> parameters;
    for (const Subsystem* part : parts) {
      parameters.push_back(dynamic_cast<const DuffingOscillator*>(part)->p_);
    }
    return std::make_unique<DuffingBatch>(parts, std::move(parameters));
  }

 private:
  DuffingOscillatorParameters p_;
  Structure structure_;
};

}  // namespace

std::unique_ptr<Subsystem> duffing_oscillator(const DuffingOscillatorParameters& p) {
  require_valid(duffing_oscillator_type(),
                {{"mass_kg", p.mass_kg},
                 {"stiffness_N_per_m", p.stiffness_N_per_m},
                 {"cubic_stiffness_N_per_m3", p.cubic_stiffness_N_per_m3},
                 {"damping_Ns_per_m", p.damping_Ns_per_m},
                 {"coupling_stiffness_N_per_m", p.coupling_stiffness_N_per_m},
                 {"coupling_damping_Ns_per_m", p.coupling_damping_Ns_per_m}},
                p.allow_active);
  return std::make_unique<DuffingOscillator>(p);
}

PartType duffing_oscillator_type() {
  const auto optional = [](ParameterInfo info) {
    info.default_value = 0.0;
    return info;
  };
  PartType type;
  type.name = "duffing_oscillator";
  type.summary = "Mass on a hardening spring, with a coupling spring whose free end is the port.";
  type.equations =
      "H(q,v,d) = m v^2/2 + k1 q^2/2 + k3 q^4/4 + k12 d^2/2\n"
      "q' = v,  d' = u - v,  m v' = -k1 q - k3 q^3 - c1 v + e + F,  e = k12 d + c12 (u - v)";
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      non_negative_number("stiffness_N_per_m", "N/m", "stiffness k1 of the spring to ground"),
      optional(non_negative_number("cubic_stiffness_N_per_m3", "N/m^3", "its hardening k3")),
      damper("damping_Ns_per_m", "N s/m", "damper c1 to ground"),
      optional(non_negative_number("coupling_stiffness_N_per_m", "N/m",
                                   "stiffness k12 of the coupling spring")),
      damper("coupling_damping_Ns_per_m", "N s/m", "damper c12 beside the coupling spring"),
  };
  type.build = [](const Parameters& parameters) {
    DuffingOscillatorParameters p;
    p.mass_kg = number_of(parameters, "mass_kg");
    p.stiffness_N_per_m = number_of(parameters, "stiffness_N_per_m");
    p.cubic_stiffness_N_per_m3 = number_of(parameters, "cubic_stiffness_N_per_m3");
    p.damping_Ns_per_m = number_of(parameters, "damping_Ns_per_m");
    p.coupling_stiffness_N_per_m = number_of(parameters, "coupling_stiffness_N_per_m");
    p.coupling_damping_Ns_per_m = number_of(parameters, "coupling_damping_Ns_per_m");
    p.allow_active = allows_active(parameters);
    return duffing_oscillator(p);
  };
  type.example = {{"mass_kg", 8.0},
                  {"stiffness_N_per_m", 100.0},
                  {"cubic_stiffness_N_per_m3", 8000.0},
                  {"damping_Ns_per_m", 0.1},
                  {"coupling_stiffness_N_per_m", 120.0},
                  {"coupling_damping_Ns_per_m", 0.05}};
  return type;
}

}  // namespace portwave
