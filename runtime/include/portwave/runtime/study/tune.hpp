#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/method/method_choice.hpp"
#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class PortResponses;

/// A scalar port as tuned.
struct PortTuning {
  int part = 0;            ///< place in TuningReport::parts
  std::string port = {};   ///< "part.port", with "[1]" where it has several entries
  double impedance = 0.0;  ///< of the choice
  double match = 0.0;      ///< without reflection into its own part; where not > 0 there is none
};

/// Properties of a part with the impedances of the choice: smallest eigenvalues for its scattering matrix
/// D, linearised at the initial state. Not negative where it has the property.
struct PartMargins {
  std::string part = {};
  double firm = 0.0;  ///< of sym(D) − DᵀD: firmly nonexpansive, as Douglas–Rachford requires
  double nonexpansive = 0.0;  ///< of I − DᵀD, as Peaceman–Rachford requires
};

/// The predicted rate of an update rule.
struct UpdateRate {
  InnerUpdate update;
  PredictedRate predicted = {};
};

/// The predicted rates of a rule of impedances with each update rule, at the relaxation of the scenario
/// where it names that one, else 1.
struct RuleRates {
  std::string rule = {};                 ///< as scenario files call it: "uniform", "matched", …
  std::string problem = {};              ///< not empty: why it has no impedances here
  std::vector<double> by_port = {};      ///< impedances, empty with a problem
  std::vector<UpdateRate> updates = {};  ///< of `update_rules`, in that order
  PredictedRate averaged =
      {};  ///< Peaceman–Rachford with θ = ½, which needs nonexpansive parts only
};

/// The result of tuning a scenario.
struct TuningReport {
  std::vector<PortTuning> ports = {};  ///< by scalar port
  std::vector<PartMargins> parts = {};
  std::vector<RuleRates> rules = {};  ///< that of the scenario first, if it gives values
  MethodChoice choice = {};
};

/// The scenario-file word for the source of a method's impedances; "none" without waves.
std::string impedance_rule(const CouplingMethod& method);

/// The predicted rates of each rule at the initial state. Rules without impedances here say why.
std::vector<RuleRates> rates_of_rules(const Scenario& scenario, const PortResponses& responses,
                                      const PhaseCallback& listener = {});

/// Chooses the iteration and, with `rule` automatic, the impedances; else those of the rule,
/// `given` being the scenario's own values. Errors: ConfigError where that rule has no impedances
/// here, or the scenario's method no waves.
TuningReport tune(const Scenario& scenario, ImpedanceKind rule = ImpedanceKind::automatic,
                  const PhaseCallback& listener = {});

}  // namespace portwave
