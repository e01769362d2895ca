// What a stepper or an ensemble calls can read it, and neither step nor change it; and numbers that no
// run can use are refused before anything is done.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/ranks/thread_ranks.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave::test_reentrance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kStep_s = 0.01;

/// Called by a run: from a part, an input, a block or an observer.
using Hook = std::function<void()>;

/// Stores x⁴/4, and calls `hook` whenever its gradient is asked for.
std::shared_ptr<const Component> calling_part(const Hook& hook) {
  Signature signature;
  signature.type = "calling";
  signature.states = {{"x", "m"}, {"v", "m/s"}};
  signature.ports = {{"port", Causality::effort_in, Domain::translation, 1}};
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) {
    return 0.25 * x[0] * x[0] * x[0] * x[0] + 0.5 * x[1] * x[1];
  };
  hamiltonian.gradient = [hook](const double* x, double* g) {
    if (hook) hook();
    g[0] = x[0] * x[0] * x[0];
    g[1] = x[1];
  };
  return std::make_shared<NonlinearPortHamiltonian>(signature, structure, hamiltonian,
                                                    NonlinearPortHamiltonian::Options{});
}

struct Hooks {
  Hook part = {}, input = {}, block = {};
};

System system_with(const Hooks& hooks) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.initial_state = {0.3, 0.0};
  builder.add("own", calling_part(hooks.part), options);
  SystemBuilder::PartOptions driven;
  driven.inputs["force"] = Signal::callback([hook = hooks.input](double) {
    if (hook) hook();
    return 0.0;
  });
  builder.add("mass", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}), driven);
  SystemBuilder::PartOptions settable;
  settable.inputs["force"] = Signal::settable();
  builder.add("set", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 5}), settable);
  SystemBuilder::PartOptions other;
  other.inputs["force"] = Signal::settable();
  builder.add("free", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 5}), other);
  builder.connect("own.port", "mass.coupling");
  builder.join(joint::Free{}, {"set.coupling"});
  builder.join(joint::Free{}, {"free.coupling"});
  return builder.build();
}

StepperOptions options_with(const System& system, const Hooks& hooks) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = kStep_s;
  options.method.waves().iterations = 8;
  options.method.waves().impedance = {1.0};
  if (!hooks.block) return options;
  SignalGraphBuilder graph(system);
  const auto law = [hook = hooks.block](const SampleTime&, std::span<const double>,
                                        std::span<double> y) {
    hook();
    y[0] = 0.0;
  };
  graph.block("law", block::callback(0, 1, law), {}).actuate("law", /*part=*/2, /*input=*/0);
  options.signals = std::make_shared<const SignalGraph>(graph.build());
  return options;
}

