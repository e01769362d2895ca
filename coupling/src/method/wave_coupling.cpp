// Wave coupling: its kinds, its options and what is wrong with them.

#include "portwave/coupling/method/wave_coupling.hpp"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {
namespace {

constexpr std::array<std::string_view, 7> kImpedanceNames = {"given",   "fne",    "matched", "leaf",
                                                             "adapted", "across", "auto"};

constexpr std::array<std::string_view, 3> kStartNames = {"last", "extrapolated", "auto"};

constexpr std::array<std::string_view, 3> kStageKindNames = {"gauss", "damped", "auto"};

constexpr std::array<std::string_view, 2> kExchangeNames = {"synchronous", "asynchronous"};

bool has_rule(const WaveCoupling& waves) {
  return waves.kind != WaveUpdate::automatic && waves.kind != WaveUpdate::interface;
}

/// Of the update rule. `automatic` chooses its relaxation, `interface` has none.
std::optional<DependentRange> relaxation_range(const CouplingMethod& method) {
  const WaveCoupling& waves = method.waves();
  if (!has_rule(waves)) return std::nullopt;
  const UpdateRule* const rule = inner_update_of(waves).rule();
  const RelaxationRange range = rule->relaxation_range();
  const bool is_default = rule == update_rule_of(WaveCoupling{}.kind);
  return DependentRange{{0.0, true, range.most, !range.includes_most},
                        is_default ? "" : fmt::format(" with \"{}\"", rule->name())};
}

void check_own_rule(const CouplingMethod& method, Issues& issues) {
  const WaveCoupling& waves = method.waves();
  if (has_rule(waves) || waves.own_rule == nullptr) return;
  issues.push_back({"/method/own_rule", fmt::format("is not for \"{}\"", to_string(waves.kind))});
}

void check_impedance(const CouplingMethod& method, Issues& issues) {
  const WaveCoupling& waves = method.waves();
  if (waves.kind == WaveUpdate::automatic && waves.impedance_kind != ImpedanceKind::automatic) {
    issues.push_back(
        {"/method/impedance/kind",
         "must be \"auto\", or /method/impedance be left out: the method \"auto\" chooses the "
         "impedances itself"});
  }
  const double factor = waves.retune_factor;
  if (factor == 0.0 || (factor > 1.0 && std::isfinite(factor))) return;
  issues.push_back({"/method/impedance/retune_factor",
                    fmt::format("must be {}, got {}", kRetuneFactorRange, shown_number(factor))});
}

/// Whoever looks at the gap, or at earlier evaluations, waits for all ranks.
void check_exchange(const CouplingMethod& method, Issues& issues) {
  const WaveCoupling& waves = method.waves();
  if (waves.exchange.kind == ExchangeKind::synchronous) return;
  const auto refuse = [&](const std::string& why) {
    issues.push_back({"/method/exchange/kind", "\"asynchronous\" " + why});
  };
  if (!has_rule(waves)) {
    refuse(
        fmt::format("is for \"douglas-rachford\" and \"peaceman-rachford\": \"{}\" looks at the "
                    "waves of all ranks at once",
                    to_string(waves.kind)));
    return;
  }
  if (waves.tolerance > 0.0 || waves.energy_tolerance_J > 0.0) {
    refuse(
        "needs a fixed budget: to compare gaps with a tolerance, ranks wait for one another; "
        "leave the tolerances out");
  }
  if (waves.acceleration > 0) {
    refuse("needs an acceleration of 0: Anderson acceleration compares evaluations of all ranks");
  }
}

std::span<const OptionInfo> exchange_options() {
  static const std::array options = {
      OptionInfo{
          .key = "kind",
          .value = option_choice<&WaveCoupling::exchange, &ExchangeOptions::kind>(kExchangeNames),
          .summary = "whether an evaluation waits for the waves of the one before it",
          .note = " or takes the newest that have come (asynchronous: experimental)",
          .check = check_exchange},
      OptionInfo{.key = "max_delay",
                 .value = option_at<&WaveCoupling::exchange, &ExchangeOptions::max_delay>(),
                 .range = {.minimum = 1.0, .maximum = ExchangeOptions::kMostDelay},
                 .summary = "evaluations that waves may be late",
                 .note = ", of the asynchronous one"}};
  return options;
}

std::span<const OptionInfo> tank_options() {
  static const std::array options = {
      OptionInfo{.key = "initial_J",
                 .value = option_at<&WaveCoupling::tank, &TankOptions::initial_J>(),
                 .range = NumberRange::non_negative(),
                 .unit = "J",
                 .summary = "energy at the start",
                 .note = "; absent: that of initial_waves"},
      OptionInfo{.key = "initial_fraction",
                 .value = option_at<&WaveCoupling::tank, &TankOptions::initial_fraction>(),
                 .range = NumberRange::non_negative(),
                 .summary = "share of the energy stored at the start that is added"},
      OptionInfo{.key = "cap_J",
                 .value = option_at<&WaveCoupling::tank, &TankOptions::cap_J>(),
                 .range = NumberRange::non_negative(),
                 .may_be_infinite = true,
                 .unit = "J",
                 .summary = "energy above it is discarded",
                 .note = "; absent: no limit"}};
  return options;
}

std::span<const OptionInfo> wave_options() {
  static constexpr WaveUpdate kAutomatic = WaveUpdate::automatic,
                              kInterface = WaveUpdate::interface;
  static const std::vector<OptionRefusal> no_rule = {
      {kAutomatic, "the method \"auto\" chooses its own; leave it out"},
      {kInterface, "the method \"interface\" makes no use of it; leave it out"}};
  static constexpr std::string_view kOnlyAuto =
      "only the method \"auto\" chooses; give \"kind\": \"kick-drift\" or \"taylor\"";
  static const std::vector<OptionRefusal> only_auto = {{WaveUpdate::douglas_rachford, kOnlyAuto},
                                                       {WaveUpdate::peaceman_rachford, kOnlyAuto},
                                                       {kInterface, kOnlyAuto}};
  static const std::string tolerance_note =
      fmt::format(". With \"auto\" or \"interface\" and no tolerance of either kind, {:g}",
                  WaveCoupling::automatic().tolerance);
  static const std::array options = {
      OptionInfo{.key = "iterations",
                 .value = option_at<&WaveCoupling::iterations>(),
                 .range = NumberRange::non_negative(),
                 .summary = "budget of a step, in evaluations of the parts"},
      OptionInfo{
          .key = "stages",
          .value = option_at<&WaveCoupling::stages>(),
          .range = {.minimum = 1.0, .maximum = kMostStages},
          .word = "auto",
          .summary =
              "stages of a step, whose order is twice that, or one less where they are damped",
          .note = "; not for opaque parts. auto: by the tolerance of adaptive steps"},
      OptionInfo{.key = "explicit_steps",
                 .value = option_at<&WaveCoupling::explicit_steps>(),
                 .summary = "auto with 2 or 3 stages, or adaptive steps: take Taylor series, or "
                            "kicks and drifts",
                 .note = " where the network and what is asked for allow it",
                 .refused = only_auto},
      OptionInfo{.key = "integrator",
                 .value = option_choice<&WaveCoupling::integrator>(kStageKindNames),
                 .summary = "stages that keep energy, or that let stiff motion die",
                 .note = ". auto: the latter for parts, and among oscillations for single states, "
                         "whose decay the step is far from resolving, in islands of ideal diodes, "
                         "switches and check valves, and for what stores beside what changes over "
                         "(diodes, dry friction, switches, driven parameters): with one stage in "
                         "steps in which these do"},
      OptionInfo{.key = "tolerance",
                 .value = option_at<&WaveCoupling::tolerance>(),
                 .range = NumberRange::non_negative(),
                 .summary = "relative tolerance of the iteration; 0: use the whole budget",
                 .note = tolerance_note},
      OptionInfo{.key = "energy_tolerance_J",
                 .value = option_at<&WaveCoupling::energy_tolerance_J>(),
                 .range = NumberRange::non_negative(),
                 .unit = "J",
                 .summary = "energy of the gap at the ports",
                 .note = " to stop at; 0: none"},
      OptionInfo{.key = "tolerance_per_part",
                 .value = option_at<&WaveCoupling::tolerance_per_part>(),
                 .summary = "hold every part to the tolerance by itself",
                 .note = ", also to that of steps that choose their size"},
      OptionInfo{.key = "relaxation",
                 .value = option_at<&WaveCoupling::relaxation>(),
                 .range = relaxation_range(WaveCoupling{})->range,
                 .summary = "relaxation factor; at most 1 with peaceman-rachford",
                 .refused = no_rule,
                 .range_of = relaxation_range,
                 .check = check_own_rule},
      OptionInfo{.key = "acceleration",
                 .value = option_at<&WaveCoupling::acceleration>(),
                 .range = {.minimum = 0.0, .maximum = kMaxAcceleration},
                 .summary = "earlier evaluations that Anderson acceleration remembers; 0: none",
                 .refused = no_rule},
      OptionInfo{.key = "impedance",
                 .summary = "wave impedances of the ports",
                 .required = true,
                 .optional_for = {kAutomatic, kInterface},
                 .check = check_impedance},
      OptionInfo{.key = "start",
                 .value = option_choice<&WaveCoupling::start>(kStartNames),
                 .summary = "start of the inner iteration of a step",
                 .note = ": the waves of the last step, or their extrapolation. auto: the latter "
                         "with \"auto\", in steps of several stages of nonlinear parts"},
      OptionInfo{.key = "exchange",
                 .value = OptionGroup{exchange_options},
                 .summary = "how several ranks exchange waves"},
      OptionInfo{.key = "guard",
                 .value = option_at<&WaveCoupling::guard>(),
                 .summary = "no step takes more energy from an island's tank than is in it"},
      OptionInfo{.key = "tank",
                 .value = OptionGroup{tank_options},
                 .summary = "energy tank of each island, for the guard"},
      OptionInfo{.key = "initial_waves",
                 .unit = "sqrt J",
                 .summary = "outgoing waves",
                 .note = " by \"part.port\"; others are 0"}};
  return options;
}

}  // namespace

