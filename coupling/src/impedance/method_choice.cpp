#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "impedance/choice_reason.hpp"
#include "impedance/impedance_rules.hpp"
#include "impedance/tuned_rules.hpp"
#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/impedance/one_sided_decays.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "waves/condensed_equation.hpp"

namespace portwave {
namespace {

constexpr int kFewLinear = 3;     // evaluations that the interface equation hardly improves on
constexpr int kFewNonlinear = 8;  // beyond, acceleration pays
constexpr int kManyEvaluations = 20;
constexpr int kQuasiNewton = 3;  // evaluations more than on the linearised island
constexpr int kQuasiNewtonAcross = 1;
constexpr int kSomeMemory = 5;
constexpr double kContracts = 0.999;  // slower than that is not told from standing still
/// Step maps that are worse conditioned round off energy where it is seen.
constexpr double kGoodCondition = 1e4;
/// Evaluations that a solve of the interface equation may be worth where something else converges.
constexpr double kMostWork = 200.0;
/// Calls, exchange and judging: some 60 ns on a small system.
constexpr double kOfAnyEvaluation = 600.0;

/// Strictly better; of equals the earlier candidate stays.
bool is_better(const PredictedRate& a, const PredictedRate& b) {
  constexpr double kClearly = 0.9;     // else the order decides, not round-off
  constexpr double kImmediate = 1e-5;  // both gone after a few evaluations
  if (a.converges != b.converges) return a.converges;
  if (a.converges && a.evaluations != b.evaluations) return a.evaluations < b.evaluations;
  return std::max(a.contraction, kImmediate) < kClearly * std::max(b.contraction, kImmediate);
}

/// An update for all islands that do not take the interface equation.
struct Base {
  WaveUpdate kind;
  double relaxation;
  int acceleration = 0;
  const UpdateRule* own_rule = nullptr;  ///< in place of that of the kind

  InnerUpdate update() const {
    return own_rule != nullptr ? InnerUpdate{own_rule, relaxation}
                               : predictable_update(kind, relaxation);
  }
};

/// What one island takes.
struct Pick {
  std::size_t rule = 0;
  bool interface = false;
  PredictedRate rate{.contraction = std::numeric_limits<double>::infinity()};
  double work = std::numeric_limits<double>::infinity();
  bool well_conditioned = false;
};

/// Chooses kind, impedances and acceleration, island by island where that is possible.
class Chooser {
 public:
  Chooser(const PortResponses& responses, const WaveCoupling& method, std::vector<Tuned> tuned,
          const Anytime& anytime)
      : anytime_(anytime),
        responses_(responses),
        system_(responses.system()),
        tuned_(std::move(tuned)),
        limit_(prediction_limit(system_)),
        islands_(at(system_.island_count())),
        base_(kFast) {
    choice_.method = method;
    for (Tuned& rule : tuned_) {
      rule.condition = worst_conditions(responses, rule.impedance.by_port);
    }
    find_change_over();
    for (const Part& part : system_.parts()) ++parts_of_key_[part.component->batch_key()];
    for (int part = 0; part < static_cast<int>(system_.parts().size()); ++part) add_work(part);
    // What an evaluation costs whatever is evaluated; islands share it.
    for (Island& island : islands_) {
      island.evaluation += kOfAnyEvaluation / static_cast<double>(islands_.size());
    }
  }

  /// Of WaveUpdate::automatic.
  MethodChoice choose() && {
    std::vector<char> all(islands_.size(), 1);
    std::vector<Pick> picks = picks_of(kFast, all);
    std::vector<char> hard = mask([&](std::size_t i) { return !is_easy(i, picks[i]); });
    if (anytime_.is_on) {
      std::vector<Pick> plain = picks;
      if (any(hard) && anytime_.solves) take_interface(hard, picks);
      take_plain_too(hard, std::move(plain), picks);
      set(picks);
      return std::move(choice_);
    }
    if (any(hard)) {
      take_interface(hard, picks);
      hard = mask([&](std::size_t i) { return hard[i] != 0 && !picks[i].interface; });
    }
    if (any(hard)) choose_base(hard, picks);
    set(picks);
    return std::move(choice_);
  }

