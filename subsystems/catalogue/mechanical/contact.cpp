#include <algorithm>
#include <cmath>
#include <utility>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

struct ContactParameters {
  double stiffness;
  double damping;
  double gap_m;
  double size_m;
  bool is_hertzian;
  double side;                 ///< 1: touched as d grows; -1: as it falls
  std::vector<double> normal;  ///< of unit length; {1}: the face moves along a line
};

/// One-sided spring with damping that vanishes where it separates. The energy is a function of the
/// compression s = max(0, ±d − gap) alone, and the damping is a resistance ≥ 0, so that no step takes
/// more energy out of a contact than went into it. The resistance is no larger than what takes up all
/// that the spring gives: a contact that is left faster than it springs back pushes with 0, and does not
/// pull.
class Contact final : public Subsystem {
 public:
  explicit Contact(const ContactParameters& p)
      : Subsystem(Signature{
            "contact",
            {{"approach", "m"}},
            {{"face", Causality::flow_in, Domain::translation, static_cast<int>(p.normal.size())}},
            {}}),
        p_(p),
        structure_(Structure::zero(1, static_cast<int>(p.normal.size()))) {
    const auto size = static_cast<int>(p_.normal.size());
    for (int j = 0; j < size; ++j) structure_.G.insert(0, j) = p_.normal[at(j)];
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) structure_.S.insert(i, j) = 0.0;
    }
  }

  std::vector<double> typical_state() const override { return {p_.size_m}; }
  double storage(const double* x) const override {
    const double s = compression(x[0]);
    return p_.is_hertzian ? 0.4 * p_.stiffness * s * s * std::sqrt(s) : 0.5 * p_.stiffness * s * s;
  }
  void gradient(const double* x, double* g) const override {
    g[0] = p_.side * force(compression(x[0]));
  }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    g[0] = p_.side * mean_force(x[0], y[0]);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    jacobian.emplace_back(0, 0, mean_slope(x[0], y[0]));
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    hessian.emplace_back(0, 0, slope(x[0]));
    return true;
  }
  bool is_smooth() const override { return false; }
  std::vector<StateLevel> state_levels() const override {
    StateLevel touch{0, p_.side * p_.gap_m, "closes", "opens"};
    if (p_.side < 0.0) std::swap(touch.rising, touch.falling);
    return {touch};
  }
  bool constant_structure() const override { return p_.damping == 0.0; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override {
    set_resistance(resistance_at(x_mid[0]), out);
  }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    double resistance = resistance_at(x[0] + 0.5 * dx[0]);
    const double separation = -p_.side * dx[0];
    if (separation > 0.0) {
      resistance = std::min(resistance, mean_force(x[0], x[0] + dx[0]) * step_s / separation);
    }
    set_resistance(resistance, out);
  }

 private:
  double resistance_at(double d) const {
    const double s = compression(d);
    return p_.damping * (p_.is_hertzian ? s * std::sqrt(s) : s);
  }
  void set_resistance(double resistance, Structure& out) const {
    const auto size = static_cast<int>(p_.normal.size());
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) {
        out.S.coeffRef(i, j) = resistance * p_.normal[at(i)] * p_.normal[at(j)];
      }
    }
  }
  double compression(double d) const { return std::max(0.0, p_.side * d - p_.gap_m); }
  double force(double s) const { return p_.stiffness * (p_.is_hertzian ? s * std::sqrt(s) : s); }
  double slope(double d) const {
    const double s = compression(d);
    if (s == 0.0) return 0.0;
    return p_.stiffness * (p_.is_hertzian ? 1.5 * std::sqrt(s) : 1.0);
  }

  /// |H(y) − H(x)|/|y − x|. Within contact by divided differences that do not cancel; from or to
  /// free flight the compressed side alone has energy, and it is the shorter of the two lengths.
  double mean_force(double x, double y) const {
    const double s = compression(x), t = compression(y);
    if (s == 0.0 && t == 0.0) return 0.0;
    if (s > 0.0 && t > 0.0) {
      if (!p_.is_hertzian) return 0.5 * p_.stiffness * (s + t);
      const double a = std::sqrt(s), b = std::sqrt(t);
      return 0.4 * p_.stiffness *
             (a * a * a * a + a * b * (a * a + a * b + b * b) + b * b * b * b) / (a + b);
    }
    return storage(s > 0.0 ? &x : &y) / std::abs(y - x);
  }
  /// Its derivative by ±y.
  double mean_slope(double x, double y) const {
    const double s = compression(x), t = compression(y);
    if (s == 0.0 && t == 0.0) return 0.0;
    if (s > 0.0 && t > 0.0 && !p_.is_hertzian) return 0.5 * p_.stiffness;
    if (y == x) return 0.5 * slope(x);
    if (s > 0.0 && t > 0.0) {
      // d/dy of the divided difference, in roots: g = N/(a + b), dy = 2b db.
      const double a = std::sqrt(s), b = std::sqrt(t), c = a + b;
      const double N = a * a * a * a + a * b * (a * a + a * b + b * b) + b * b * b * b;
      const double dN = a * a * a + 2.0 * a * a * b + 3.0 * a * b * b + 4.0 * b * b * b;
      return 0.4 * p_.stiffness * (dN * c - N) / (c * c) / (2.0 * b);
    }
    return (force(t) - mean_force(x, y)) / (p_.side * (y - x));
  }

  ContactParameters p_;
  Structure structure_;
};

