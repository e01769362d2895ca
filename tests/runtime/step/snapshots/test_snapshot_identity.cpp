// A snapshot fits the system and the options that it was taken of, and says what differs in others.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"
#include "support/files/source_folder.hpp"
#include "support/systems/example_scenarios.hpp"

namespace portwave::test_snapshot_identity {
namespace {

using testing::example;

/// Why `other` does not take a snapshot of `stepper`; empty: it does. Through bytes and back, as by another
/// process, it is the same.
std::string refusal(const Stepper& stepper, Stepper& other) {
  const Snapshot snapshot = stepper.snapshot();
  std::string reasons[2];
  for (const bool through_bytes : {false, true}) {
    try {
      other.restore(through_bytes ? Snapshot::from_bytes(snapshot.to_bytes()) : snapshot);
    } catch (const std::invalid_argument& error) {
      reasons[through_bytes ? 1 : 0] = error.what();
    }
  }
  EXPECT_EQ(reasons[0], reasons[1]);
  return reasons[0];
}

::testing::AssertionResult names(const std::string& refusal, const std::string& what) {
  if (refusal.find(what) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << (refusal.empty() ? "it was accepted" : refusal) << "\n  and does not name " << what;
}

// The same, rebuilt.

TEST(SnapshotIdentity, TheSameScenarioReadAgainAccepts) {
  for (const auto& entry : std::filesystem::directory_iterator(testing::source_file("examples"))) {
    if (entry.path().extension() != ".json") continue;
    const Scenario one = load_scenario(entry.path()), two = load_scenario(entry.path());
    if (one.system.parts().size() > 200) continue;
    const Stepper first(one.system, one.options);
    Stepper second(two.system, two.options);
    EXPECT_EQ(refusal(first, second), "") << entry.path();
  }
}

TEST(SnapshotIdentity, WhereItStartsDoesNotMatter) {
  const Scenario one = example("published_douglas_rachford"),
                 two = example("published_douglas_rachford",
                               {{"/subsystems/0/initial_state/q1", "0.2"}});
  const Stepper first(one.system, one.options);
  Stepper second(two.system, two.options);
  EXPECT_EQ(refusal(first, second), "");
  EXPECT_EQ(second.state(0)[0], first.state(0)[0]);
}

// Parameters of parts.

/// One part with all its ports closed; nothing where that cannot be.
std::optional<Stepper> alone(const std::shared_ptr<const Component>& component) {
  for (const Joint& joint :
       {Joint(joint::Resistive{1.0}), Joint(joint::Free{}), Joint(joint::Fixed{})}) {
    try {
      SystemBuilder builder;
      builder.add("P", component);
      for (const Port& port : component->signature().ports) builder.join(joint, {"P." + port.name});
      StepperOptions options{.method = WaveCoupling{}};
      options.step_s = 1e-4;
      options.method.waves().iterations = 2;
      return std::optional<Stepper>(std::in_place, builder.build(), options);
    } catch (const ConfigError&) {
    }
  }
  return std::nullopt;
}

/// Other values of a parameter, the nearest first.
std::vector<ParameterValue> others(const ParameterInfo& info, const ParameterValue& value) {
  std::vector<ParameterValue> out;
  if (const auto* const number = std::get_if<double>(&value)) {
    for (const double factor : {1.25, 0.8}) out.emplace_back(*number * factor);
    if (*number == 0.0) out = {0.5, 1e-3};
  } else if (const auto* const integer = std::get_if<int>(&value)) {
    out = {*integer + 1, *integer - 1};
  } else if (const auto* const truth = std::get_if<bool>(&value)) {
    out = {!*truth};
  } else if (std::holds_alternative<std::string>(value)) {
    for (const std::string& choice : info.choices) {
      if (choice != std::get<std::string>(value)) out.emplace_back(choice);
    }
  } else if (const auto* const list = std::get_if<std::vector<double>>(&value)) {
    for (const double factor : {1.25, 0.8}) {
      std::vector<double> other = *list;
      if (!other.empty()) other.back() *= factor;
      if (other != *list) out.emplace_back(std::move(other));
    }
  } else if (const auto* const rows = std::get_if<MatrixRows>(&value)) {
    // Of a symmetric or a skew one neither is so with one entry alone: all of them.
    MatrixRows other = *rows;
    for (std::vector<double>& row : other) {
      for (double& entry : row) entry *= 1.25;
    }
    if (other != *rows) out.emplace_back(std::move(other));
  }
  return out;
}

bool has_shape_of(const Component& a, const Component& b) {
  const Signature &x = a.signature(), &y = b.signature();
  const auto is_like = [](const Port& p, const Port& q) {
    return p.name == q.name && p.causality == q.causality && p.dimension == q.dimension;
  };
  return x.state_size() == y.state_size() && std::ranges::equal(x.ports, y.ports, is_like);
}

class EveryType : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryType, RefusesASnapshotOfOneWithAnotherParameterAndNamesIt) {
  const PartType& type = *find_part_type(GetParam());
  Parameters given = type.example;
  ASSERT_TRUE(check_parameters(type, given, false).empty());
  const std::shared_ptr<const Component> component = make_part(type.name, given);
  const std::optional<Stepper> stepper = alone(component);
  ASSERT_TRUE(stepper.has_value());
  std::optional<Stepper> again = alone(make_part(type.name, given));
  EXPECT_EQ(refusal(*stepper, *again), "");
  int changed = 0, looked_at = 0;
  for (const ParameterInfo& info : type.parameters) {
    const auto found = given.find(info.name);
    if (found == given.end()) continue;
    for (const ParameterValue& value : others(info, found->second)) {
      Parameters other = given;
      other.insert_or_assign(info.name, value);
      std::optional<Stepper> changed_stepper;
      try {
        changed_stepper = alone(make_part(type.name, other));
      } catch (const ConfigError&) {  // does not go with the others
      }
      if (!changed_stepper) continue;
      // One that makes other states or ports is told as that.
      const Component& now = *changed_stepper->system().parts()[0].component;
      const bool has_other_ports =
          now.signature().ports.size() != component->signature().ports.size();
      EXPECT_TRUE(names(refusal(*stepper, *changed_stepper),
                        has_other_ports                 ? "parts here"
                        : has_shape_of(now, *component) ? "part \"P\": " + info.name
                                                        : "part \"P\" has another name, type"));
      ++changed;
      break;
    }
    looked_at += others(info, found->second).empty() ? 0 : 1;
  }
  // Those of most types can be changed one by one.
  EXPECT_GE(2 * changed, looked_at) << "of " << looked_at;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryType, ::testing::ValuesIn(type_names()),
                         [](const auto& own) { return own.param; });

/// Parts that were built by hand say nothing of parameters, and show their equations.
Signature signature_of(const char* type, int states) {
  Signature signature{.type = type,
                      .states = {},
                      .ports = {{"port", Causality::effort_in, Domain::translation, 1}},
                      .inputs = {}};
  for (int i = 0; i < states; ++i) signature.states.push_back({"x" + std::to_string(i), "m"});
  return signature;
}

SparseMatrix sparse(std::initializer_list<std::initializer_list<double>> rows) {
  SparseMatrix out(static_cast<int>(rows.size()), static_cast<int>(rows.begin()->size()));
  int i = 0;
  for (const auto& row : rows) {
    int j = 0;
    for (const double entry : row) {
      if (entry != 0.0) out.insert(i, j) = entry;
      ++j;
    }
    ++i;
  }
  out.makeCompressed();
  return out;
}

Structure oscillator_structure(double damping) {
  Structure structure = Structure::zero(2, 1);
  structure.J = sparse({{0, 1}, {-1, 0}});
  structure.R = sparse({{0, 0}, {0, damping}});
  structure.G = sparse({{0}, {1}});
  return structure;
}

using MadeByHand = std::function<std::shared_ptr<const Component>(double)>;

TEST(SnapshotIdentity, PartsBuiltByHandShowTheirEquations) {
  const std::pair<const char*, MadeByHand> kinds[] = {
      {"linear, energy",
       [](double k) {
         return std::make_shared<LinearPortHamiltonian>(
             signature_of("by_hand", 2), oscillator_structure(0.1), sparse({{k, 0}, {0, 1}}));
       }},
      {"linear, structure",
       [](double k) {
         return std::make_shared<LinearPortHamiltonian>(
             signature_of("by_hand", 2), oscillator_structure(k), sparse({{1, 0}, {0, 1}}));
       }},
      {"descriptor",
       [](double k) {
         return std::make_shared<DescriptorPortHamiltonian>(
             signature_of("by_hand", 2), DescriptorForm{.E = sparse({{1, 0}, {0, k}}),
                                                        .J = sparse({{0, 1}, {-1, 0}}),
                                                        .R = sparse({{0, 0}, {0, 0.1}}),
                                                        .Q = sparse({{1, 0}, {0, 1}}),
                                                        .B = sparse({{0}, {1}})});
       }},
      {"nonlinear",
       [](double k) {
         Hamiltonian hamiltonian;
         hamiltonian.value = [k](const double* x) {
           return 0.25 * k * x[0] * x[0] * x[0] * x[0] + 0.5 * x[0] * x[0] + 0.5 * x[1] * x[1];
         };
         hamiltonian.gradient = [k](const double* x, double* g) {
           g[0] = k * x[0] * x[0] * x[0] + x[0];
           g[1] = x[1];
         };
         return std::make_shared<NonlinearPortHamiltonian>(
             signature_of("by_hand", 2), oscillator_structure(0.1), std::move(hamiltonian),
             NonlinearPortHamiltonian::Options{});
       }},
      {"port law",
       [](double k) {
         return std::make_shared<NonlinearResistance>(signature_of("by_hand", 0), [k](double u) {
           return PortLawValue{k * std::tanh(u), k / std::pow(std::cosh(u), 2)};
         });
       }},
  };
  for (const auto& [name, made] : kinds) {
    std::optional<Stepper> one = alone(made(2.0)), same = alone(made(2.0)),
                           other = alone(made(2.5));
    ASSERT_TRUE(one && same && other) << name;
    EXPECT_EQ(refusal(*one, *same), "") << name;
    EXPECT_TRUE(names(refusal(*one, *other), "part \"P\" has other equations")) << name;
  }
}

TEST(SnapshotIdentity, AnOlderSnapshotBringsTheParametersThatItWasTakenWith) {
  Scenario scenario = example("published_douglas_rachford");
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(5);
  const Snapshot before = stepper.snapshot();
  set_parameter(stepper, scenario, "B.mass_kg", 2.5);
  stepper.step(3);
  const Snapshot after = stepper.snapshot();
  stepper.restore(before);
  EXPECT_EQ(stepper.step_index(), 5);
  EXPECT_EQ(parameter(stepper, scenario, "B.mass_kg"), 4.0);
  // In another process, too: what it is of is known by its values.
  const Scenario fresh = example("published_douglas_rachford");
  Stepper other(fresh.system, fresh.options);
  other.restore(Snapshot::from_bytes(before.to_bytes()));
  EXPECT_EQ(other.step_index(), 5);
  // But no parts of a system that is somebody else's.
  try {
    other.restore(Snapshot::from_bytes(after.to_bytes()));
    FAIL() << "it exchanges no parts, nor goes on with others";
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(names(error.what(), "part \"B\": mass_kg is 4 here, and 2.5 there"));
  }
  EXPECT_EQ(other.step_index(), 5);
}

// Inputs.

Stepper driven(Signal signal) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs.insert_or_assign("force", std::move(signal));
  builder.add("A", make_part("duffing_oscillator", find_part_type("duffing_oscillator")->example),
              std::move(options));
  builder.join(joint::Free{}, {"A.coupling"});
  return {builder.build(), StepperOptions{.method = WaveCoupling{}}};
}

TEST(SnapshotIdentity, EveryKindOfInputIsToldFromOthers) {
  const std::vector<Signal> signals = {
      Signal::constant(1.0),
      Signal::constant(2.0),
      Signal::sine_product(1.0, {{1.0, 0.0}}),
      Signal::sine_product(1.0, {{2.0, 0.0}}),
      Signal::sine_product(1.0, {{1.0, 0.5}}),
      Signal::piecewise_linear({{0.0, 1.0}, {1.0, 2.0}}),
      Signal::piecewise_linear({{0.0, 1.0}, {1.0, 3.0}}),
      Signal::piecewise_linear({{0.0, 1.0}, {2.0, 2.0}}),
      Signal::expression("sin(t)"),
      Signal::expression("sin(2*t)"),
      Signal::chirp({.amplitude = 1.0}),
      Signal::chirp({.amplitude = 1.0, .to_Hz = 2.0}),
      Signal::noise({.seed = 1}),
      Signal::noise({.seed = 2}),
      Signal::settable(),
      Signal::callback([](double t) { return t; }),
  };
  for (std::size_t i = 0; i < signals.size(); ++i) {
    for (std::size_t j = 0; j < signals.size(); ++j) {
      const Stepper one = driven(signals[i]);
      Stepper other = driven(signals[j]);
      if (i == j) {
        EXPECT_EQ(refusal(one, other), "") << i;
      } else {
        EXPECT_TRUE(names(refusal(one, other), "input \"force\" of part \"A\"")) << i << ' ' << j;
      }
    }
  }
  // Where it starts from a settable input is a matter of snapshots; what callbacks do nobody knows.
  const Stepper one = driven(Signal::settable(1.0));
  Stepper other = driven(Signal::settable(2.0));
  EXPECT_EQ(refusal(one, other), "");
}

// Couplings.

Stepper joined(Joint joint) {
  SystemBuilder builder;
  const Parameters& oscillator = find_part_type("linear_oscillator")->example;
  const bool is_of_one = std::holds_alternative<joint::Free>(joint) ||
                         std::holds_alternative<joint::Fixed>(joint) ||
                         std::holds_alternative<joint::Resistive>(joint);
  builder.add("A", make_part("linear_oscillator", oscillator));
  if (is_of_one) {
    builder.join(std::move(joint), {"A.coupling"});
  } else {
    builder.add("B", make_part("linear_oscillator", oscillator));
    builder.join(std::move(joint), {"A.coupling", "B.coupling"});
  }
  return {builder.build(), StepperOptions{.method = WaveCoupling{}}};
}

TEST(SnapshotIdentity, LawsOfCouplingsAreToldApart) {
  const auto skew = [](double c) { return joint::SkewGain{Eigen::MatrixXd{{0.0, c}, {-c, 0.0}}}; };
  const std::pair<Joint, Joint> pairs[] = {
      {joint::Transformer{2.0}, joint::Transformer{2.5}},
      {joint::Gyrator{2.0}, joint::Gyrator{2.5}},
      {skew(1.0), skew(1.5)},
      {joint::Connection{}, joint::Transformer{2.0}},
      {joint::CommonFlow{}, joint::CommonEffort{}},
      {joint::Free{}, joint::Fixed{}},
  };
  for (std::size_t i = 0; i < std::size(pairs); ++i) {
    const Stepper one = joined(pairs[i].first);
    Stepper same = joined(pairs[i].first), other = joined(pairs[i].second);
    EXPECT_EQ(refusal(one, same), "") << i;
    EXPECT_TRUE(names(refusal(one, other), "the coupling of A.coupling")) << i;
  }
  const Stepper one = joined(joint::Resistive{1.0});
  Stepper other = joined(joint::Resistive{2.0});
  EXPECT_TRUE(names(refusal(one, other), "part \"A.coupling\" has other equations"));
}

TEST(SnapshotIdentity, WhatCouplingsJoinIsToldApart) {
  const Scenario one = example("chain_64");
  const auto crossed = [](bool is_crossed) {
    SystemBuilder builder;
    const Parameters& oscillator = find_part_type("linear_oscillator")->example;
    for (const char* name : {"A", "B", "C", "D"}) {
      builder.add(name, make_part("linear_oscillator", oscillator));
    }
    builder.connect("A.coupling", is_crossed ? "C.coupling" : "B.coupling");
    builder.connect("D.coupling", is_crossed ? "B.coupling" : "C.coupling");
    return Stepper(builder.build(), StepperOptions{.method = WaveCoupling{}});
  };
  const Stepper straight = crossed(false);
  Stepper other = crossed(true);
  EXPECT_TRUE(names(refusal(straight, other), "joins other ports there"));
  Stepper of_many(one.system, one.options);
  EXPECT_TRUE(names(refusal(straight, of_many), "there are 64 parts here, and 4 there"));
}

// Options.

struct OptionCase {
  std::string name;
  std::string told;  ///< what the refusal has to say
  std::function<void(StepperOptions&)> change;
};
void PrintTo(const OptionCase& c, std::ostream* out) { *out << c.name; }

std::vector<OptionCase> option_cases() {
  const auto waves = [](auto change) {
    return [change](StepperOptions& o) { change(o.method.waves()); };
  };
  return {
      {"step", "/time/step_s is 0.02 here, and 0.01 there", [](auto& o) { o.step_s = 0.02; }},
      {"adaptive", "/time/step is adaptive here, and fixed there",
       [](auto& o) { o.sizes.emplace(); }},
      {"certify", "--certify", [](auto& o) { o.certify = Certify::full; }},
      {"method", "/method/kind",
       waves([](WaveCoupling& w) { w.kind = WaveUpdate::peaceman_rachford; })},
      {"iterations", "/method/iterations is 7 here, and 5 there",
       waves([](WaveCoupling& w) { w.iterations = 7; })},
      {"stages", "/method/stages is 2 here, and 1 there",
       waves([](WaveCoupling& w) { w.stages = 2; })},
      {"relaxation", "/method/relaxation is 1.2 here, and 1 there",
       waves([](WaveCoupling& w) { w.relaxation = 1.2; })},
      {"tolerance", "/method/tolerance is 1e-09 here, and 0 there",
       waves([](WaveCoupling& w) { w.tolerance = 1e-9; })},
      {"energy_tolerance", "/method/energy_tolerance_J",
       waves([](WaveCoupling& w) { w.energy_tolerance_J = 1e-9; })},
      {"tolerance_per_part", "/method/tolerance_per_part is true here, and false there",
       waves([](WaveCoupling& w) { w.tolerance_per_part = true; })},
      {"acceleration", "/method/acceleration", waves([](WaveCoupling& w) { w.acceleration = 3; })},
      {"impedance", "/method/impedance/value is another",
       waves([](WaveCoupling& w) { w.impedance = {0.7}; })},
      {"impedance_rule", "/method/impedance/kind is another",
       waves([](WaveCoupling& w) { w.impedance_kind = ImpedanceKind::matched; })},
      {"start", "/method/start",
       waves([](WaveCoupling& w) { w.start = InnerStart::extrapolated; })},
      {"guard", "/method/guard is false here, and true there",
       waves([](WaveCoupling& w) { w.guard = false; })},
      {"tank_cap", "/method/tank/cap_J is 3 here, and inf there",
       waves([](WaveCoupling& w) { w.tank.cap_J = 3.0; })},
      {"delay", "/method/exchange/kind",
       waves([](WaveCoupling& w) { w.exchange.kind = ExchangeKind::asynchronous; })},
      {"events", "the number of /events is 1 here, and 0 there",
       [](auto& o) {
         Watch watch;
         watch.name = "middle";
         o.watches.push_back(watch);
       }},
  };
}

class SnapshotOptions : public ::testing::TestWithParam<OptionCase> {};

StepperOptions plain_options() {
  StepperOptions options{.method = WaveCoupling{}};
  options.method.waves().iterations = 5;
  options.method.waves().impedance = {0.4};
  return options;
}

TEST_P(SnapshotOptions, OfOthersAreNamed) {
  const Scenario scenario = example("published_douglas_rachford");
  StepperOptions changed = plain_options();
  GetParam().change(changed);
  const Stepper one(scenario.system, plain_options());
  Stepper other(scenario.system, changed);
  EXPECT_TRUE(names(refusal(one, other), GetParam().told));
  Stepper same(scenario.system, changed);
  EXPECT_EQ(refusal(other, same), "");
}

INSTANTIATE_TEST_SUITE_P(All, SnapshotOptions, ::testing::ValuesIn(option_cases()),
                         [](const auto& own) { return own.param.name; });

TEST(SnapshotIdentity, WhatARunHasChangedOfItsOptionsIsPartOfTheSnapshot) {
  const Scenario scenario = example("published_douglas_rachford");
  Stepper one(scenario.system, plain_options()), other(scenario.system, plain_options());
  one.waves()->set_iterations(9);
  one.waves()->set_impedance(std::vector<double>{0.9, 0.8});
  one.step(3);
  EXPECT_EQ(refusal(one, other), "");
  EXPECT_EQ(other.waves()->impedance(0), 0.9);
  one.step(4);
  other.step(4);
  EXPECT_EQ(one.snapshot().to_bytes(), other.snapshot().to_bytes());
}

TEST(SnapshotIdentity, OptionsOfMethodsWithoutWavesAreNamed) {
  const auto stepper = [](const std::string& method) {
    const Scenario scenario = example("msd_chains", {{"/method", method}});
    Scenario kept = example("msd_chains", {{"/method", method}});
    return Stepper(std::move(kept.system), scenario.options);
  };
  const std::pair<std::string, std::string> pairs[] = {
      {R"({"kind": "strang", "split_dissipation": true})", "/method/split_dissipation"},
      {R"({"kind": "strang", "coupling_flow": "low-rank"})", "/method/coupling_flow"},
      {R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 40})", "/method/kind"},
  };
  const Stepper one = stepper(R"({"kind": "strang"})");
  for (const auto& [method, told] : pairs) {
    Stepper other = stepper(method);
    EXPECT_TRUE(names(refusal(one, other), told)) << method;
  }
  const Stepper windows =
      stepper(R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 40})");
  for (const auto& [method, told] : std::vector<std::pair<std::string, std::string>>{
           {R"({"kind": "lions-mercier", "window_steps": 4, "iterations": 40})",
            "/method/window_steps is 4 here, and 5 there"},
           {R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 30})",
            "/method/iterations is 30 here, and 40 there"},
           {R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 40, "lambda": 0.1})",
            "/method/lambda"}}) {
    Stepper other = stepper(method);
    EXPECT_TRUE(names(refusal(windows, other), told)) << method;
  }
}