std::string_view to_string(ImpedanceKind kind) {
  return kImpedanceNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(InnerStart start) {
  return kStartNames[static_cast<std::size_t>(start)];
}

std::string_view to_string(ExchangeKind kind) {
  return kExchangeNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(WaveUpdate kind) { return to_string(MethodKind(kind)); }

WaveCoupling WaveCoupling::automatic(double to_tolerance) {
  return {.kind = WaveUpdate::automatic,
          .iterations = 100,
          .tolerance = to_tolerance,
          .impedance_kind = ImpedanceKind::automatic};
}

WaveCoupling WaveCoupling::automatic_with_stages(int stages) {
  constexpr std::array kTolerances = {1e-10, 1e-10, 1e-12, 1e-13};
  static_assert(kTolerances.size() == kMostStages + 1);
  WaveCoupling waves = automatic(kTolerances.at(static_cast<std::size_t>(stages)));
  waves.stages = stages;
  return waves;
}

WaveCoupling WaveCoupling::of_kind(WaveUpdate kind) {
  WaveCoupling all_automatic = automatic();
  if (kind == WaveUpdate::automatic) return all_automatic;
  WaveCoupling waves{.kind = kind};
  if (kind != WaveUpdate::interface) return waves;
  waves.tolerance = all_automatic.tolerance;
  waves.impedance_kind = all_automatic.impedance_kind;
  return waves;
}

std::string_view name_of(const WaveCoupling& method) {
  return method.own_rule != nullptr ? method.own_rule->name() : to_string(method.kind);
}

const MethodFamily& wave_coupling_family() {
  static const std::array kinds = {
      MethodInfo{WaveUpdate::douglas_rachford, douglas_rachford().name(),
                 "waves by Douglas-Rachford iteration; impedances are given or tuned"},
      MethodInfo{WaveUpdate::peaceman_rachford, peaceman_rachford().name(),
                 "waves by Peaceman-Rachford iteration; fast where impedances fit"},
      MethodInfo{WaveUpdate::interface, "interface",
                 "waves by the interface equation, exact at once where parts are linear"},
      MethodInfo{
          WaveUpdate::automatic, "auto",
          "waves by what suits the system: the iteration, its acceleration, the impedances"}};
  static const MethodFamily family{"wave coupling", true, kinds, wave_options()};
  return family;
}

}  // namespace portwave