std::vector<double> unit_normal(std::vector<double> normal) {
  if (normal.empty()) return {1.0};
  double length = 0.0;
  for (const double each : normal) length = std::hypot(length, each);
  if (normal.size() > 3 || length == 0.0) {
    throw ConfigError("/normal", "must have 1, 2 or 3 components that are not all 0");
  }
  for (double& each : normal) each /= length;
  return normal;
}

}  // namespace

PartType contact_type() {
  PartType type;
  type.name = "contact";
  type.group = "translation";
  type.summary = "One-sided contact: pushes where it is compressed and lets go elsewhere.";
  type.equations =
      "d' = f,  s = max(0, d - gap), or max(0, -d - gap) with side \"negative\"\n"
      "H = k s^(n+1)/(n+1)\n"
      "e = +-k s^n max(0, 1 + a s'),  n = 1 (linear) or 3/2 (Hertz),  k = force/compression^n\n"
      "with a normal N of 2 or 3 components:  d' = N^T f,  e = N times the above; no friction";
  ParameterInfo law;
  law.name = "law";
  law.kind = ParameterKind::choice;
  law.choices = {"linear", "hertz"};
  law.summary = "n: linear, or Hertz's law of round bodies";
  law.default_value = std::string("linear");
  ParameterInfo damping = non_negative_number(
      "damping_s_per_m", "s/m", "a: about 1.5 (1 - restitution)/speed for impacts of that speed");
  damping.default_value = 0.0;
  ParameterInfo gap;
  gap.name = "gap_m";
  gap.unit = "m";
  gap.summary = "distance of the faces where d is 0";
  gap.default_value = 0.0;
  ParameterInfo side;
  side.name = "side";
  side.kind = ParameterKind::choice;
  side.choices = {"positive", "negative"};
  side.summary = "whether the faces touch as the approach d grows or as it falls";
  side.default_value = std::string("positive");
  ParameterInfo normal;
  normal.name = "normal";
  normal.kind = ParameterKind::numbers;
  normal.summary =
      "direction in which d grows, for a face that moves in a plane or in space: 2 or 3 "
      "components, "
      "of any length; absent: along a line";
  normal.default_value = std::vector<double>();
  type.parameters = {
      positive_number("force_N", "N", "force at rest where the compression is compression_m"),
      positive_number("compression_m", "m", "compression s at which the force is force_N"),
      damping,
      gap,
      side,
      law,
      normal};
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double reach_m = number_of(p, "compression_m");
    const bool is_hertzian = value_of<std::string>(p, "law") == "hertz";
    const double stiffness =
        number_of(p, "force_N") / (is_hertzian ? reach_m * std::sqrt(reach_m) : reach_m);
    return std::make_unique<Contact>(ContactParameters{
        stiffness, stiffness * number_of(p, "damping_s_per_m"), number_of(p, "gap_m"), reach_m,
        is_hertzian, value_of<std::string>(p, "side") == "negative" ? -1.0 : 1.0,
        unit_normal(value_of<std::vector<double>>(p, "normal"))});
  };
  type.example = {{"force_N", 20.0},
                  {"compression_m", 0.5},
                  {"damping_s_per_m", 0.1},
                  {"gap_m", 0.2},
                  {"law", std::string("hertz")}};
  return type;
}

}  // namespace portwave