  /// Of a kind that is given: one rule for all.
  MethodChoice compare_rules() && {
    const WaveCoupling& method = choice_.method.waves();
    const bool is_interface = method.kind == WaveUpdate::interface;
    base_ = {method.kind, method.relaxation, is_interface ? 0 : method.acceleration,
             method.own_rule};
    const std::vector<char> all(islands_.size(), 1);
    std::size_t best = 0;
    for (std::size_t rule = 0; rule < tuned_.size(); ++rule) {
      predict(base_, rule, all);
      const PredictedRate& rate = choice_.candidates.back().rate;
      const bool good = is_well_conditioned(rule), best_good = is_well_conditioned(best);
      const bool better = rate.converges && choice_.rate.converges && good != best_good
                              ? good
                              : is_better(rate, choice_.rate);
      if (rule > 0 && !better) continue;
      best = rule;
      choice_.rate = rate;
      choice_.cost = choice_.candidates.back().cost;
    }
    choice_.method.waves().impedance_kind = tuned_[best].kind;
    choice_.method.waves().impedance = tuned_[best].impedance.by_port;
    choice_.rules.assign(islands_.size(), tuned_[best].kind);
    choice_.reason = reason_of(choice_, system_);
    return std::move(choice_);
  }

 private:
  static constexpr Base kFast{WaveUpdate::peaceman_rachford, 1.0};
  static constexpr Base kAveraged{WaveUpdate::peaceman_rachford, 0.5};
  static constexpr Base kDouglas{WaveUpdate::douglas_rachford, 1.0};

  /// Multiplications and additions.
  struct Island {
    double evaluation = 0.0;
    double ports = 0.0;
    double responses = 0.0;  ///< of ports to ports of the same part
    bool linear = true;
    bool opaque = false;  ///< some nonlinear part shows no equations
    bool changes_over =
        false;  ///< some resistance may bind what it leaves free now, or the other way round
  };

  /// No impedances serve both sides of such a change.
  void find_change_over() {
    // Which parameters a run drives is not known here.
    const auto is_exchanged = [](int) { return false; };
    const OneSidedDecays decays(
        system_, responses_.step_s(), resolved_decay(1), [](int) { return true; }, is_exchanged);
    for (const OneSidedDecays::Storage& own : decays.storages()) {
      islands_[at(system_.island_of_part(own.part))].changes_over = true;
    }
    if (decays.empty()) return;
    const TunedImpedance across = tune_impedance(responses_, ImpedanceKind::across);
    const auto own = std::ranges::find_if(
        tuned_, [&](const Tuned& rule) { return rule.impedance.by_port == across.by_port; });
    across_ = static_cast<std::size_t>(own - tuned_.begin());
  }

  void add_work(int part) {
    const Component& component = *system_.parts()[at(part)].component;
    Island& island = islands_[at(system_.island_of_part(part))];
    const double ports = static_cast<double>(responses_.of(part).rows());
    const bool linear = component.capabilities().linear;
    const double states = static_cast<double>(component.signature().state_size());
    island.evaluation += 2.0 * ports * ports + 18.0 * ports;
    if (!linear) {
      island.evaluation += component.port_hamiltonian() != nullptr
                               ? nonlinear_work(component)
                               : 100.0 * (1.0 + states);  // nobody knows what a program does
      island.opaque = island.opaque || component.port_hamiltonian() == nullptr;
    }
    island.ports += ports;
    island.responses += ports * ports;
    island.linear = island.linear && linear;
  }

  /// A part may have a closed form for eight lanes or need a Newton method, on all stages of all
  /// substeps, and what these cost differs by a factor of 1000 and more: its batch knows.
  double nonlinear_work(const Component& component) {
    constexpr double kPerNanosecond = 10.0;
    const std::string key = component.batch_key();
    const auto known = nonlinear_work_.find(key);
    if (known != nonlinear_work_.end()) return known->second;
    // Two stand for many, side by side.
    const Component* const two[] = {&component, &component};
    const bool alone = key.empty() || parts_of_key_[key] == 1;
    const double work =
        kPerNanosecond *
        component.make_batch(std::span(two).first(alone ? 1 : 2))->scatter_cost_ns();
    if (!key.empty()) nonlinear_work_.emplace(key, work);
    return work;
  }