TEST(SnapshotIdentity, BlocksOfControllersAreNamed) {
  const Scenario one = example("drive_pid"),
                 two = example("drive_pid", {{"/signals/blocks/1/proportional", "1.5"}}),
                 start = example("drive_pid", {{"/signals/blocks/1/initial_integral", "0.1"}});
  const Stepper first(one.system, one.options);
  Stepper other(two.system, two.options), begun_elsewhere(start.system, start.options);
  EXPECT_TRUE(names(refusal(first, other), "the block \""));
  EXPECT_EQ(refusal(first, begun_elsewhere), "");
}

TEST(SnapshotIdentity, ManyDifferencesAreCounted) {
  const Scenario scenario = example("published_douglas_rachford"),
                 other_masses = example("published_douglas_rachford",
                                        {{"/subsystems/0/parameters/mass_kg", "9"},
                                         {"/subsystems/1/parameters/mass_kg", "9"}});
  StepperOptions options = plain_options();
  options.step_s = 0.02;
  options.certify = Certify::none;
  options.method.waves().iterations = 6;
  options.method.waves().tolerance = 1e-9;
  options.method.waves().relaxation = 1.1;
  const Stepper one(scenario.system, plain_options());
  Stepper other(other_masses.system, options);
  const std::string told = refusal(one, other);
  EXPECT_TRUE(names(told, "part \"A\": mass_kg is 9 here"));
  EXPECT_TRUE(names(told, "; and "));
  EXPECT_TRUE(names(told, " more."));
}

}  // namespace
}  // namespace portwave::test_snapshot_identity
