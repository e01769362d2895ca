// A type of part in a shared library, which the program "portwave" loads while it runs. See
// docs/tutorial/your-own-part-at-run-time.md.

#include "solenoid.hpp"

#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <portwave/extend/part.hpp>
#include <portwave/extend/part_type.hpp>

namespace {

struct SolenoidParameters {
  double turns, area_m2, iron_inductance_H, saturation_flux_Vs, resistance_ohm;
  double mass_kg, spring_N_per_m, preload_m, damping_Ns_per_m;
  double stroke_m, residual_gap_m, stop_N_per_m2;
};

/// w₊³/3 of a stop that is compressed by w, its difference quotient between u and v without
/// cancellation, and the derivative of that by v.
struct Stop {
  static double energy(double w) { return w > 0.0 ? w * w * w / 3.0 : 0.0; }
  static double quotient(double u, double v) {
    if (u <= 0.0 && v <= 0.0) return 0.0;
    if (u >= 0.0 && v >= 0.0) return (u * u + u * v + v * v) / 3.0;
    return (energy(v) - energy(u)) / (v - u);  // one of the energies is 0
  }
  static double quotient_slope(double u, double v) {
    if (u <= 0.0 && v <= 0.0) return 0.0;
    if (u >= 0.0 && v >= 0.0) return (u + 2.0 * v) / 3.0;
    return ((v > 0.0 ? v * v : 0.0) - quotient(u, v)) / (v - u);
  }
};

/// A coil that pulls an armature against a spring, between two stops. Flux linkage λ, position x (0:
/// open, S: closed) and momentum p of the armature:
///
///   H = ρ(x) λ²/2 + λ⁴/(4 L₁ λs²) + p²/(2m) + k(x + x₀)²/2 + s((−x)₊³ + (x − S)₊³)/3
///
/// ρ = g(x)/(μ₀N²A) + 1/L₁ is the reluctance of the air gap and that of the iron. The gap
/// g = (d + √(d² + 4r²))/2 with d = S − x tends to d where it is wide, is the residual gap r when
/// closed, and does not vanish where the stop gives way.
///
/// The discrete gradient is symmetric and in closed form, with ΔF/Δx for a difference quotient:
///   ∇̄_λ = λ̄ (ρ + ρ⁺)/2 + λ̄ (λ² + λ⁺²)/(2 L₁ λs²),  ∇̄_x = (λ² + λ⁺²)/4 Δρ/Δx + ΔV/Δx,  ∇̄_p = p̄/m.
class Solenoid final : public portwave::Subsystem {
 public:
  explicit Solenoid(const SolenoidParameters& given)
      : Subsystem({"solenoid",
                   {{"flux", "V s"}, {"position", "m"}, {"momentum", "kg m/s"}},
                   {{"terminals", portwave::Causality::effort_in, portwave::Domain::electrical, 1},
                    {"armature", portwave::Causality::effort_in, portwave::Domain::translation, 1}},
                   {}}),
        p_(given),
        structure_(portwave::Structure::zero(/*states=*/3, /*inputs=*/2)) {
    constexpr double kMu0 = 4e-7 * std::numbers::pi;
    per_gap_ = 1.0 / (kMu0 * p_.turns * p_.turns * p_.area_m2);
    iron_ = 1.0 / p_.iron_inductance_H;
    quartic_ = iron_ / (p_.saturation_flux_Vs * p_.saturation_flux_Vs);
    // (λ, x, p)' = (J − R)∇H + G (u, F), and (i, v) = Gᵀ∇H.
    structure_.J.insert(1, 2) = 1.0;
    structure_.J.insert(2, 1) = -1.0;
    structure_.R.insert(0, 0) = p_.resistance_ohm;
    structure_.R.insert(2, 2) = p_.damping_Ns_per_m;
    structure_.G.insert(0, 0) = 1.0;
    structure_.G.insert(2, 1) = 1.0;
  }