  /// Places are looked up entry by entry, where evaluations take eight lanes at once.
  static double solve_work(const PredictedRate& rate) {
    return 20.0 * static_cast<double>(rate.factor_entries);
  }
  /// An accelerated evaluation keeps, measures and combines the waves of earlier ones; a solve goes
  /// through its factors entry by entry, on one thread.
  double work(const Base& base, const PredictedRate& rate, std::size_t island) const {
    const Island& own = islands_[island];
    double each = own.evaluation;
    if (base.acceleration > 0) each += own.ports * (8.0 * (base.acceleration + 2) + 10.0);
    const double solve = solve_work(rate) + 20.0 * own.ports;
    const double solves = base.kind == WaveUpdate::interface ? rate.evaluations - 1 : 0;
    return rate.evaluations * each + solves * solve;
  }

  bool is_well_conditioned(std::size_t rule) const {
    return std::ranges::all_of(tuned_[rule].condition,
                               [](double value) { return value <= kGoodCondition; });
  }
  bool is_easy(std::size_t island, const Pick& pick) const {
    const Island& own = islands_[island];
    if (!pick.rate.converges || !pick.well_conditioned) return false;
    // Where nothing comes back to a port, its law may be what it likes.
    if (own.changes_over) return pick.rate.evaluations <= kFewLinear;
    if (pick.rate.evaluations <= (own.linear ? kFewLinear : kFewNonlinear)) return true;
    return is_known(island, pick) && pick.work <= least_interface_work(own);
  }
  /// The work of nonlinear parts is known well enough to be compared with that of a solve.
  bool is_known(std::size_t island, const Pick& pick) const {
    const Island& own = islands_[island];
    return !own.linear && !own.opaque && pick.rate.converges &&
           pick.rate.evaluations <= kManyEvaluations;
  }
  /// Factors have at least the entries of the equation itself.
  static double least_interface_work(const Island& own) {
    constexpr double kEvaluations = 2.0 + kQuasiNewton;
    return kEvaluations * own.evaluation +
           (kEvaluations - 1.0) * 20.0 * (own.responses + own.ports);
  }

  template <class Test>
  std::vector<char> mask(const Test& test) const {
    std::vector<char> out(islands_.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = test(i) ? 1 : 0;
    return out;
  }
  static bool any(const std::vector<char>& mask) {
    return std::ranges::any_of(mask, [](char own) { return own != 0; });
  }

  void note(const Base& base, ImpedanceKind rule, const std::vector<PredictedRate>& rates,
            const std::vector<char>& wanted) {
    PredictedRate worst{.evaluations = 1, .converges = true};
    double total = 0.0, evaluations = 0.0;
    std::size_t entries = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (wanted[i] == 0) continue;
      if (is_better(worst, rates[i])) worst = rates[i];
      total += work(base, rates[i], i);
      evaluations += islands_[i].evaluation;
      entries += rates[i].factor_entries;
    }
    worst.factor_entries = entries;
    choice_.candidates.push_back({base.kind, base.relaxation, rule, worst, base.acceleration,
                                  evaluations > 0.0 ? total / evaluations : 0.0});
  }

  std::vector<PredictedRate> predict(const Base& base, std::size_t rule,
                                     const std::vector<char>& wanted) {
    return predict(base, tuned_[rule].impedance.by_port, tuned_[rule].kind, wanted);
  }
  std::vector<PredictedRate> predict(const Base& base, const std::vector<double>& impedance,
                                     ImpedanceKind rule, const std::vector<char>& wanted) {
    const bool is_interface = base.kind == WaveUpdate::interface;
    std::vector<PredictedRate> rates =
        predict_rates(responses_, impedance, base.update(),
                      is_interface ? kManyEvaluations : limit_, base.acceleration, wanted);
    for (std::size_t i = 0; is_interface && i < rates.size(); ++i) {
      if (islands_[i].linear) continue;
      rates[i].evaluations += rule == ImpedanceKind::across ? kQuasiNewtonAcross : kQuasiNewton;
    }
    note(base, rule, rates, wanted);
    return rates;
  }

  bool is_preferred(const Pick& a, const Pick& b) const {
    const bool a_good = a.rate.converges && a.well_conditioned;
    const bool b_good = b.rate.converges && b.well_conditioned;
    return a_good != b_good ? a_good : is_better(a.rate, b.rate);
  }

