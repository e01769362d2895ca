#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

#include "support/files/temporary_folder.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_scenario {
namespace {

using testing::base_scenario;
using testing::base_text;
using testing::edited;
using testing::example_files;
using testing::Json;
using testing::parse;
using testing::replaced;
using testing::TemporaryFolder;
using testing::write_text;

Scenario parse_edited(const std::string& edits) {
  return parse(edited(base_scenario(), Json::parse(edits)).dump());
}

const Part& part_of(const Scenario& scenario, const std::string& name) {
  const int index = scenario.system.find_part(name);
  if (index < 0) throw std::logic_error("no part " + name);
  return scenario.system.parts()[static_cast<std::size_t>(index)];
}

std::size_t scalar_port(const Scenario& scenario, const std::string& path) {
  const auto [part, port] = scenario.system.find_port(path);
  if (part < 0) throw std::logic_error("no port " + path);
  return static_cast<std::size_t>(scenario.system.first_scalar_port(part, port));
}

Json oscillator(const std::string& name, const std::string& parameters, bool allow_active) {
  return {{"name", name},
          {"type", "linear_oscillator"},
          {"parameters", Json::parse(parameters)},
          {"allow_active", allow_active}};
}

TEST(Scenario, PartsOfEqualParametersShareTheirPhysics) {
  Json scenario = base_scenario();
  const std::string parameters = R"({"mass_kg": 4, "stiffness_N_per_m": 50})";
  scenario["subsystems"] = {
      oscillator("A", parameters, false), oscillator("B", parameters, false),
      oscillator("stiffer", R"({"mass_kg": 4, "stiffness_N_per_m": 51})", false),
      oscillator("active", parameters, true)};
  scenario["subsystems"][1]["initial_state"] = {1.0, 2.0};
  scenario["couplings"] = Json::array();
  for (const char* name : {"A", "B", "stiffer", "active"}) {
    scenario["couplings"].push_back(
        {{"kind", "free"}, {"ports", {name + std::string(".coupling")}}});
  }
  scenario["method"] = {{"impedance", {{"kind", "uniform"}, {"value", 1.0}}}};
  scenario.erase("outputs");
  const Scenario built = parse(scenario.dump());
  const auto physics = [&](const char* name) { return part_of(built, name).component.get(); };
  EXPECT_EQ(physics("A"), physics("B"));
  EXPECT_NE(physics("A"), physics("stiffer"));
  EXPECT_NE(physics("A"), physics("active"));
  EXPECT_TRUE(physics("active")->is_active());
  EXPECT_EQ(part_of(built, "A").initial_state, (std::vector<double>{0.0, 0.0}));
  EXPECT_EQ(part_of(built, "B").initial_state, (std::vector<double>{1.0, 2.0}));
}

TEST(Scenario, HoldsWhatTheFileSays) {
  const Scenario scenario = parse(base_text());
  EXPECT_EQ(scenario.name, "base");
  EXPECT_EQ(scenario.steps, 100);
  EXPECT_EQ(scenario.recording.every, 2);
  EXPECT_EQ(scenario.options.step_s, 0.01);
  EXPECT_EQ(scenario.options.method.waves().iterations, 20);
  EXPECT_EQ(scenario.options.method.waves().tolerance, 0.0);
  EXPECT_EQ(scenario.options.method.waves().energy_tolerance_J, 0.0);
  EXPECT_FALSE(scenario.options.method.waves().tolerance_per_part);
  EXPECT_EQ(scenario.options.method.waves().relaxation, 1.0);
  EXPECT_EQ(scenario.options.method.waves().acceleration, 4);
  EXPECT_FALSE(scenario.options.method.waves().guard);
  EXPECT_EQ(scenario.options.method.waves().tank.initial_J, 0.5);
  EXPECT_EQ(scenario.options.method.waves().tank.initial_fraction, 0.01);
  EXPECT_EQ(scenario.options.method.waves().tank.cap_J, 20.0);
  ASSERT_EQ(scenario.system.parts().size(), 5U);  // four and the resistor
  EXPECT_EQ(part_of(scenario, "A").component->signature().type, "duffing_oscillator");
  EXPECT_EQ(part_of(scenario, "motor").component->signature().ports[1].domain, Domain::rotation);
  EXPECT_TRUE(part_of(scenario, "motor.terminals").is_termination);
  EXPECT_EQ(scenario.system.junctions().size(), 4U);
  ASSERT_EQ(scenario.recording.quantities.size(), 3U);
  EXPECT_EQ(scenario.recording.quantities[0].label, "A.q1");
  EXPECT_EQ(scenario.recording.quantities[1].kind, Quantity::Kind::effort);
  EXPECT_EQ(scenario.recording.quantities[2].kind, Quantity::Kind::storage);
}

TEST(Scenario, TakesAnEnergyTolerance) {
  const Scenario scenario = parse_edited(R"([["/method/energy_tolerance_J", 1e-9]])");
  EXPECT_EQ(scenario.options.method.waves().energy_tolerance_J, 1e-9);
  EXPECT_EQ(scenario.options.method.waves().tolerance, 0.0);
}

// The base with this in place of its "method".
WaveCoupling method_of(const std::string& method) {
  Json scenario = base_scenario();
  scenario["method"] = Json::parse(method);
  return parse(scenario.dump()).options.method.waves();
}

TEST(Scenario, AMethodMayChooseEverything) {
  for (const char* text :
       {R"({"kind": "auto"})", R"({"kind": "auto", "impedance": {"kind": "auto"}})"}) {
    const WaveCoupling method = method_of(text);
    EXPECT_EQ(method.kind, WaveUpdate::automatic) << text;
    EXPECT_EQ(method.impedance_kind, ImpedanceKind::automatic) << text;
    EXPECT_EQ(method.tolerance, 1e-10) << text;
    EXPECT_EQ(method.iterations, 100) << text;
    EXPECT_TRUE(method.guard) << text;
  }
}

TEST(Scenario, AMethodWithoutAKindChoosesUnlessImpedancesAreGiven) {
  EXPECT_EQ(method_of("{}").kind, WaveUpdate::automatic);
  EXPECT_EQ(method_of("{}").tolerance, 1e-10);
  EXPECT_EQ(method_of(R"({"iterations": 7})").iterations, 7);
  EXPECT_EQ(method_of(R"({"iterations": 7})").kind, WaveUpdate::automatic);
  EXPECT_EQ(method_of(R"({"impedance": {"kind": "uniform", "value": 2}})").kind,
            WaveUpdate::douglas_rachford);
}

TEST(Scenario, AToleranceOfOnesOwnReplacesThatOfAuto) {
  EXPECT_EQ(method_of(R"({"kind": "auto", "tolerance": 0})").tolerance, 0.0);
  EXPECT_EQ(method_of(R"({"kind": "auto", "tolerance": 1e-6})").tolerance, 1e-6);
  const WaveCoupling by_energy = method_of(R"({"kind": "auto", "energy_tolerance_J": 1e-9})");
  EXPECT_EQ(by_energy.tolerance, 0.0);
  EXPECT_EQ(by_energy.energy_tolerance_J, 1e-9);
  EXPECT_EQ(method_of(R"({"impedance": {"kind": "auto"}})").tolerance, 0.0);  // control
}

TEST(Scenario, EveryKindOfMethodTakesEveryRuleOfImpedance) {
  const std::map<std::string, ImpedanceKind> rules = {{"fne", ImpedanceKind::fne},
                                                      {"matched", ImpedanceKind::matched},
                                                      {"leaf", ImpedanceKind::leaf},
                                                      {"adapted", ImpedanceKind::adapted},
                                                      {"auto", ImpedanceKind::automatic}};
  const std::map<std::string, WaveUpdate> kinds = {
      {"douglas-rachford", WaveUpdate::douglas_rachford},
      {"peaceman-rachford", WaveUpdate::peaceman_rachford}};
  for (const auto& [kind, expected] : kinds) {
    for (const auto& [rule, impedance] : rules) {
      const WaveCoupling method =
          method_of(R"({"kind": ")" + kind + R"(", "impedance": {"kind": ")" + rule + R"("}})");
      EXPECT_EQ(method.kind, expected) << kind << " " << rule;
      EXPECT_EQ(method.impedance_kind, impedance) << kind << " " << rule;
      EXPECT_EQ(method.retune_factor, 2.0) << kind << " " << rule;
      EXPECT_EQ(method.tolerance, 0.0) << kind << " " << rule;
    }
  }
}

TEST(Scenario, TheEdgesOfTheMethodsRangesAreInside) {
  const auto tuned = [](const std::string& more) {
    return method_of(R"({"kind": "peaceman-rachford", )" + more + "}");
  };
  const std::string matched = R"("impedance": {"kind": "matched")";
  EXPECT_EQ(tuned(matched + "}, \"relaxation\": 1").relaxation, 1.0);
  EXPECT_EQ(tuned(matched + ", \"retune_factor\": 0}").retune_factor, 0.0);
  EXPECT_EQ(tuned(matched + ", \"retune_factor\": 1.01}").retune_factor, 1.01);
  EXPECT_EQ(tuned(matched + "}, \"acceleration\": 10").acceleration, 10);
  const WaveCoupling empty =
      tuned(matched + R"(}, "tank": {"initial_J": 0, "initial_fraction": 0, "cap_J": 0})");
  EXPECT_EQ(empty.tank.initial_J, 0.0);
  EXPECT_EQ(empty.tank.cap_J, 0.0);
}

TEST(Scenario, TheExamplesOfTwoOscillatorsDifferInTheMethodOnly) {
  const auto example = [](const char* name) {
    return load_scenario(testing::source_folder() / "examples" / name);
  };
  const Scenario published = example("published_douglas_rachford.json");
  const Scenario automatic = example("two_oscillators.json");
  EXPECT_EQ(published.options.method.kind(), WaveUpdate::douglas_rachford);
  EXPECT_FALSE(published.options.method.waves().guard);
  EXPECT_EQ(automatic.options.method.kind(), WaveUpdate::automatic);
  EXPECT_TRUE(automatic.options.method.waves().guard);
  EXPECT_EQ(published.steps, automatic.steps);
  for (const char* name : {"A", "B"}) {
    EXPECT_EQ(part_of(published, name).initial_state, part_of(automatic, name).initial_state)
        << name;
    EXPECT_EQ(part_of(published, name).component->signature().type,
              part_of(automatic, name).component->signature().type);
  }
}

TEST(Scenario, EveryOptionalKeyHasItsDefault) {
  const Scenario scenario = parse_edited(R"([
    ["/description"], ["/outputs"], ["/method/kind"], ["/method/iterations"],
    ["/method/tolerance"], ["/method/tolerance_per_part"], ["/method/relaxation"],
    ["/method/acceleration"], ["/method/guard"], ["/method/tank"], ["/method/initial_waves"],
    ["/method/impedance", {"kind": "uniform", "value": 0.4}],
    ["/subsystems/0/initial_state"], ["/subsystems/0/inputs"]])");
  const WaveCoupling defaults;
  const WaveCoupling& method = scenario.options.method.waves();
  EXPECT_EQ(method.kind, defaults.kind);
  EXPECT_EQ(method.iterations, defaults.iterations);
  EXPECT_EQ(method.tolerance, defaults.tolerance);
  EXPECT_EQ(method.energy_tolerance_J, defaults.energy_tolerance_J);
  EXPECT_EQ(method.tolerance_per_part, defaults.tolerance_per_part);
  EXPECT_EQ(method.relaxation, defaults.relaxation);
  EXPECT_EQ(method.acceleration, defaults.acceleration);
  EXPECT_EQ(method.impedance_kind, ImpedanceKind::given);
  EXPECT_EQ(method.impedance, std::vector<double>{0.4});
  EXPECT_TRUE(method.guard);
  EXPECT_FALSE(method.tank.initial_J);
  EXPECT_EQ(method.tank.initial_fraction, 0.0);
  EXPECT_TRUE(std::isinf(method.tank.cap_J));
  EXPECT_TRUE(method.initial_waves.empty());
  EXPECT_EQ(scenario.recording.every, 1);
  EXPECT_EQ(part_of(scenario, "A").initial_state, (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE(part_of(scenario, "A").input_is_driven[0]);

  std::vector<std::string> labels;
  for (const Quantity& quantity : scenario.recording.quantities) labels.push_back(quantity.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"A.q1", "A.v1", "A.delta", "B.q2", "B.v2",
                                              "motor.flux", "motor.momentum", "C.q1", "C.v1",
                                              "C.q2", "C.v2", "C.right_elongation"}));
}