std::vector<double> all_states(const Stepper& stepper) {
  std::vector<double> all = {stepper.time_s(), static_cast<double>(stepper.step_index())};
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto x = stepper.state(part);
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

struct Attempt {
  const char* name;
  std::function<void(Stepper&, const Snapshot&)> act;
  bool is_for_observers = false;  ///< these may do it
};

const std::vector<Attempt>& attempts() {
  static const std::vector<Attempt> all = {
      {"step", [](Stepper& s, const Snapshot&) { s.step(); }},
      {"step of a size", [](Stepper& s, const Snapshot&) { s.step_by(kStep_s / 2); }},
      {"several steps", [](Stepper& s, const Snapshot&) { s.step(2); }},
      {"run until", [](Stepper& s, const Snapshot&) { s.run_until(1e3); }},
      {"one of them", [](Stepper& s, const Snapshot&) { (void)s.step_if_before(1e3); }},
      {"restore", [](Stepper& s, const Snapshot& at) { s.restore(at); }},
      {"exchange", [](Stepper& s, const Snapshot&) { s.set_component(0, calling_part({})); }},
      {"observe", [](Stepper& s, const Snapshot&) { s.on_step([](const auto&, const auto&) {}); }},
      {"observe no more", [](Stepper& s, const Snapshot&) { s.clear_observers(); }},
      {"snapshot", [](Stepper& s, const Snapshot&) { (void)s.snapshot(); }, true},
      {"clone", [](Stepper& s, const Snapshot&) { (void)s.clone(); }, true},
      {"set an input", [](Stepper& s, const Snapshot&) { s.set_input(3, 0, 0.0); }, true},
      {"set inputs",
       [](Stepper& s, const Snapshot&) {
         const std::vector<double> zeros(s.system().settable_inputs().size(), 0.0);
         s.set_inputs(zeros);
       },
       true},
      {"impedances",
       [](Stepper& s, const Snapshot&) {
         const std::vector<double> same(s.system().scalar_ports().size(), 1.0);
         s.waves()->set_impedance(same);
       },
       true},
      {"iterations", [](Stepper& s, const Snapshot&) { s.waves()->set_iterations(8); }, true},
  };
  return all;
}

enum class From { part, input, block, observer };

/// Steps once, while `from` tries; returns what it was told, or nothing where it could.
std::optional<std::string> told(From from, const Attempt& attempt, bool& was_tried,
                                std::vector<double>& after) {
  std::optional<Stepper> stepper;
  Snapshot start;
  bool is_armed = false;
  std::optional<std::string> said;
  const Hook hook = [&] {
    if (!is_armed) return;
    is_armed = false;  // once
    was_tried = true;
    try {
      attempt.act(*stepper, start);
    } catch (const std::logic_error& error) {
      said = error.what();
    }
  };
  Hooks hooks;
  if (from == From::part) hooks.part = hook;
  if (from == From::input) hooks.input = hook;
  if (from == From::block) hooks.block = hook;
  System system = system_with(hooks);
  const StepperOptions options = options_with(system, hooks);
  stepper.emplace(std::move(system), options);
  if (from == From::observer) {
    stepper->on_step([&](const Stepper&, const StepReport&) { hook(); });
  }
  stepper->step(3);
  stepper->snapshot(start);
  is_armed = true;
  stepper->step();
  after = all_states(*stepper);
  return said;
}

std::vector<double> states_undisturbed(From from) {
  bool was_tried = false;
  std::vector<double> after;
  const Attempt nothing = {"nothing", [](Stepper&, const Snapshot&) {}};
  EXPECT_EQ(told(from, nothing, was_tried, after), std::nullopt);
  EXPECT_TRUE(was_tried);
  return after;
}

TEST(Reentrance, WhatAStepperCallsCannotStepOrChangeIt) {
  for (const From from : {From::part, From::input, From::block, From::observer}) {
    const std::vector<double> expected = states_undisturbed(from);
    for (const Attempt& attempt : attempts()) {
      bool was_tried = false;
      std::vector<double> after;
      const auto said = told(from, attempt, was_tried, after);
      const std::string where =
          std::string(attempt.name) + " from " + std::to_string(static_cast<int>(from));
      EXPECT_TRUE(was_tried) << where;
      EXPECT_EQ(after, expected) << where;
      const bool may = from == From::observer && attempt.is_for_observers;
      EXPECT_EQ(said.has_value(), !may) << where << ": " << said.value_or("");
      if (!said) continue;
      EXPECT_NE(said->find(from == From::observer ? "observers are told" : "in a step"),
                std::string::npos)
          << where << ": " << *said;
    }
  }
}

TEST(Reentrance, AStepThatFailsLetsTheNextOneBeMade) {
  bool throws = false;
  const Hooks hooks = {.part = [&] {
    if (throws) throw std::runtime_error("not now");
  }};
  Stepper stepper(system_with(hooks), options_with(system_with(hooks), {}));
  stepper.step();
  throws = true;
  EXPECT_THROW(stepper.step(), StepError);
  throws = false;
  stepper.step();
  EXPECT_EQ(stepper.step_index(), 2);
  stepper.on_step([](const Stepper&, const StepReport&) { throw std::runtime_error("enough"); });
  EXPECT_THROW(stepper.step(), std::runtime_error);
  stepper.clear_observers();
  stepper.step();
  EXPECT_EQ(stepper.step_index(), 4);
}

TEST(ReentranceDeathTest, AStepperThatEndsWhileItStepsEndsTheProgramWithAText) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto end_within = [](auto&& act) {
    const System system = system_with({});
    auto stepper = std::make_unique<Stepper>(system, options_with(system, {}));
    stepper->on_step([&](const Stepper&, const StepReport&) { act(stepper); });
    stepper->step();
  };
  constexpr const char* kSays = "a stepper was destroyed or moved by a function that it had called";
  EXPECT_DEATH(end_within([](auto& own) { own.reset(); }), kSays);
  EXPECT_DEATH(end_within([](auto& own) { Stepper other = std::move(*own); }), kSays);
  EXPECT_DEATH(end_within([](auto& own) {
                 const System system = system_with({});
                 *own = Stepper(system, options_with(system, {}));
               }),
               kSays);
}

