#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::test_catalogue {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const PartType& type_named(std::string_view name) {
  const PartType* type = find_part_type(name);
  if (type == nullptr) throw std::logic_error("no such part type");
  return *type;
}

std::string text_of(const Issues& issues) {
  return issues.empty() ? "" : ConfigError(issues).what();
}

std::string defects(std::string_view type, Parameters parameters, bool allow_active = false) {
  try {
    make_part(type, std::move(parameters), allow_active);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Parameters with(Parameters parameters, const std::string& name, ParameterValue value) {
  parameters.insert_or_assign(name, std::move(value));
  return parameters;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

TEST(Catalogue, FindsItsTypesByName) {
  for (const std::string& name : type_names()) {
    ASSERT_NE(find_part_type(name), nullptr) << name;
    EXPECT_EQ(find_part_type(name)->name, name) << "a name is taken twice";
  }
  for (const std::string name : {"duffing_oscillator", "duffing_node", "linear_oscillator",
                                 "mass_spring_damper_chain", "linear_port_hamiltonian"}) {
    EXPECT_NE(find_part_type(name), nullptr) << name;
  }
  EXPECT_EQ(find_part_type("no_such_type"), nullptr);
}

/// How a unit is written at the end of a name: "N s/m" as "Ns_per_m", "N/m^3" as "N_per_m3".
std::string as_suffix(const std::string& unit) {
  std::string suffix = "_";
  for (const char c : unit) {
    if (c == '/') {
      suffix += "_per_";
    } else if (c != ' ' && c != '^') {
      suffix += c;
    }
  }
  return suffix;
}

class CatalogueType : public testing::TestWithParam<std::string> {
 protected:
  const PartType& type() const { return type_named(GetParam()); }
};

TEST_P(CatalogueType, DescribesItselfCompletely) {
  EXPECT_FALSE(type().summary.empty());
  EXPECT_FALSE(type().equations.empty());
  std::set<std::string> names;
  for (const ParameterInfo& info : type().parameters) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " is listed twice";
    EXPECT_FALSE(info.summary.empty()) << info.name;
    if (info.kind != ParameterKind::texts) {
      EXPECT_EQ(info.kind == ParameterKind::choice, !info.choices.empty()) << info.name;
    }
    EXPECT_TRUE(is_plain_name(info.name)) << info.name;
    if (info.unit.empty()) continue;
    EXPECT_TRUE(info.name.ends_with(as_suffix(info.unit))) << info.name << " in " << info.unit;
  }
  for (const auto& [name, value] : type().example) EXPECT_TRUE(names.contains(name)) << name;
}

TEST_P(CatalogueType, BuildsItsExample) {
  const std::unique_ptr<Component> part = make_part(type().name, type().example);
  const Signature& signature = part->signature();
  EXPECT_EQ(signature.type, type().name);
  EXPECT_GT(signature.wave_size(), 0);
  EXPECT_EQ(part->default_state().size(), signature.states.size());
  EXPECT_FALSE(part->is_active());
  EXPECT_EQ(text_of(validate(part->port_hamiltonian()->structure(), signature.state_size(),
                             signature.wave_size() + signature.input_size())),
            "");
  for (const StateVariable& state : signature.states) EXPECT_TRUE(is_plain_name(state.name));
  for (const Port& port : signature.ports) EXPECT_TRUE(is_plain_name(port.name)) << port.name;
  for (const ExternalInput& input : signature.inputs) EXPECT_TRUE(is_plain_name(input.name));
}

TEST_P(CatalogueType, DefaultsPassTheirOwnCheck) {
  Parameters parameters = type().example;
  ASSERT_EQ(text_of(check_parameters(type(), parameters, false)), "");
  EXPECT_EQ(parameters.size(), type().parameters.size() + 1)
      << "defaults and allow_active filled in";
  EXPECT_EQ(text_of(check_parameters(type(), parameters, false)), "");
}

TEST_P(CatalogueType, RequiredParametersAreMissed) {
  Parameters none;
  std::set<std::string> expected;
  for (const ParameterInfo& info : type().parameters) {
    if (!info.default_value) expected.insert("/" + info.name);
  }
  std::set<std::string> reported;
  for (const Issue& issue : check_parameters(type(), none, false)) {
    EXPECT_EQ(issue.what.rfind("is required: ", 0), 0U) << issue.what;
    reported.insert(issue.where);
  }
  EXPECT_EQ(reported, expected);
  EXPECT_TRUE(!expected.empty() || type().parameters.empty());
}

TEST_P(CatalogueType, WrongKindsAreNamed) {
  for (const ParameterInfo& info : type().parameters) {
    // A list of inputs is no number, no text and no matrix; a truth value is no list of inputs.
    const ParameterValue wrong = info.kind == ParameterKind::inputs
                                     ? ParameterValue(true)
                                     : ParameterValue(std::vector<ExternalInput>{});
    const std::string text = defects(type().name, with(type().example, info.name, wrong));
    EXPECT_EQ(text.rfind("/" + info.name + ": expected ", 0), 0U) << text;
  }
}

TEST_P(CatalogueType, NumbersOutsideTheirRangeAreNamed) {
  for (const ParameterInfo& info : type().parameters) {
    if (info.kind != ParameterKind::number) continue;
    std::vector<double> outside = {kNaN, std::numeric_limits<double>::infinity()};
    if (std::isfinite(info.minimum)) outside.push_back(info.minimum - 1.0);
    if (std::isfinite(info.maximum)) outside.push_back(info.maximum + 1.0);
    for (const double number : outside) {
      const std::string text = defects(type().name, with(type().example, info.name, number));
      EXPECT_EQ(text.rfind("/" + info.name + ": must be ", 0), 0U) << text;
    }
    if (!std::isfinite(info.minimum)) continue;
    const std::string at_bound =
        defects(type().name, with(type().example, info.name, info.minimum));
    EXPECT_EQ(at_bound.empty(), !info.minimum_excluded) << info.name << ": " << at_bound;
  }
}

TEST_P(CatalogueType, NegativeDampersNeedAllowActive) {
  for (const ParameterInfo& info : type().parameters) {
    if (!info.passive_only) continue;
    const Parameters parameters = with(type().example, info.name, -0.01);
    EXPECT_EQ(defects(type().name, parameters),
              "/" + info.name + ": must be >= 0 " + info.unit +
                  ", got -0.01; a part that may create energy must say allow_active");
    EXPECT_EQ(defects(type().name, parameters, true), "") << info.name;
    EXPECT_EQ(defects(type().name, with(parameters, "allow_active", true)), "") << info.name;
    EXPECT_TRUE(make_part(type().name, parameters, true)->is_active()) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CatalogueType, testing::ValuesIn(type_names()),
                         [](const auto& tested) { return tested.param; });

TEST(Parameters, MessagesSayWhatWasExpected) {
  const Parameters oscillator = type_named("linear_oscillator").example;
  const Parameters chain = type_named("mass_spring_damper_chain").example;
  const Parameters linear = type_named("linear_port_hamiltonian").example;
  struct Case {
    std::string type;
    Parameters parameters;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"linear_oscillator", with(oscillator, "mass_kg", 0.0), "/mass_kg: must be > 0 kg, got 0"},
      {"linear_oscillator", with(oscillator, "stiffness_N_per_m", -2.5),
       "/stiffness_N_per_m: must be >= 0 N/m, got -2.5"},
      {"linear_oscillator", with(oscillator, "mass_kg", kNaN), "/mass_kg: must be finite, got nan"},
      {"linear_oscillator", with(oscillator, "mass_kg", std::string("4")),
       "/mass_kg: expected a number, got \"4\""},
      {"linear_oscillator", with(oscillator, "mass", 1.0),
       "/mass: linear_oscillator has no such parameter.\nparameters: \"mass_kg\", "
       "\"stiffness_N_per_m\", \"damping_Ns_per_m\". Did you mean \"mass_kg\"?"},
      {"linear_oscillator",
       {{"mass_kg", 1.0}},
       "/stiffness_N_per_m: is required: stiffness k of the spring to ground [N/m]"},
      {"linear_oscillator", with(oscillator, "allow_active", 1.0),
       "/allow_active: expected true or false, got the number 1"},
      {"mass_spring_damper_chain", with(chain, "masses", 2.5),
       "/masses: expected an integer, got the number 2.5"},
      {"mass_spring_damper_chain", with(chain, "masses", 1e300),
       "/masses: expected an integer, got the number 1e+300"},
      {"mass_spring_damper_chain", with(chain, "masses", 0), "/masses: must be >= 1, got 0"},
      {"mass_spring_damper_chain", with(chain, "masses", 2'000'000),
       "/masses: must be <= 1000000, got 2000000"},
      {"mass_spring_damper_chain", with(chain, "left_end", std::string("sprign")),
       "/left_end: must be one of \"mass\", \"spring\", got \"sprign\". Did you mean \"spring\"?"},
      {"linear_port_hamiltonian", with(linear, "J", MatrixRows{{0.0, 1.0}, {-1.0}}),
       "/J/1: has 1 numbers, but row 0 has 2"},
      {"linear_port_hamiltonian", with(linear, "J", MatrixRows{{0.0, kNaN}, {0.0, 0.0}}),
       "/J/0/1: must be finite, got nan"},
      {"linear_port_hamiltonian", with(linear, "Q", MatrixEntries{{0, 0, 1.0}, {-1, 0, kNaN}}),
       "/Q/1: rows and columns count from 0, got (-1,0)\n/Q/1: must be finite, got nan"},
      {"linear_port_hamiltonian",
       with(linear, "states", std::vector<StateVariable>{{"flux", ""}, {"flux", ""}}),
       "/states/1/name: the name \"flux\" is already taken"},
      {"linear_port_hamiltonian", with(linear, "inputs", std::vector<ExternalInput>{{"a b", ""}}),
       "/inputs/0/name: must not contain dots, brackets, blanks, commas or quotes, got \"a b\""},
      {"linear_port_hamiltonian",
       with(linear, "ports",
            std::vector<Port>{{"", Causality::effort_in, Domain::generic, 1},
                              {"shaft", Causality::effort_in, Domain::rotation, 0}}),
       "/ports/0/name: must not be empty\n/ports/1/dimension: must be >= 1, got 0"},
  };
  for (const Case& c : cases) EXPECT_EQ(defects(c.type, c.parameters), c.message);
}

TEST(Parameters, UnknownTypesAreNamed) {
  const std::string text = defects("linear_oscilator", {});
  EXPECT_EQ(text.rfind("there is no part type \"linear_oscilator\". types: \"", 0), 0U) << text;
  EXPECT_TRUE(text.ends_with(". Did you mean \"linear_oscillator\"?")) << text;
  for (const std::string& name : type_names()) {
    EXPECT_NE(text.find("\"" + name + "\""), std::string::npos) << text;
  }
}

TEST(Parameters, WholeNumbersCountAsNumbersAndIntegers) {
  EXPECT_EQ(defects("linear_oscillator", {{"mass_kg", 4}, {"stiffness_N_per_m", 50}}), "");
  EXPECT_EQ(defects("mass_spring_damper_chain",
                    {{"masses", 3.0}, {"mass_kg", 1}, {"stiffness_N_per_m", 1}}),
            "");
}

TEST(Parameters, EveryDefectIsReported) {
  EXPECT_EQ(defects("mass_spring_damper_chain", {{"masses", 0},
                                                 {"mass_kg", -1.0},
                                                 {"damping_Ns_per_m", -1.0},
                                                 {"right_end", std::string("wall")}}),
            "/masses: must be >= 1, got 0\n"
            "/mass_kg: must be > 0 kg, got -1\n"
            "/stiffness_N_per_m: is required: springs k between neighbours [N/m]\n"
            "/damping_Ns_per_m: must be >= 0 N s/m, got -1; a part that may create energy must say "
            "allow_active\n"
            "/right_end: must be one of \"mass\", \"spring\", got \"wall\".");
}

TEST(Parameters, StructsAreCheckedLikeScenarios) {
  EXPECT_THROW(linear_oscillator({.mass_kg = 0.0}), ConfigError);
  EXPECT_THROW(duffing_node({.mass_kg = 0.0}), ConfigError);
  EXPECT_THROW(linear_oscillator({.damping_Ns_per_m = -1.0}), ConfigError);
  EXPECT_NO_THROW(linear_oscillator({.damping_Ns_per_m = -1.0, .allow_active = true}));
  EXPECT_THROW(mass_spring_damper_chain({.masses = 0}), ConfigError);
  EXPECT_THROW(make_resistor(-1.0, {}), ConfigError);
  EXPECT_THROW(make_resistor(kNaN, {}), ConfigError);
}

TEST(LinearPortHamiltonianType, ReportsAllBadMatrices) {
  Parameters parameters = type_named("linear_port_hamiltonian").example;
  parameters["J"] = MatrixRows{{0.0, 1.0}, {1.0, 0.0}};
  parameters["R"] = MatrixRows{{1.0}};
  parameters["G"] = MatrixEntries{{0, 0, 1.0}, {2, 0, 1.0}, {0, 3, 1.0}};
  parameters["Q"] = MatrixRows{{-1.0, 0.0}, {0.0, 1.0}};
  EXPECT_EQ(defects("linear_port_hamiltonian", parameters),
            "/R: must be 2×2 (states, square), got 1×1\n"
            "/G/1: (2,0) is outside the matrix, which is 2×3\n"
            "/G/2: (0,3) is outside the matrix, which is 2×3\n"
            "/J: J is not skew: J(0,1) = 1, J(1,0) = 1\n"
            "/Q: Q is not positive semidefinite: smallest eigenvalue -1 (block of flux)");
}

TEST(LinearPortHamiltonianType, RowsAndTripletsMeanTheSame) {
  const Parameters by_rows = type_named("linear_port_hamiltonian").example;
  Parameters by_triplets = by_rows;
  by_triplets["J"] = MatrixEntries{{0, 1, -0.1}, {0, 1, -0.1}, {1, 0, 0.2}};  // equal places add up
  by_triplets["Q"] = MatrixRows{{2.0, 0.0}, {0.0, 10.0}};
  const auto a = make_part("linear_port_hamiltonian", by_rows);
  const auto b = make_part("linear_port_hamiltonian", by_triplets);
  const double x[] = {0.3, -0.7};
  EXPECT_EQ(a->port_hamiltonian()->storage(x), b->port_hamiltonian()->storage(x));
  EXPECT_EQ(Eigen::MatrixXd(a->port_hamiltonian()->structure().J),
            Eigen::MatrixXd(b->port_hamiltonian()->structure().J));
}

TEST(LinearPortHamiltonianType, KeepsTheChosenStepMaps) {
  const Parameters example = type_named("linear_port_hamiltonian").example;
  for (const bool sparse : {false, true}) {
    const auto part =
        make_part("linear_port_hamiltonian",
                  with(example, "step_maps", std::string(sparse ? "sparse" : "dense")));
    EXPECT_EQ(dynamic_cast<const LinearPortHamiltonian&>(*part).uses_sparse_step_maps(), sparse);
  }
}

}  // namespace
}  // namespace portwave::test_catalogue
