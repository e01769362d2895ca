#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/tuning.hpp"

namespace portwave {
namespace {

constexpr int kFewEvaluations = 8;  // beyond, acceleration pays
constexpr int kManyEvaluations = 20;
constexpr int kSomeMemory = 5;
constexpr double kContracts = 0.999;  // slower than that is not told from standing still

/// A rule and what it comes to.
struct Tuned {
  ImpedanceKind kind;
  TunedImpedance impedance;
};

std::vector<Tuned> tune(const PortResponses& responses, const CouplingMethod& method) {
  if (method.impedance_kind == ImpedanceKind::given) {
    std::vector<double> by_port = method.impedance;
    const std::size_t ports = responses.system().scalar_ports().size();
    if (by_port.size() == 1) by_port.assign(ports, method.impedance.front());
    const bool good = by_port.size() == ports && std::ranges::all_of(by_port, [](double value) {
                        return value > 0.0 && std::isfinite(value);
                      });
    if (!good) {
      throw ConfigError("/method/impedance",
                        fmt::format("must be finite and > 0, one value for all scalar ports or one "
                                    "for each ({})",
                                    ports));
    }
    return {{ImpedanceKind::given, {std::move(by_port), {}}}};
  }
  if (method.impedance_kind != ImpedanceKind::automatic) {
    Tuned tuned{method.impedance_kind, tune_impedance(responses, method.impedance_kind)};
    if (tuned.impedance.by_port.empty() && !responses.system().scalar_ports().empty()) {
      throw ConfigError("/method/impedance", tuned.impedance.problem);
    }
    return {std::move(tuned)};
  }
  std::vector<Tuned> out;
  for (const ImpedanceKind kind :
       {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::adapted, ImpedanceKind::fne}) {
    Tuned tuned{kind, tune_impedance(responses, kind)};
    const bool is_new = std::ranges::none_of(out, [&](const Tuned& known) {
      return known.impedance.by_port == tuned.impedance.by_port;
    });
    if (is_new && tuned.impedance.problem.empty()) out.push_back(std::move(tuned));
  }
  return out;
}

/// Strictly better; of equals the earlier candidate stays.
bool is_better(const PredictedRate& a, const PredictedRate& b) {
  constexpr double kClearly = 0.9;     // else the order decides, not round-off
  constexpr double kImmediate = 1e-5;  // both gone after a few evaluations
  if (a.converges != b.converges) return a.converges;
  if (a.converges && a.evaluations != b.evaluations) return a.evaluations < b.evaluations;
  return std::max(a.contraction, kImmediate) < kClearly * std::max(b.contraction, kImmediate);
}

std::string name_of(MethodKind kind, double relaxation) {
  const bool dr = kind == MethodKind::douglas_rachford;
  if (!dr && relaxation == 0.5) return "The averaged wave iteration";
  std::string name = dr ? "Douglas-Rachford" : "Peaceman-Rachford";
  if (relaxation != 1.0) name += fmt::format(" (relaxation {:g})", relaxation);
  return name;
}

std::string count_of(const PredictedRate& rate) {
  return rate.converges ? std::to_string(rate.evaluations)
                        : fmt::format("{} and more", rate.evaluations);
}

/// "Peaceman-Rachford with leaf impedances: 3 evaluations predicted (matched: 100 and more, …)".
std::string reason_of(const MethodChoice& choice) {
  const CouplingMethod& chosen = choice.method;
  std::string others;
  const auto add = [&](const std::string& name, const PredictedRate& rate) {
    others += fmt::format("{}{}: {}", others.empty() ? "" : ", ", name, count_of(rate));
  };
  for (const MethodCandidate& candidate : choice.candidates) {
    const bool same_method =
        candidate.kind == chosen.kind && candidate.relaxation == chosen.relaxation;
    const bool same_rule = candidate.impedance == chosen.impedance_kind;
    if (candidate.acceleration != chosen.acceleration) {
      if (same_method && same_rule) add("without acceleration", candidate.rate);
      continue;
    }
    if (same_method == same_rule) continue;  // the choice itself, or two steps away from it
    add(same_method ? std::string(to_string(candidate.impedance))
                    : name_of(candidate.kind, candidate.relaxation),
        candidate.rate);
  }
  std::string reason = fmt::format("{} with {} impedances", name_of(chosen.kind, chosen.relaxation),
                                   to_string(chosen.impedance_kind));
  if (chosen.acceleration > 0) {
    reason +=
        fmt::format(" and Anderson acceleration from {} earlier evaluations", chosen.acceleration);
  }
  reason += fmt::format(": {} evaluations predicted", count_of(choice.rate));
  if (!others.empty()) reason += " (" + others + ")";
  return reason;
}

struct Update {
  MethodKind kind;
  double relaxation;
};

}  // namespace

int prediction_limit(const System& system) {
  constexpr double kPortEvaluations = 1e7;
  const double ports = static_cast<double>(std::max<std::size_t>(1, system.scalar_ports().size()));
  return static_cast<int>(std::clamp(kPortEvaluations / ports, 25.0, 100.0));
}

MethodChoice choose_method(const PortResponses& responses, const CouplingMethod& method) {
  const bool choose_kind = method.kind == MethodKind::automatic;
  const std::vector<Tuned> tuned = tune(responses, method);
  const int limit = prediction_limit(responses.system());
  MethodChoice choice;
  choice.method = method;
  const Tuned* best = nullptr;
  const auto consider = [&](Update update, const Tuned& rule, int acceleration = 0) {
    const PredictedRate rate = predict_rate(responses, rule.impedance.by_port, update.kind,
                                            update.relaxation, limit, acceleration);
    choice.candidates.push_back({update.kind, update.relaxation, rule.kind, rate, acceleration});
    if (best != nullptr && !is_better(rate, choice.rate)) return rate;
    best = &rule;
    choice.rate = rate;
    choice.method.kind = update.kind;
    choice.method.relaxation = update.relaxation;
    choice.method.acceleration = acceleration;
    return rate;
  };
  const auto consider_all = [&](Update update, int acceleration) {
    for (const Tuned& rule : tuned) consider(update, rule, acceleration);
  };

  if (!choose_kind) {
    consider_all({method.kind, method.relaxation}, method.acceleration);
  } else {
    constexpr Update kFast{MethodKind::peaceman_rachford, 1.0};
    constexpr Update kAveraged{MethodKind::peaceman_rachford, 0.5};
    constexpr Update kDouglas{MethodKind::douglas_rachford, 1.0};
    std::vector<const Tuned*> failed;
    for (const Tuned& rule : tuned) {
      if (!consider(kFast, rule).converges) failed.push_back(&rule);
    }
    consider_all(kDouglas, 0);
    for (const Tuned* rule : failed) consider(kAveraged, *rule);
    if (!choice.rate.converges || choice.rate.evaluations > kFewEvaluations) {
      const bool some = choice.rate.converges && choice.rate.evaluations <= kManyEvaluations;
      const int memory = some ? kSomeMemory : kMaxAcceleration;
      consider_all(kFast, memory);
      consider_all(kDouglas, memory);
      if (!failed.empty()) consider_all(kAveraged, memory);
    }
    if (!choice.rate.converges && !(choice.rate.contraction < kContracts)) {
      // The averaged iteration needs nothing but nonexpansive parts.
      best = &tuned.front();
      choice.method.kind = kAveraged.kind;
      choice.method.relaxation = kAveraged.relaxation;
      choice.method.acceleration = kMaxAcceleration;
      choice.rate = predict_rate(responses, best->impedance.by_port, kAveraged.kind,
                                 kAveraged.relaxation, limit, kMaxAcceleration);
    }
  }
  choice.method.impedance_kind = best->kind;
  choice.method.impedance = best->impedance.by_port;
  choice.reason = reason_of(choice);
  return choice;
}

}  // namespace portwave