  /// Whether an island may be stepped with a rule by plain waves. Where a law may bind or free what it is joined to, its
  /// port has to take what the network presents, whatever the law is now.
  bool may_take(std::size_t island, std::size_t rule) const {
    if (islands_[island].changes_over && across_ < tuned_.size()) return rule == across_;
    return rule == 0 || tuned_[rule].kind != ImpedanceKind::across;
  }

  /// The best rule for each wanted island.
  std::vector<Pick> picks_of(const Base& base, const std::vector<char>& wanted) {
    std::vector<Pick> picks(islands_.size());
    std::vector<char> is_known(islands_.size(), 0);
    for (std::size_t rule = 0; rule < tuned_.size(); ++rule) {
      const std::vector<char> tried =
          mask([&](std::size_t i) { return wanted[i] != 0 && may_take(i, rule); });
      if (!any(tried)) continue;
      const std::vector<PredictedRate> rates = predict(base, rule, tried);
      for (std::size_t i = 0; i < picks.size(); ++i) {
        if (tried[i] == 0) continue;
        const Pick pick{rule, false, rates[i], work(base, rates[i], i),
                        tuned_[rule].condition[i] <= kGoodCondition};
        if (is_known[i] == 0 || is_preferred(pick, picks[i])) picks[i] = pick;
        is_known[i] = 1;
      }
    }
    return picks;
  }

  /// The interface equation for those of `wanted` where it is worth it, each with the first rule
  /// that leaves its step maps well conditioned, or the one that does so best; with nonlinear parts `across`
  /// is the first.
  void take_interface(const std::vector<char>& wanted, std::vector<Pick>& picks) {
    constexpr Base kInterface{WaveUpdate::interface, 1.0};
    std::vector<std::size_t> rules(islands_.size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto condition = [&](std::size_t rule) {
        return std::max(tuned_[rule].condition[i], kGoodCondition);
      };
      if (!islands_[i].linear && tuned_.back().kind == ImpedanceKind::across) {
        rules[i] = tuned_.size() - 1;
      }
      if (islands_[i].changes_over && across_ < tuned_.size()) rules[i] = across_;
      for (std::size_t rule = 0; rule < tuned_.size(); ++rule) {
        if (!(condition(rules[i]) <= condition(rule))) rules[i] = rule;
      }
    }
    const std::vector<PredictedRate> rates =
        predict(kInterface, assembled(rules), most_used(rules, wanted), wanted);
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (wanted[i] == 0 || !rates[i].converges) continue;
      const Pick pick{rules[i], true, rates[i], work(kInterface, rates[i], i),
                      tuned_[rules[i]].condition[i] <= kGoodCondition};
      const bool is_light = (!is_known(i, picks[i]) || islands_[i].changes_over) &&
                            solve_work(rates[i]) <= kMostWork * islands_[i].evaluation;
      const bool is_needed =
          !picks[i].rate.converges || (pick.well_conditioned && !picks[i].well_conditioned);
      if (is_needed || is_light || pick.work < picks[i].work) picks[i] = pick;
    }
  }

  /// Where the interface equation is no way out for some islands: the update that serves them best.
  void choose_base(const std::vector<char>& hard, std::vector<Pick>& picks) {
    std::vector<Pick> best = picks;
    const auto consider = [&](const Base& base) {
      const std::vector<Pick> other = picks_of(base, hard);
      if (is_cheaper(other, best, hard)) {
        best = other;
        base_ = base;
      }
    };
    consider(kDouglas);
    consider(kAveraged);
    int most = 0;
    bool converges = true;
    for (std::size_t i = 0; i < hard.size(); ++i) {
      if (hard[i] == 0) continue;
      converges = converges && best[i].rate.converges;
      most = std::max(most, best[i].rate.evaluations);
    }
    if (!converges || most > kFewNonlinear) {
      const int memory = converges && most <= kManyEvaluations ? kSomeMemory : kMaxAcceleration;
      for (Base base : {kFast, kDouglas, kAveraged}) {
        base.acceleration = memory;
        consider(base);
      }
    }
    const bool stands_still = std::ranges::any_of(best, [&](const Pick& pick) {
      const auto i = static_cast<std::size_t>(&pick - best.data());
      return hard[i] != 0 && !pick.rate.converges && !(pick.rate.contraction < kContracts);
    });
    if (stands_still) {  // the averaged iteration needs nothing but nonexpansive parts
      base_ = kAveraged;
      base_.acceleration = kMaxAcceleration;
      best = picks_of(base_, hard);
    }
    // The others come along.
    const std::vector<char> others =
        mask([&](std::size_t i) { return hard[i] == 0 && !picks[i].interface; });
    const bool changed = base_.kind != kFast.kind || base_.relaxation != kFast.relaxation;
    std::vector<Pick> along = changed && any(others) ? picks_of(base_, others) : picks;
    if (changed && any(others)) {
      const std::vector<char> slow =
          mask([&](std::size_t i) { return others[i] != 0 && !is_easy(i, along[i]); });
      if (any(slow)) take_interface(slow, along);
    }
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (hard[i] != 0) picks[i] = best[i];
      if (others[i] != 0) picks[i] = along[i];
    }
  }