TEST(Scenario, TheEndIsAWholeNumberOfSteps) {
  for (const double step_s : {1e-6, 0.001, 0.01, 0.1, 1.0 / 3.0, 0.7, 60.0}) {
    for (const std::int64_t steps : {1LL, 2LL, 3LL, 7LL, 1000LL, 999'983LL, 12'345'678LL}) {
      Json scenario = base_scenario();
      scenario["time"] = {{"step_s", step_s}, {"end_s", step_s * static_cast<double>(steps)}};
      EXPECT_EQ(parse(scenario.dump()).steps, steps) << "step " << step_s;
      scenario["time"] = {{"step_s", step_s}, {"steps", steps}};
      EXPECT_EQ(parse(scenario.dump()).steps, steps) << "step " << step_s;
    }
  }
}

TEST(ScenarioControl, AnEndBetweenStepsIsRefused) {
  for (const double step_s : {1e-6, 0.01, 1.0 / 3.0, 60.0}) {
    for (const double steps : {0.5, 1.5, 1000.01, 999'983.999}) {
      Json scenario = base_scenario();
      scenario["time"] = {{"step_s", step_s}, {"end_s", step_s * steps}};
      EXPECT_EQ(testing::issues_of(scenario.dump()).size(), 1U) << step_s << " " << steps;
    }
  }
}

TEST(Scenario, WholeNumbersMayBeWrittenInAnyWay) {
  for (const std::string number : {"20", "20.0", "2e1", "200e-1"}) {
    const std::string text =
        replaced(base_text(), "\"iterations\": 20", "\"iterations\": " + number);
    EXPECT_EQ(parse(text).options.method.waves().iterations, 20) << number;
  }
}

TEST(Scenario, StatesByNameAndInOrderAreTheSame) {
  const Scenario by_name = parse(base_text());
  const Scenario in_order = parse_edited(R"([["/subsystems/0/initial_state", [0.4, 0, -0.4]]])");
  EXPECT_EQ(part_of(by_name, "A").initial_state, (std::vector<double>{0.4, 0.0, -0.4}));
  EXPECT_EQ(part_of(in_order, "A").initial_state, part_of(by_name, "A").initial_state);
}

TEST(Scenario, MatricesByRowsAndByEntriesAreTheSame) {
  const Scenario rows = parse_edited(R"([["/subsystems/2/parameters/Q", [[2, 0], [0, 10]]],
                                         ["/couplings/3/F", [[0, 0], [1, 1]]]])");
  const Scenario entries = parse_edited(R"([
    ["/subsystems/2/parameters/Q", {"entries": [[1, 1, 10], [0, 0, 2]]}],
    ["/subsystems/2/parameters/J", {"entries": [[0, 1, -0.2], [1, 0, 0.2]]}],
    ["/couplings/3/E", {"entries": [[0, 0, 1], [0, 1, -1]]}]])");
  const auto motor = [](const Scenario& scenario) -> const LinearPortHamiltonian& {
    return dynamic_cast<const LinearPortHamiltonian&>(*part_of(scenario, "motor").component);
  };
  EXPECT_TRUE(motor(rows).Q().toDense() == motor(entries).Q().toDense());
  EXPECT_TRUE(motor(rows).structure().J.toDense() == motor(entries).structure().J.toDense());
  EXPECT_TRUE(rows.system.junctions()[3].dirac.E == entries.system.junctions()[3].dirac.E);
  EXPECT_TRUE(rows.system.junctions()[3].dirac.F == entries.system.junctions()[3].dirac.F);
}

