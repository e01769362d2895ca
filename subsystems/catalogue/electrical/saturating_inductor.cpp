#include "catalogue/part_types.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

struct SaturatingInductorParameters {
  double inductance_H;
  double saturation_flux_Vs;
  double resistance_ohm;
  bool allow_active;
};

/// Flux λ: i = λ/L (1 + (λ/λs)²).
class SaturatingInductor final : public Subsystem {
 public:
  explicit SaturatingInductor(const SaturatingInductorParameters& p)
      : Subsystem(Signature{"saturating_inductor",
                            {{"flux", "V s"}},
                            {{"terminals", Causality::effort_in, Domain::electrical, 1}},
                            {}}),
        linear_(1.0 / p.inductance_H),
        cubic_(linear_ / p.saturation_flux_Vs / p.saturation_flux_Vs),
        typical_(p.saturation_flux_Vs),
        is_active_(p.allow_active),
        structure_(Structure::zero(1, 1)) {
    structure_.R.insert(0, 0) = p.resistance_ohm;
    structure_.G.insert(0, 0) = 1.0;
    throw_if_any(validate(structure_, 1, 1,
                          {.allow_active = p.allow_active, .names = variable_names(signature())}));
  }

  std::vector<double> typical_state() const override { return {typical_}; }
  double storage(const double* x) const override {
    const double square = x[0] * x[0];
    return 0.5 * square * (linear_ + 0.5 * cubic_ * square);
  }
  void gradient(const double* x, double* g) const override { discrete_gradient(x, x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    g[0] = 0.5 * (x[0] + y[0]) * (linear_ + 0.5 * cubic_ * (x[0] * x[0] + y[0] * y[0]));
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double sum = x[0] * x[0] + 2.0 * x[0] * y[0] + 3.0 * y[0] * y[0];
    jacobian.emplace_back(0, 0, 0.5 * linear_ + 0.25 * cubic_ * sum);
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    hessian.emplace_back(0, 0, linear_ + 3.0 * cubic_ * x[0] * x[0]);
    return true;
  }
  const Structure& structure() const override { return structure_; }
  bool is_active() const override { return is_active_; }

 private:
  double linear_, cubic_, typical_;
  bool is_active_;
  Structure structure_;
};

}  // namespace

PartType saturating_inductor_type() {
  PartType type;
  type.name = "saturating_inductor";
  type.group = "electrical";
  type.summary = "Coil whose core saturates: the current grows with the cube of the flux.";
  type.equations =
      "H = flux^2/(2 L) + flux^4/(4 L flux_s^2)\n"
      "i = flux/L (1 + (flux/flux_s)^2),  flux' = u - R i,  f = i";
  type.parameters = {
      positive_number("inductance_H", "H", "inductance L at small currents"),
      positive_number("saturation_flux_Vs", "V s",
                      "flux flux_s at which the current is twice that without saturation"),
      damper("resistance_ohm", "ohm", "resistance R of the winding"),
  };
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    return std::make_unique<SaturatingInductor>(SaturatingInductorParameters{
        number_of(p, "inductance_H"), number_of(p, "saturation_flux_Vs"),
        number_of(p, "resistance_ohm"), allows_active(p)});
  };
  type.example = {{"inductance_H", 0.5}, {"saturation_flux_Vs", 0.8}, {"resistance_ohm", 0.2}};
  return type;
}

}  // namespace portwave