  /// Where there is no time for a solve, an island takes plain waves in that step: update and impedances are
  /// those that serve these best.
  void take_plain_too(const std::vector<char>& hard, std::vector<Pick> plain,
                      std::vector<Pick>& picks) {
    const auto given = std::ranges::find(tuned_, anytime_.rule, &Tuned::kind);
    if (given != tuned_.end()) {
      for (Pick& pick : plain) pick.rule = static_cast<std::size_t>(given - tuned_.begin());
    } else if (any(hard)) {
      choose_base(hard, plain);
    }
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (picks[i].interface) {
        picks[i].rule = plain[i].rule;
      } else {
        picks[i] = plain[i];
      }
    }
  }

  static bool is_cheaper(const std::vector<Pick>& a, const std::vector<Pick>& b,
                         const std::vector<char>& counted) {
    int failed[2] = {0, 0};
    double work[2] = {0.0, 0.0}, contraction[2] = {0.0, 0.0};
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (counted[i] == 0) continue;
      int side = 0;
      for (const Pick* pick : {&a[i], &b[i]}) {
        failed[side] += pick->rate.converges ? 0 : 1;
        work[side] += pick->work;
        contraction[side] = std::max(contraction[side], pick->rate.contraction);
        ++side;
      }
    }
    if (failed[0] != failed[1]) return failed[0] < failed[1];
    return failed[0] > 0 ? contraction[0] < contraction[1] : work[0] < work[1];
  }

  std::vector<double> assembled(const std::vector<std::size_t>& rules) const {
    std::vector<double> impedance(system_.scalar_ports().size());
    for (std::size_t port = 0; port < impedance.size(); ++port) {
      const auto island = at(system_.island_of_part(system_.scalar_ports()[port].part));
      impedance[port] = tuned_[rules[island]].impedance.by_port[port];
    }
    return impedance;
  }
  ImpedanceKind most_used(const std::vector<std::size_t>& rules,
                          const std::vector<char>& wanted) const {
    std::vector<double> ports(tuned_.size(), 0.0);
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (wanted[i] != 0) ports[rules[i]] += islands_[i].ports;
    }
    return tuned_[static_cast<std::size_t>(std::ranges::max_element(ports) - ports.begin())].kind;
  }

  void set(const std::vector<Pick>& picks) {
    WaveCoupling& method = choice_.method.waves();
    method.interface_islands.clear();
    std::vector<std::size_t> rules;
    double total = 0.0, evaluations = 0.0;
    int plain = 0, with_ports = 0, slowest = 0;
    choice_.rate = {.evaluations = 1, .converges = true};
    std::size_t entries = 0;
    for (std::size_t i = 0; i < picks.size(); ++i) {
      rules.push_back(picks[i].rule);
      choice_.rules.push_back(tuned_[picks[i].rule].kind);
      if (islands_[i].ports == 0.0) continue;
      ++with_ports;
      if (is_better(choice_.rate, picks[i].rate)) choice_.rate = picks[i].rate;
      total += picks[i].work;
      evaluations += islands_[i].evaluation;
      if (picks[i].interface) {
        method.interface_islands.push_back(static_cast<int>(i));
        entries += picks[i].rate.factor_entries;
      } else {
        ++plain;
        slowest = std::max(slowest, picks[i].rate.evaluations);
      }
    }
    choice_.rate.factor_entries = entries;
    choice_.cost = evaluations > 0.0 ? total / evaluations : 0.0;
    if (with_ports > 0 && plain == 0 && !anytime_.is_on) {
      base_ = {WaveUpdate::interface, 1.0};
      method.interface_islands.clear();
    }
    method.kind = base_.kind;
    method.relaxation = base_.relaxation;
    method.acceleration = base_.acceleration;
    const bool has_tolerance = method.tolerance > 0.0 || method.energy_tolerance_J > 0.0;
    const bool linear = std::ranges::all_of(islands_, &Island::linear);
    const int late = linear ? slowest + 4 : std::max(2 * slowest + 4, kSoonest);
    const bool may_solve = !anytime_.is_on || anytime_.solves;
    method.rescue_after = has_tolerance && plain > 0 && may_solve ? late : 0;
    method.impedance = assembled(rules);
    method.impedance_kind = most_used(rules, std::vector<char>(picks.size(), 1));
    choice_.reason = reason_of(choice_, system_);
  }

  static constexpr int kSoonest = 12;  // evaluations before a nonlinear island is rescued

  Anytime anytime_;
  const PortResponses& responses_;
  const System& system_;
  std::vector<Tuned> tuned_;
  std::size_t across_ =
      std::numeric_limits<std::size_t>::max();  // of these; where islands change over
  int limit_;
  std::vector<Island> islands_;
  std::map<std::string, double> nonlinear_work_;  // by batch key
  std::map<std::string, int> parts_of_key_;
  Base base_;
  MethodChoice choice_;
};