TEST(Scenario, AnEmptyArrayIsAMatrixWithoutColumns) {
  const std::string closed = R"([
    ["/subsystems/2/parameters/ports", []], ["/subsystems/2/parameters/inputs", []],
    ["/subsystems/2/inputs"], ["/method/impedance/ports", {}], ["/outputs/observe/2", "motor.flux"],
    ["/couplings", [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]},
                    {"kind": "free", "ports": ["C.left"]}, {"kind": "free", "ports": ["C.right"]}]],
    ["/subsystems/2/parameters/G", )";
  for (const std::string G : {"[]", "[[], []]"}) {
    EXPECT_EQ(
        part_of(parse_edited(closed + G + "]]"), "motor").port_hamiltonian()->structure().G.cols(),
        0)
        << G;
  }
  EXPECT_THROW(parse_edited(R"([["/subsystems/2/parameters/G", []]])"), ScenarioError);  // control
}

/// All matrices of a part that is given by them.
std::vector<Eigen::MatrixXd> matrices_of(const Subsystem& part) {
  const Structure& s = part.structure();
  const LinearForm form = part.linear_form();
  std::vector<Eigen::MatrixXd> all;
  for (const SparseMatrix* m : {&s.J, &s.R, &s.G, &s.P, &s.S, &s.N, form.Q, form.E}) {
    all.push_back(m == nullptr ? Eigen::MatrixXd() : m->toDense());
  }
  return all;
}