TEST(Reentrance, NumbersThatNoRunCanUseAreRefused) {
  const System system = system_with({});
  StepperOptions chosen = options_with(system, {});
  chosen.sizes.emplace();
  for (const bool are_chosen : {false, true}) {
    Stepper stepper(system, are_chosen ? chosen : options_with(system, {}));
    stepper.run_until(2 * kStep_s);
    const std::vector<double> before = all_states(stepper);
    for (const double bad : {kNan, kInfinity, -kInfinity, 1e300}) {
      EXPECT_THROW(stepper.run_until(bad), std::invalid_argument) << bad;
      EXPECT_THROW((void)stepper.step_if_before(bad), std::invalid_argument) << bad;
    }
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      EXPECT_ANY_THROW(stepper.step_towards(bad)) << bad;
      EXPECT_ANY_THROW(stepper.step_by(bad)) << bad;
    }
    for (const double bad : {0.0, -1.0}) {
      EXPECT_ANY_THROW(stepper.step_by(bad)) << bad;
      EXPECT_ANY_THROW(stepper.step_towards(bad)) << bad;
      EXPECT_NO_THROW(stepper.run_until(bad)) << bad;  // it is later already
    }
    for (const std::int64_t bad : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()}) {
      EXPECT_THROW(stepper.step(bad), std::invalid_argument) << bad;
    }
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      EXPECT_THROW(stepper.set_input(InputSlot{0}, bad), std::invalid_argument);
      EXPECT_THROW(stepper.set_input(2, 0, bad), std::invalid_argument);
      EXPECT_THROW(stepper.set_inputs(std::vector<double>{0.0, bad}), std::invalid_argument);
      EXPECT_THROW(
          stepper.waves()->set_impedance(std::vector<double>(system.scalar_ports().size(), bad)),
          ConfigError);
    }
    EXPECT_EQ(all_states(stepper), before);
    EXPECT_EQ(stepper.input(InputSlot{0}), 0.0);
    EXPECT_EQ(stepper.waves()->impedance(0), 1.0);
  }
}

