#include "portwave/runtime/study/tune.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "step/stepper_options.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

double smallest_eigenvalue(const Eigen::MatrixXd& symmetric) {
  return symmetric_eigenvalues(symmetric).minCoeff();
}

std::vector<PortTuning> ports_of(const PortResponses& responses,
                                 const std::vector<double>& impedance) {
  std::vector<PortTuning> ports;
  int with_ports = 0;
  const auto parts = responses.system().parts();
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    const Eigen::MatrixXd& response = responses.of(i);
    Eigen::Index own = 0;
    for (const Port& port : parts[at(i)].component->signature().ports) {
      for (int k = 0; k < port.dimension; ++k, ++own) {
        std::string name = parts[at(i)].name + "." + port.name;
        if (port.dimension > 1) name += fmt::format("[{}]", k);
        const double value = response(own, own);
        const double match = port.causality == Causality::flow_in ? value : 1.0 / value;
        ports.push_back({with_ports, std::move(name), impedance[ports.size()], match});
      }
    }
    if (own > 0) ++with_ports;
  }
  return ports;
}

std::vector<PartMargins> margins_of(const PortResponses& responses,
                                    const std::vector<double>& impedance) {
  std::vector<PartMargins> margins;
  const System& system = responses.system();
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[at(i)];
    const Signature& signature = part.component->signature();
    const auto size = at(signature.wave_size());
    if (size == 0) continue;
    const std::span<const double> own(impedance.data() + system.first_scalar_port(i), size);
    const Eigen::MatrixXd D = scattering_matrix(responses.of(i), signature, own);
    const Eigen::MatrixXd square = D.transpose() * D;
    margins.push_back(
        {part.name, smallest_eigenvalue(0.5 * (D + D.transpose()) - square),
         smallest_eigenvalue(Eigen::MatrixXd::Identity(D.rows(), D.cols()) - square)});
  }
  return margins;
}

RuleRates rates_of(std::string rule, TunedImpedance impedance, const WaveCoupling& method,
                   const PortResponses& responses) {
  RuleRates rates{.rule = std::move(rule),
                  .problem = std::move(impedance.problem),
                  .by_port = std::move(impedance.by_port)};
  for (const UpdateRule* each : update_rules()) {
    const bool is_own = each->name() == to_string(method.kind);
    rates.updates.push_back({{each, is_own ? method.relaxation : 1.0}});
  }
  if (!rates.problem.empty()) return rates;
  const int limit = prediction_limit(responses.system());
  for (UpdateRate& own : rates.updates) {
    own.predicted = predict_rate(responses, rates.by_port, own.update, limit);
  }
  rates.averaged = predict_rate(responses, rates.by_port, {&peaceman_rachford(), 0.5}, limit);
  return rates;
}

}  // namespace

std::string impedance_rule(const CouplingMethod& method) {
  const auto* const waves = method.as<WaveCoupling>();
  if (waves == nullptr) return "none";
  if (waves->impedance_kind != ImpedanceKind::given) {
    return std::string(to_string(waves->impedance_kind));
  }
  return waves->impedance.size() == 1 ? "uniform" : "per_port";
}

std::vector<RuleRates> rates_of_rules(const Scenario& scenario, const PortResponses& responses,
                                      const PhaseCallback& listener) {
  const WaveCoupling& method = scenario.options.method.waves();
  constexpr std::array kRules = {ImpedanceKind::fne, ImpedanceKind::matched, ImpedanceKind::leaf,
                                 ImpedanceKind::adapted, ImpedanceKind::across};
  const bool gives_values = method.impedance_kind == ImpedanceKind::given;
  std::vector<RuleRates> rules;
  const auto tell_next = [&] {
    tell(listener, {"predicting the rates of rule", static_cast<std::int64_t>(rules.size()) + 1,
                    static_cast<std::int64_t>(kRules.size()) + (gives_values ? 1 : 0)});
  };
  if (gives_values) {
    tell_next();
    rules.push_back(rates_of(impedance_rule(method),
                             {impedance_by_port(scenario.system, method), {}}, method, responses));
  }
  for (const ImpedanceKind kind : kRules) {
    tell_next();
    rules.push_back(
        rates_of(std::string(to_string(kind)), tune_impedance(responses, kind), method, responses));
  }
  return rules;
}

TuningReport tune(const Scenario& given, ImpedanceKind rule, const PhaseCallback& listener) {
  refuse_without_waves(given.options.method);
  const SteppedScenario stepped(given);
  const Scenario& scenario = stepped.get();
  tell(listener, {"linearising the subsystems"});
  const PortResponses responses(scenario.system, scenario.options.step_s);
  WaveCoupling method = scenario.options.method.waves();
  method.kind = WaveUpdate::automatic;
  if (rule == ImpedanceKind::given && method.impedance_kind != ImpedanceKind::given) {
    throw ConfigError("/method/impedance",
                      fmt::format("gives no values: its kind is \"{}\"", impedance_rule(method)));
  }
  method.impedance_kind = rule;
  tell(listener, {"choosing the method"});
  TuningReport report{.choice = choose_method(responses, method)};
  tell(listener, {"judging the ports"});
  report.ports = ports_of(responses, report.choice.method.waves().impedance);
  report.parts = margins_of(responses, report.choice.method.waves().impedance);
  report.rules = rates_of_rules(scenario, responses, listener);
  return report;
}

}  // namespace portwave