/// With condensed parts: the interface equation for all islands, where that is possible. Their Schur
/// complements are at hand, and to predict other updates would take their dense inverses.
std::optional<MethodChoice> choose_for_condensed(const PortResponses& responses,
                                                 const WaveCoupling& method) {
  const System& system = responses.system();
  const bool is_open =
      method.kind == WaveUpdate::automatic && (method.impedance_kind == ImpedanceKind::automatic ||
                                               method.impedance_kind == ImpedanceKind::matched ||
                                               method.impedance_kind == ImpedanceKind::given);
  if (!responses.has_condensed_parts() || !is_open) return std::nullopt;
  const IslandNetworks networks(system);
  MethodChoice choice;
  choice.method = method;
  choice.rate = {.evaluations = 2, .converges = true};
  for (int island = 0; island < system.island_count(); ++island) {
    const bool has_condensed = std::ranges::any_of(networks.of[at(island)].parts, [&](int part) {
      return condensed_form_of(system.parts()[at(part)]) != nullptr;
    });
    if (has_condensed && CondensedEquation::of(system, networks, island) == nullptr) {
      return std::nullopt;
    }
    const bool linear = std::ranges::all_of(networks.of[at(island)].parts, [&](int part) {
      return system.parts()[at(part)].component->capabilities().linear;
    });
    if (!linear) choice.rate.evaluations = 2 + kQuasiNewton;
  }
  WaveCoupling& chosen = choice.method.waves();
  if (method.impedance_kind == ImpedanceKind::given) {
    chosen.impedance = tuned_by_rules(responses, method).front().impedance.by_port;
  } else {
    const PortMatches matches(responses);
    chosen.impedance.assign(matches.values().begin(), matches.values().end());
    chosen.impedance_kind = ImpedanceKind::matched;
  }
  chosen.kind = WaveUpdate::interface;
  chosen.relaxation = 1.0;
  chosen.acceleration = 0;
  chosen.rescue_after = 0;
  chosen.interface_islands.clear();
  choice.rules.assign(at(system.island_count()), chosen.impedance_kind);
  choice.reason = reason_of(choice, system);
  return choice;
}

}  // namespace

int prediction_limit(const System& system) {
  constexpr double kPortEvaluations = 1e7;
  const double ports = static_cast<double>(std::max<std::size_t>(1, system.scalar_ports().size()));
  return static_cast<int>(std::clamp(kPortEvaluations / ports, 25.0, 100.0));
}

MethodChoice choose_method(const PortResponses& responses, const WaveCoupling& method,
                           const Anytime& anytime) {
  if (!responses.problem().empty()) throw ConfigError("/method/impedance", responses.problem());
  if (std::optional<MethodChoice> choice = choose_for_condensed(responses, method)) {
    return *std::move(choice);
  }
  Chooser chooser(responses, method, tuned_by_rules(responses, method), anytime);
  if (method.kind == WaveUpdate::automatic) return std::move(chooser).choose();
  return std::move(chooser).compare_rules();
}

}  // namespace portwave