// What `portwave list` shows as the default may be written, for every optional matrix of every
// type.
TEST(Scenario, AnEmptyOptionalMatrixIsItsDefault) {
  int matrices = 0;
  for (const std::string type : {"linear_port_hamiltonian", "descriptor_port_hamiltonian"}) {
    Json scenario = Json::parse(R"({
      "name": "empty", "time": {"step_s": 0.1, "steps": 1},
      "subsystems": [{"name": "a", "parameters": {
        "states": ["x", "y"], "ports": [{"name": "p", "causality": "effort_in"}],
        "J": [[0, 1], [-1, 0]]}}],
      "couplings": [{"kind": "free", "ports": ["a.p"]}], "method": {"kind": "auto"}})");
    scenario["subsystems"][0]["type"] = type;
    Json& parameters = scenario["subsystems"][0]["parameters"];
    const Json identity = Json::parse("[[1, 0], [0, 1]]");
    const bool is_descriptor = type == "descriptor_port_hamiltonian";
    parameters[is_descriptor ? "E" : "Q"] = identity;
    parameters[is_descriptor ? "B" : "G"] = Json::parse("[[1], [0]]");
    const auto matrices_now = [&] {
      return matrices_of(*part_of(parse(scenario.dump()), "a").port_hamiltonian());
    };
    const auto by_default = matrices_now();
    for (const ParameterInfo& info : find_part_type(type)->parameters) {
      if (info.kind != ParameterKind::matrix) continue;
      const Json before = parameters.value(info.name, Json());
      for (const char* empty : {"[]", R"({"entries": []})"}) {
        parameters[info.name] = Json::parse(empty);
        if (info.default_value) {
          const auto given = matrices_now();
          for (std::size_t m = 0; m < given.size(); ++m) {
            EXPECT_TRUE(given[m] == by_default[m]) << type << " " << info.name << " " << empty;
          }
          ++matrices;
        } else if (empty == std::string("[]")) {  // control: a required one has to have its shape
          EXPECT_THROW(matrices_now(), ScenarioError) << type << " " << info.name;
        }
      }
      if (before.is_null()) {
        parameters.erase(info.name);
      } else {
        parameters[info.name] = before;
      }
    }
  }
  EXPECT_EQ(matrices, 2 * (4 + 2));  // R, P, S, N and R, Q, in two ways each
}