  const portwave::Structure& structure() const override { return structure_; }
  std::vector<double> typical_state() const override {
    return {p_.saturation_flux_Vs, p_.stroke_m,
            p_.stroke_m * std::sqrt(p_.spring_N_per_m * p_.mass_kg)};
  }

  double storage(const double* s) const override {
    const double flux2 = s[0] * s[0], stretch = s[1] + p_.preload_m;
    return 0.5 * flux2 * reluctance(s[1]) + 0.25 * quartic_ * flux2 * flux2 +
           0.5 * s[2] * s[2] / p_.mass_kg + 0.5 * p_.spring_N_per_m * stretch * stretch +
           p_.stop_N_per_m2 * (Stop::energy(-s[1]) + Stop::energy(s[1] - p_.stroke_m));
  }
  void gradient(const double* s, double* g) const override { discrete_gradient(s, s, g); }

  void discrete_gradient(const double* s, const double* t, double* g) const override {
    const double flux = 0.5 * (s[0] + t[0]), flux2 = 0.5 * (s[0] * s[0] + t[0] * t[0]);
    g[0] = flux * (0.5 * (reluctance(s[1]) + reluctance(t[1])) + quartic_ * flux2);
    g[1] = 0.5 * flux2 * reluctance_quotient(s[1], t[1]) +
           p_.spring_N_per_m * (0.5 * (s[1] + t[1]) + p_.preload_m) +
           p_.stop_N_per_m2 * (Stop::quotient(s[1] - p_.stroke_m, t[1] - p_.stroke_m) -
                               Stop::quotient(-s[1], -t[1]));
    g[2] = 0.5 * (s[2] + t[2]) / p_.mass_kg;
  }
  void discrete_gradient_jacobian(const double* s, const double* t,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double flux = 0.5 * (s[0] + t[0]), flux2 = 0.5 * (s[0] * s[0] + t[0] * t[0]);
    const double mean = 0.5 * (reluctance(s[1]) + reluctance(t[1]));
    jacobian.emplace_back(0, 0, 0.5 * mean + quartic_ * (0.5 * flux2 + flux * t[0]));
    jacobian.emplace_back(0, 1, 0.5 * flux * reluctance_slope(t[1]));
    jacobian.emplace_back(1, 0, 0.5 * t[0] * reluctance_quotient(s[1], t[1]));
    jacobian.emplace_back(
        1, 1,
        0.5 * flux2 * reluctance_quotient_slope(s[1], t[1]) + 0.5 * p_.spring_N_per_m +
            p_.stop_N_per_m2 * (Stop::quotient_slope(s[1] - p_.stroke_m, t[1] - p_.stroke_m) +
                                Stop::quotient_slope(-s[1], -t[1])));
    jacobian.emplace_back(2, 2, 0.5 / p_.mass_kg);
  }
  bool hessian(const double* s, std::vector<Eigen::Triplet<double>>& hessian) const override {
    // The discrete gradient is symmetric in s and t: both derivatives at s = t are half of it.
    std::vector<Eigen::Triplet<double>> half;
    discrete_gradient_jacobian(s, s, half);
    for (const auto& entry : half) {
      hessian.emplace_back(entry.row(), entry.col(), 2.0 * entry.value());
    }
    return true;
  }

 private:
  double root(double x) const { return std::hypot(p_.stroke_m - x, 2.0 * p_.residual_gap_m); }
  double reluctance(double x) const { return 0.5 * per_gap_ * (p_.stroke_m - x + root(x)) + iron_; }
  double reluctance_slope(double x) const {
    return -0.5 * per_gap_ * (1.0 + (p_.stroke_m - x) / root(x));
  }
  /// √ is a quotient of x by √² = (S − x)² + 4r².
  double reluctance_quotient(double x, double y) const {
    return -0.5 * per_gap_ * (1.0 + (2.0 * p_.stroke_m - x - y) / (root(x) + root(y)));
  }
  double reluctance_quotient_slope(double x, double y) const {
    const double sum = root(x) + root(y);
    const double slope = (p_.stroke_m - y) / root(y);  // −d root/dy
    return 0.5 * per_gap_ * (1.0 - (2.0 * p_.stroke_m - x - y) * slope / sum) / sum;
  }