TEST(Reentrance, NumbersOfWhatThereIsNotAreRefused) {
  const System system = system_with({});
  Stepper stepper(system, options_with(system, {}));
  stepper.step();
  const int parts = static_cast<int>(system.parts().size());
  const int ports = static_cast<int>(system.scalar_ports().size());
  for (const int bad :
       {-1, parts, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_THROW((void)stepper.state(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.storage(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)RankedStepper(stepper).rank_of_part(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->energies_of(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->tank(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->iterations_of_island(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->waves_at(0, bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->impedance(0, bad), std::out_of_range) << bad;
    EXPECT_THROW(stepper.set_component(bad, calling_part({})), std::out_of_range) << bad;
  }
  for (const int bad : {-1, ports, std::numeric_limits<int>::max()}) {
    EXPECT_THROW((void)stepper.effort(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.flow(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->waves_at(bad, 0), std::out_of_range) << bad;
    EXPECT_THROW((void)stepper.waves()->impedance(bad), std::out_of_range) << bad;
  }
  const QuantityTerm one = {QuantityTerm::Kind::state, 0, 0};
  const std::vector<QuantityTerm> both{one, one};
  const RankedStepper alone(stepper);
  std::vector<double> room(1);
  EXPECT_THROW((void)alone.prepare_terms(both), std::logic_error);
  EXPECT_THROW(alone.read_terms(0, room), std::logic_error);
  EXPECT_THROW(alone.read_own(both, room), std::invalid_argument);
  EXPECT_THROW(alone.read_own(std::vector<QuantityTerm>{one}, room), std::logic_error);
  EXPECT_THROW(stepper.waves()->set_impedance({}), ConfigError);
  EXPECT_THROW(stepper.waves()->set_iterations(-1), ConfigError);
}

TEST(Reentrance, WhatAnEnsembleCallsCannotUseIt) {
  std::optional<Ensemble> ensemble;
  std::vector<double> room;
  const std::vector<std::pair<const char*, std::function<void()>>> attempts_of_ensemble = {
      {"step", [&] { ensemble->step(); }},
      {"several steps", [&] { ensemble->step(3); }},
      {"reset", [&] { ensemble->reset(); }},
      {"status", [&] { (void)ensemble->status(0); }},
      {"failures", [&] { (void)ensemble->failures(); }},
      {"energy", [&] { (void)ensemble->energy(0); }},
      {"state", [&] { ensemble->get_state(0, room); }},
      {"set a state", [&] { ensemble->set_state(0, room); }},
      {"set an input", [&] { ensemble->set_input(0, 0, 0.0); }},
      {"roll out", [&] { ensemble->rollout({}, {}, 0, {}); }}};
  const auto run_with = [&](const std::function<void()>& act, bool from_part) {
    int tries = 0, refused = 0;
    bool is_armed = false;
    const Hook hook = [&] {
      if (!is_armed) return;
      is_armed = false;
      ++tries;
      try {
        act();
      } catch (const std::logic_error&) {
        ++refused;
      }
    };
    const System system = system_with({.part = from_part ? hook : Hook()});
    ensemble.emplace(system, 3, options_with(system, {}));
    room.assign(static_cast<std::size_t>(ensemble->state_size()), 0.0);
    ensemble->step(2);
    is_armed = true;
    ensemble->step(2, from_part ? Hook() : hook);
    EXPECT_EQ(tries, 1);
    EXPECT_EQ(ensemble->step_index(), 4);
    ensemble->get_state(1, room);
    return std::pair(refused, room);
  };
  for (const bool from_part : {false, true}) {
    const auto expected = run_with([] {}, from_part);
    EXPECT_EQ(expected.first, 0);  // the control: nobody tries
    for (const auto& [name, act] : attempts_of_ensemble) {
      const auto found = run_with(act, from_part);
      EXPECT_EQ(found.first, 1) << name << (from_part ? " from a part" : " from `ask`");
      EXPECT_EQ(found.second, expected.second) << name;
    }
  }
}

TEST(Reentrance, NumbersThatNoEnsembleCanUseAreRefused) {
  const System system = system_with({});
  Ensemble ensemble(system, 2, options_with(system, {}));
  ensemble.step(2);
  for (const std::int64_t bad : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_THROW(ensemble.step(bad), std::invalid_argument) << bad;
  }
  EXPECT_EQ(ensemble.step_index(), 2);
  std::vector<double> x(static_cast<std::size_t>(ensemble.state_size()));
  for (const int bad : {-1, 99, std::numeric_limits<int>::max()}) {
    EXPECT_THROW((void)ensemble.first_state(bad), std::out_of_range) << bad;
    EXPECT_THROW(ensemble.set_state(0, bad, x), std::out_of_range) << bad;
    EXPECT_THROW(ensemble.set_state(bad, x), std::out_of_range) << bad;
    EXPECT_THROW(ensemble.get_state(bad, x), std::out_of_range) << bad;
    EXPECT_THROW((void)ensemble.status(bad), std::out_of_range) << bad;
    EXPECT_THROW((void)ensemble.options_of(bad), std::out_of_range) << bad;
    EXPECT_THROW(ensemble.set_input(0, bad, 0.0), std::out_of_range) << bad;
    EXPECT_THROW((void)ensemble.input(bad, 0), std::out_of_range) << bad;
  }
  for (const double bad : {kNan, kInfinity}) {
    EXPECT_THROW(ensemble.set_input(0, 0, bad), std::invalid_argument) << bad;
  }
  EXPECT_THROW(ensemble.rollout({}, {}, -1, {}), std::invalid_argument);
  EXPECT_THROW(ensemble.rollout({}, {}, 2, x), std::invalid_argument);
  for (const int bad : {0, -1}) {
    EXPECT_THROW(Ensemble(system, bad, options_with(system, {})), ConfigError) << bad;
    EXPECT_THROW(Ensemble(system, 2, options_with(system, {}), {.threads = bad}), ConfigError);
  }
  EXPECT_THROW(Ensemble(system, 2, options_with(system, {}), {.chunk = -1}), ConfigError);
}

TEST(Reentrance, OptionsThatNoRunCanUseAreRefused) {
  const System system = system_with({});
  const auto refuses = [&](auto&& change) {
    StepperOptions options = options_with(system, {});
    change(options);
    EXPECT_THROW(Stepper(system, options), ConfigError);
  };
  for (const double bad : {kNan, kInfinity, -kInfinity, -1.0}) {
    refuses([&](StepperOptions& o) { o.step_s = bad; });
    refuses([&](StepperOptions& o) { o.method.waves().impedance = {bad}; });
    refuses([&](StepperOptions& o) { o.method.waves().relaxation = bad; });
    refuses([&](StepperOptions& o) { o.method.waves().tolerance = bad; });
    refuses([&](StepperOptions& o) { o.time.deadline_s = bad; });
    refuses([&](StepperOptions& o) { o.time.pace = bad; });
    refuses([&](StepperOptions& o) { o.sizes.emplace().tolerance = bad; });
    refuses([&](StepperOptions& o) { o.sizes.emplace().smallest_s = bad; });
    refuses([&](StepperOptions& o) { o.sizes.emplace().event_tolerance_s = bad; });
  }
  for (const int bad : {0, -1, kMaxThreads + 1, std::numeric_limits<int>::max()}) {
    refuses([&](StepperOptions& o) { o.threads = bad; });
    EXPECT_THROW(Arena{bad}, std::invalid_argument) << bad;
    EXPECT_THROW(run_thread_ranks(bad, [](const auto&) {}), std::invalid_argument) << bad;
  }
  refuses([&](StepperOptions& o) { o.method.waves().iterations = -1; });
  refuses([&](StepperOptions& o) { o.method.waves().stages = -1; });
  EXPECT_NO_THROW(Stepper(system, options_with(system, {})));  // the control
}

}  // namespace
}  // namespace portwave::test_reentrance