TEST(Scenario, SignalsFollowTheirFormulas) {
  const Scenario scenario = parse(base_text());
  for (const double t : {0.0, 0.1, 0.25, 0.7, 2.0}) {
    EXPECT_EQ(part_of(scenario, "A").inputs[0](t), 1.0);
    const double sine = 0.5 + 2.0 * std::sin(2.0 * std::numbers::pi * 2.0 * t + 0.1);
    EXPECT_NEAR(part_of(scenario, "B").inputs[0](t), sine, 1e-14) << t;
    EXPECT_NEAR(part_of(scenario, "motor").inputs[0](t), std::min(2.0 * t, 1.0), 1e-15) << t;
  }
}

TEST(Scenario, InputsInShortAreTheirLongForms) {
  const auto input = [](const std::string& given) {
    const Scenario scenario = parse_edited(R"([["/subsystems/0/inputs/force", )" + given + "]]");
    return part_of(scenario, "A").inputs[0];
  };
  EXPECT_EQ(input("-2.5")(0.3), -2.5);
  EXPECT_EQ(input("\"3*t - 1\"")(0.3),
            input(R"({"kind": "expression", "expression": "3*t - 1"})")(0.3));
  EXPECT_NE(input("\"3*t - 1\"")(0.3), input("\"3*t - 1\"")(0.4));
}