  SolenoidParameters p_;
  double per_gap_ = 0.0;  ///< 1/(μ₀N²A)
  double iron_ = 0.0;     ///< 1/L₁
  double quartic_ = 0.0;  ///< 1/(L₁λs²)
  portwave::Structure structure_;
};

portwave::ParameterInfo number(std::string name, std::string unit, std::string summary) {
  portwave::ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary = std::move(summary);
  info.minimum = 0.0;
  return info;
}

portwave::ParameterInfo positive(std::string name, std::string unit, std::string summary) {
  portwave::ParameterInfo info = number(std::move(name), std::move(unit), std::move(summary));
  info.minimum_excluded = true;
  return info;
}

}  // namespace

portwave::PartType solenoid_type() {
  portwave::PartType type;
  type.name = "solenoid";
  type.group = "transducers";
  type.summary =
      "Coil that pulls an armature against a spring, with iron that saturates and stops.";
  type.equations =
      "H = flux^2/(2 L(x)) + flux^4/(4 L1 flux_s^2) + p^2/(2 m) + k (x + x0)^2/2 + stops\n"
      "1/L(x) = g(x)/(mu0 N^2 A) + 1/L1,  g = gap: about stroke - x, r when closed\n"
      "i = dH/dflux,  v = p/m\n"
      "flux' = u - R i,  x' = v,  p' = F - dH/dx - d v";
  type.parameters = {
      positive("turns", "", "turns N of the coil"),
      positive("area_m2", "m^2", "area A of the air gap"),
      positive("iron_inductance_H", "H", "inductance L1 of the iron alone, at small currents"),
      positive("saturation_flux_Vs", "V s", "flux linkage flux_s that doubles the iron's current"),
      number("resistance_ohm", "ohm", "resistance R of the coil"),
      positive("mass_kg", "kg", "mass m of the armature"),
      positive("spring_N_per_m", "N/m", "stiffness k of the return spring"),
      number("preload_m", "m", "its compression x0 when open"),
      number("damping_Ns_per_m", "N s/m", "friction d of the armature"),
      positive("stroke_m", "m", "way of the armature from open to closed"),
      positive("residual_gap_m", "m", "air gap r that is left when closed"),
      positive("stop_N_per_m2", "N/m^2", "force of a stop by its compression squared"),
  };
  type.build = [](const portwave::Parameters& p) -> std::unique_ptr<portwave::Component> {
    const auto of = [&p](const char* name) { return std::get<double>(p.find(name)->second); };
    return std::make_unique<Solenoid>(
        SolenoidParameters{.turns = of("turns"),
                           .area_m2 = of("area_m2"),
                           .iron_inductance_H = of("iron_inductance_H"),
                           .saturation_flux_Vs = of("saturation_flux_Vs"),
                           .resistance_ohm = of("resistance_ohm"),
                           .mass_kg = of("mass_kg"),
                           .spring_N_per_m = of("spring_N_per_m"),
                           .preload_m = of("preload_m"),
                           .damping_Ns_per_m = of("damping_Ns_per_m"),
                           .stroke_m = of("stroke_m"),
                           .residual_gap_m = of("residual_gap_m"),
                           .stop_N_per_m2 = of("stop_N_per_m2")});
  };
  type.example = {{"turns", 800.0},           {"area_m2", 2e-4},
                  {"iron_inductance_H", 0.6}, {"saturation_flux_Vs", 0.2},
                  {"resistance_ohm", 12.0},   {"mass_kg", 0.05},
                  {"spring_N_per_m", 400.0},  {"preload_m", 0.01},
                  {"damping_Ns_per_m", 0.5},  {"stroke_m", 0.004},
                  {"residual_gap_m", 1e-4},   {"stop_N_per_m2", 1e9}};
  return type;
}

PORTWAVE_PLUGIN(types) { types.add(solenoid_type()); }