TEST(Scenario, ATableFileMeansItsKnots) {
  const TemporaryFolder folder;
  const std::vector<std::string> spellings = {"time_s,value\n0,0\n0.5,1\n", "0,0\n0.5,1",
                                              "time_s,force_N\r\n0,0\r\n0.5,1\r\n",
                                              "\xEF\xBB\xBFtime_s,value\n\n 0 , 0 \n5e-1,1.0\n\n"};
  const Json scenario = edited(base_scenario(), Json::parse(R"([
    ["/subsystems/2/inputs/load", {"kind": "table", "file": "load.csv"}]])"));
  write_text(folder / "scenario.json", scenario.dump());
  for (const std::string& spelling : spellings) {
    write_text(folder / "load.csv", spelling);
    const Scenario loaded = load_scenario(folder / "scenario.json");
    for (const double t : {-1.0, 0.0, 0.125, 0.3, 0.5, 9.0}) {
      EXPECT_EQ(part_of(loaded, "motor").inputs[0](t), std::clamp(2.0 * t, 0.0, 1.0)) << spelling;
    }
  }
}

TEST(Scenario, ImpedancesAreByPort) {
  const Scenario scenario = parse(base_text());
  std::vector<double> expected(scenario.system.scalar_ports().size(), 0.4);
  expected[scalar_port(scenario, "motor.terminals")] = 0.6;
  expected[scalar_port(scenario, "motor.terminals.resistor")] = 0.6;  // as the port that it ends
  expected[scalar_port(scenario, "C.left")] = 2.0;
  EXPECT_EQ(scenario.options.method.waves().impedance, expected);

  const Scenario own = parse_edited(
      R"([["/method/impedance/ports", {"motor.terminals.resistor": 3, "motor.terminals": 5}]])");
  EXPECT_EQ(own.options.method.waves().impedance[scalar_port(own, "motor.terminals")], 5.0);
  EXPECT_EQ(own.options.method.waves().impedance[scalar_port(own, "motor.terminals.resistor")],
            3.0);
}

TEST(Scenario, PortsOfSeveralComponentsTakeANumberOrOneEach) {
  const std::string two_components = R"([
    ["/subsystems/2/parameters/ports/0/dimension", 2],
    ["/subsystems/2/parameters/G", [[1, 0, 0, 0], [0, 1, 1, 1]]],
    ["/method/impedance/ports", {"motor.terminals": [0.6, 0.7]}],
    ["/method/initial_waves", {"motor.terminals": 0.5, "B.coupling": -1}]])";
  const Scenario scenario = parse_edited(two_components);
  const std::size_t first = scalar_port(scenario, "motor.terminals");
  EXPECT_EQ(scenario.options.method.waves().impedance[first], 0.6);
  EXPECT_EQ(scenario.options.method.waves().impedance[first + 1], 0.7);
  std::vector<double> waves(scenario.system.scalar_ports().size(), 0.0);
  waves[first] = waves[first + 1] = 0.5;
  waves[scalar_port(scenario, "B.coupling")] = -1.0;
  EXPECT_EQ(scenario.options.method.waves().initial_waves, waves);
}

TEST(Scenario, EveryKindOfCouplingIsBuilt) {
  const std::vector<std::string> kinds = {
      R"({"kind": "connection", "ports": ["C.left", "C.right"]})",
      R"({"kind": "common_effort", "ports": ["C.left", "C.right"]})",
      R"({"kind": "common_flow", "ports": ["C.left", "C.right"]})",
      R"({"kind": "transformer", "ports": ["C.left", "C.right"], "ratio": -2})",
      R"({"kind": "gyrator", "ports": ["C.left", "C.right"], "ratio": 3})",
      R"({"kind": "skew_gain", "ports": ["C.left", "C.right"], "gain": [[0, 1], [-1, 0]]})"};
  const std::vector<DiracStructure> expected = {
      DiracStructure::connection(),
      DiracStructure::common_effort(2),
      DiracStructure::common_flow(2),
      DiracStructure::transformer(-2),
      DiracStructure::gyrator(3),
      DiracStructure::skew_gain((Eigen::Matrix2d() << 0, 1, -1, 0).finished(),
                                {Causality::effort_in, Causality::flow_in})};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Scenario scenario = parse_edited(R"([["/couplings/3", )" + kinds[i] + "]]");
    const DiracStructure& dirac = scenario.system.junctions()[3].dirac;
    EXPECT_TRUE(dirac.E == expected[i].E && dirac.F == expected[i].F) << kinds[i];
  }
  const Scenario ends = parse_edited(R"([["/couplings/3", {"kind": "free", "ports": ["C.left"]}],
                                         ["/couplings/4", {"kind": "fixed", "ports": ["C.right"]}]])");
  EXPECT_EQ(ends.system.junctions().size(), 5U);
}

TEST(Scenario, AllowActiveLetsADamperFeedEnergy) {
  const Scenario scenario = parse_edited(R"([["/subsystems/1/allow_active", true],
                                             ["/subsystems/1/parameters/damping_Ns_per_m", -1]])");
  EXPECT_TRUE(part_of(scenario, "B").component->is_active());
}

TEST(Scenario, OverridesReplaceAndAddValues) {
  const std::vector<Override> overrides = {{"/method/iterations", "35"},
                                           {"/name", "renamed"},
                                           {"/subsystems/0/initial_state/v1", "0.25"},
                                           {"/outputs/observe", "[\"A.v1\"]"},
                                           {"/subsystems/1/parameters/mass_kg", "5"},
                                           {"/subsystems/1/parameters/mass_kg", "6"},
                                           {"/method/impedance/ports/C.right", "0.1"}};
  const Scenario scenario = parse(base_text(), overrides);
  EXPECT_EQ(scenario.options.method.waves().iterations, 35);
  EXPECT_EQ(scenario.name, "renamed");
  EXPECT_EQ(part_of(scenario, "A").initial_state, (std::vector<double>{0.4, 0.25, -0.4}));
  ASSERT_EQ(scenario.recording.quantities.size(), 1U);
  EXPECT_EQ(scenario.recording.quantities[0].label, "A.v1");
  const std::vector<double> moving = {0.0, 1.0};
  EXPECT_EQ(part_of(scenario, "B").port_hamiltonian()->storage(moving.data()),
            3.0);  // the last one counts
  EXPECT_EQ(scenario.options.method.waves().impedance[scalar_port(scenario, "C.right")], 0.1);
}

TEST(Scenario, AByteOrderMarkAndOtherLineEndsChangeNothing) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : base_text()) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Scenario scenario = parse(text);
  EXPECT_EQ(scenario.options.method.waves().impedance,
            parse(base_text()).options.method.waves().impedance);
}

TEST(Scenario, ALongChainOfPartsLoads) {
  constexpr int kParts = 5000;
  Json scenario = base_scenario();
  scenario["subsystems"] = Json::array();
  scenario["couplings"] = Json::array();
  for (int i = 0; i < kParts; ++i) {
    const std::string name = "part_" + std::to_string(i);
    scenario["subsystems"].push_back({{"name", name},
                                      {"type", "linear_oscillator"},
                                      {"parameters", {{"mass_kg", 1}, {"stiffness_N_per_m", 1}}}});
    scenario["couplings"].push_back(
        {{"kind", "free"}, {"ports", Json::array({name + ".coupling"})}});
  }
  scenario["method"] = {{"impedance", {{"kind", "uniform"}, {"value", 1}}}};
  scenario.erase("outputs");
  EXPECT_EQ(parse(scenario.dump()).system.parts().size(), static_cast<std::size_t>(kParts));
}

TEST(Scenario, EveryExampleLoadsAndRuns) {
  const auto files = example_files();
  EXPECT_GE(files.size(), 3U);
  for (const auto& file : files) {
    const Scenario scenario = load_scenario(file);
    EXPECT_EQ(scenario.name, file.stem().string());
    EXPECT_FALSE(scenario.recording.quantities.empty()) << file;
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(std::min<std::int64_t>(scenario.steps, 50));
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << file;
    const WaveCoupling* waves = scenario.options.method.as<WaveCoupling>();
    if (waves != nullptr && waves->tolerance > 0.0) {
      EXPECT_EQ(stepper.iterations().not_converged, 0) << file;
    }
  }
}

TEST(Scenario, TheRingIsOneIslandOfThreeDomains) {
  const Scenario ring =
      load_scenario(testing::source_folder() / "examples" / "ring_junctions.json");
  EXPECT_EQ(ring.system.island_count(), 1);
  std::set<Domain> domains;
  for (const Part& part : ring.system.parts()) {
    for (const Port& port : part.component->signature().ports) domains.insert(port.domain);
  }
  EXPECT_EQ(domains, (std::set<Domain>{Domain::translation, Domain::rotation, Domain::electrical}));
}

}  // namespace
}  // namespace portwave::test_scenario
