// Methods without waves in scenario files.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/runtime/scenario/scenario.hpp>

#include "support/files/schema_checker.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_scenario_network_methods {
namespace {

using testing::Json;
using testing::SchemaChecker;

/// Two oscillators, with wave coupling.
Json pair() {
  return Json::parse(R"({
    "name": "pair",
    "time": {"step_s": 0.01, "steps": 10},
    "subsystems": [
      {"name": "chain", "type": "mass_spring_damper_chain",
       "parameters": {"masses": 2, "mass_kg": 0.5, "stiffness_N_per_m": 30,
                      "coupling_stiffness_N_per_m": 40}},
      {"name": "mass", "type": "linear_oscillator", "parameters": {"mass_kg": 2, "stiffness_N_per_m": 5},
       "initial_state": {"q2": 0.1}}
    ],
    "couplings": [{"kind": "free", "ports": ["chain.left"]},
                  {"kind": "connection", "ports": ["chain.right", "mass.coupling"]}],
    "method": {"kind": "douglas-rachford", "iterations": 7, "relaxation": 1.2, "guard": true,
               "impedance": {"kind": "uniform", "value": 0.3}}
  })");
}

Json pair_with(const char* method) {
  Json scenario = pair();
  scenario["method"] = Json::parse(method);
  return scenario;
}

CouplingMethod decoded(const char* method) {
  const Json scenario = pair_with(method);
  EXPECT_TRUE(SchemaChecker(scenario_schema()).accepts(scenario.dump())) << method;
  return testing::parse(scenario.dump()).options.method;
}

TEST(ScenarioNetworkMethods, AreDecodedInFull) {
  CouplingMethod m =
      decoded(R"({"kind": "strang", "coupling_flow": "low-rank", "split_dissipation": true})");
  EXPECT_EQ(m.kind(), SplittingKind::strang);
  EXPECT_EQ(m.splitting().coupling_flow, CouplingFlow::low_rank);
  EXPECT_TRUE(m.splitting().split_dissipation);

  m = decoded(R"({"kind": "impulse", "fast": ["mass"], "factor": 6})");
  EXPECT_EQ(m.kind(), SplittingKind::impulse);
  EXPECT_EQ(m.splitting().fast, std::vector<std::string>{"mass"});
  EXPECT_EQ(m.splitting().factor, 6);

  m = decoded(R"({"kind": "lions-mercier", "iterations": 9, "tolerance": 1e-8, "lambda": 1.5,
                  "mu": 2, "omega": 2.2, "alpha": 0.25, "window_steps": 5,
                  "integrator": "radau-iia", "metric": "identity"})");
  EXPECT_EQ(m.kind(), IterationKind::lions_mercier);
  EXPECT_EQ(m.dynamic().iterations, 9);
  EXPECT_EQ(m.dynamic().tolerance, 1e-8);
  EXPECT_EQ(m.dynamic().lambda, 1.5);
  EXPECT_EQ(m.dynamic().mu, 2.0);
  EXPECT_EQ(m.dynamic().omega, 2.2);
  EXPECT_EQ(m.dynamic().alpha, 0.25);
  EXPECT_EQ(m.dynamic().window_steps, 5);
  EXPECT_EQ(m.dynamic().integrator, Integrator::radau_iia);
  EXPECT_EQ(m.dynamic().metric, IterationMetric::identity);

  m = decoded(R"({"kind": "gauss-seidel", "iterations": 3, "tolerance": 1e-6, "window_steps": 2,
                  "integrator": "midpoint", "divergence_limit": 1.5})");
  EXPECT_EQ(m.kind(), IterationKind::gauss_seidel);
  EXPECT_EQ(m.dynamic().integrator, Integrator::midpoint);
  EXPECT_EQ(m.dynamic().divergence_limit, 1.5);
}

TEST(ScenarioNetworkMethods, HaveDefaults) {
  EXPECT_EQ(decoded(R"({"kind": "strang"})").splitting().coupling_flow, CouplingFlow::automatic);
  EXPECT_EQ(decoded(R"({"kind": "impulse", "fast": ["mass"]})").splitting().factor, 10);
  CouplingMethod m = decoded(R"({"kind": "lions-mercier"})");
  EXPECT_EQ(m.dynamic().iterations, 20);
  EXPECT_EQ(m.dynamic().tolerance, 0.0);
  EXPECT_FALSE(m.dynamic().lambda || m.dynamic().mu || m.dynamic().omega);
  EXPECT_EQ(m.dynamic().alpha, 0.5);
  m = decoded(R"({"kind": "lions-mercier", "lambda": "auto", "mu": "auto", "omega": "auto",
                  "integrator": "auto", "metric": "auto"})");
  EXPECT_FALSE(m.dynamic().lambda || m.dynamic().mu || m.dynamic().omega);
  EXPECT_TRUE(std::isinf(
      decoded(R"({"kind": "jacobi", "divergence_limit": "none"})").dynamic().divergence_limit));
  EXPECT_EQ(decoded(R"({"kind": "jacobi"})").dynamic().divergence_limit,
            DynamicIteration().divergence_limit);
}

TEST(ScenarioNetworkMethods, ReplaceTheWholeMethodFromTheCommandLine) {
  const Scenario scenario =
      testing::parse(pair().dump(), {{"/method", R"({"kind":"impulse","fast":["mass"]})"}});
  EXPECT_EQ(scenario.options.method.kind(), SplittingKind::impulse);
  EXPECT_EQ(scenario.options.method.as<WaveCoupling>(), nullptr) << "nothing is left";
  EXPECT_EQ(scenario.steps, 10);

  // With the kind alone every leftover is named, and how to do it.
  const Issues issues = testing::issues_of(pair().dump(), {{"/method/kind", "strang"}});
  ASSERT_EQ(issues.size(), 4U);
  EXPECT_EQ(issues[0].where, "/method/iterations");
  EXPECT_EQ(issues[0].what,
            "is no key of the method \"strang\", which couples without waves: it belongs to wave "
            "coupling and \"lions-mercier\", \"jacobi\", \"gauss-seidel\".\n"
            "keys: \"kind\", \"coupling_flow\", \"split_dissipation\", \"order\".\n"
            "To replace the whole method: --set '/method={\"kind\":\"strang\"}'");
  EXPECT_EQ(issues[1].where, "/method/relaxation");
  EXPECT_EQ(issues[1].what,
            "is no key of the method \"strang\", which couples without waves: it belongs to wave "
            "coupling");
  EXPECT_EQ(issues[2].where, "/method/guard");
  EXPECT_EQ(issues[3].where, "/method/impedance");
}

TEST(ScenarioNetworkMethods, AndTheirKeysAreRefusedWithWaves) {
  Json scenario = pair();
  scenario["method"]["window_steps"] = 3;
  scenario["method"]["fast"] = Json::array({"nobody"});
  const Issues issues = testing::issues_of(scenario.dump());
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].where, "/method/window_steps");
  EXPECT_EQ(issues[0].what.substr(0, issues[0].what.find('\n')),
            "is no key of the method \"douglas-rachford\", which couples by waves: it belongs to "
            "\"lions-mercier\", \"jacobi\", \"gauss-seidel\".");
  EXPECT_EQ(issues[1].where, "/method/fast");
  EXPECT_FALSE(SchemaChecker(scenario_schema()).accepts(scenario.dump()));
}

TEST(ScenarioNetworkMethods, HaveNoWavesToObserve) {
  Json scenario = pair_with(R"({"kind": "strang"})");
  scenario["outputs"] = {{"observe", {"mass.coupling.incident", "mass.coupling.effort"}}};
  const Issues issues = testing::issues_of(scenario.dump());
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].where, "/outputs/observe/0");
  EXPECT_EQ(issues[0].what,
            "the method \"strang\" couples without waves: there is no \"mass.coupling.incident\"");
  scenario["method"] = pair()["method"];
  EXPECT_TRUE(testing::issues_of(scenario.dump()).empty()) << "control";
}

struct Defect {
  const char* method;
  const char* where;
  const char* what;
  bool schema_rejects = true;
};

TEST(ScenarioNetworkMethods, SayWhatIsWrong) {
  const Defect defects[] = {
      {R"({"kind": "strange"})", "/method/kind",
       "must be one of \"douglas-rachford\", \"peaceman-rachford\", \"interface\", \"auto\", "
       "\"strang\", "
       "\"impulse\", \"kick-drift\", \"taylor\", \"lions-mercier\", \"jacobi\", "
       "\"gauss-seidel\"; got the string \"strange\". "
       "Did you mean \"strang\"?"},
      {R"({"kind": "strang", "coupling_flow": "lowrank"})", "/method/coupling_flow",
       "must be one of \"auto\", \"scalar\", \"low-rank\"; got the string \"lowrank\". Did you "
       "mean \"low-rank\"?"},
      {R"({"kind": "strang", "split_dissipation": 1})", "/method/split_dissipation",
       "must be true or false, got 1"},
      {R"({"kind": "strang", "coupling": 1})", "/method/coupling",
       "unknown key \"coupling\".\nkeys: \"kind\", \"coupling_flow\", \"split_dissipation\", "
       "\"order\". Did "
       "you mean \"coupling_flow\"?"},
      {R"({"kind": "strang", "factor": 3})", "/method/factor",
       "is no key of the method \"strang\", which couples without waves: it belongs to "
       "\"impulse\".\nkeys: \"kind\", \"coupling_flow\", \"split_dissipation\", \"order\".\n"
       "To replace the whole method: --set '/method={\"kind\":\"strang\"}'"},
      {R"({"kind": "impulse"})", "/method/fast", "is required"},
      {R"({"kind": "impulse", "fast": []})", "/method/fast",
       "must name the fast subsystems, one at least"},
      {R"({"kind": "impulse", "fast": "mass"})", "/method/fast",
       "must be an array of names of subsystems, got the string \"mass\""},
      {R"({"kind": "impulse", "fast": ["mas"]})", "/method/fast/0",
       "there is no subsystem \"mas\".\nsubsystems: \"chain\", \"mass\". Did you mean \"mass\"?",
       false},
      {R"({"kind": "impulse", "fast": ["mass", 3]})", "/method/fast/1", "must be a string, got 3"},
      {R"({"kind": "impulse", "fast": ["mass", "mass"]})", "/method/fast/1",
       "\"mass\" is there already"},
      {R"({"kind": "kick-drift", "order": 5})", "/method/order", "must be 4 or 6, got 5",
       /*schema_rejects=*/false},
      {R"({"kind": "strang", "order": 3})", "/method/order", "must be 2 or 4, got 3",
       /*schema_rejects=*/false},
      {R"({"kind": "strang", "order": 6})", "/method/order",
       "must be an integer from 2 to 4, got 6"},
      {R"({"kind": "taylor", "order": 15})", "/method/order", "must be even, got 15",
       /*schema_rejects=*/false},
      {R"({"kind": "taylor", "order": "high"})", "/method/order",
       "must be \"auto\" or an integer from 2 to 40, got the string \"high\""},
      {R"({"kind": "taylor", "tolerance": 1e-6})", "/method/tolerance",
       "is no key of the method \"taylor\", which couples without waves: it belongs to wave "
       "coupling and \"lions-mercier\", \"jacobi\", \"gauss-seidel\".\nkeys: \"kind\", "
       "\"order\".\nTo replace the whole method: --set '/method={\"kind\":\"taylor\"}'"},
      {R"({"kind": "taylor", "impedance": "auto"})", "/method/impedance",
       "is no key of the method \"taylor\", which couples without waves: it belongs to wave "
       "coupling.\nkeys: \"kind\", \"order\".\nTo replace the whole method: --set "
       "'/method={\"kind\":\"taylor\"}'"},
      {R"({"kind": "impulse", "fast": ["mass"], "factor": 0})", "/method/factor",
       "must be an integer from 1 to 1000000, got 0"},
      {R"({"kind": "impulse", "fast": ["mass"], "coupling_flow": "auto"})", "/method/coupling_flow",
       "is no key of the method \"impulse\", which couples without waves: it belongs to "
       "\"strang\".\nkeys: \"kind\", \"fast\", \"factor\", \"order\".\n"
       "To replace the whole method: --set '/method={\"kind\":\"impulse\",\"fast\":[\"...\"]}'"},
      {R"({"kind": "jacobi", "window_steps": 1.5})", "/method/window_steps",
       "must be an integer from 1 to 1000000, got 1.5"},
      {R"({"kind": "jacobi", "iterations": -1})", "/method/iterations",
       "must be an integer from 0 to 1000000, got -1"},
      {R"({"kind": "jacobi", "tolerance": -1})", "/method/tolerance",
       "must be a number >= 0, got -1"},
      {R"({"kind": "jacobi", "divergence_limit": "never"})", "/method/divergence_limit",
       "must be \"none\" or a number > 1, got the string \"never\""},
      {R"({"kind": "jacobi", "divergence_limit": 1})", "/method/divergence_limit",
       "must be \"none\" or a number > 1, got 1"},
      {R"({"kind": "gauss-seidel", "integrator": "euler"})", "/method/integrator",
       "must be one of \"auto\", \"midpoint\", \"radau-iia\"; got the string \"euler\"."},
      {R"({"kind": "lions-mercier", "lambda": 0})", "/method/lambda",
       "must be \"auto\" or a number > 0, got 0"},
      {R"({"kind": "lions-mercier", "lambda": true})", "/method/lambda",
       "must be \"auto\" or a number > 0, got true"},
      {R"({"kind": "lions-mercier", "mu": -2})", "/method/mu",
       "must be \"auto\" or a number >= 0, got -2"},
      {R"({"kind": "lions-mercier", "mu": 2, "omega": 1})", "/method/omega",
       "must be at least mu, 2, got 1", false},
      {R"({"kind": "lions-mercier", "alpha": 1.5})", "/method/alpha",
       "must be a number >= 0 and <= 1, got 1.5"},
      {R"({"kind": "lions-mercier", "metric": "energys"})", "/method/metric",
       "must be one of \"auto\", \"identity\", \"energy\"; got the string \"energys\". Did you "
       "mean \"energy\"?"},
  };
  const SchemaChecker schema(scenario_schema());
  for (const Defect& defect : defects) {
    const std::string text = pair_with(defect.method).dump();
    const Issues issues = testing::issues_of(text);
    ASSERT_EQ(issues.size(), 1U) << defect.method;
    EXPECT_EQ(issues[0].where, defect.where) << defect.method;
    EXPECT_EQ(issues[0].what, defect.what) << defect.method;
    EXPECT_EQ(!schema.accepts(text), defect.schema_rejects) << defect.method;
  }
}

TEST(ScenarioNetworkMethods, SayEverythingAtOnce) {
  const Json scenario = pair_with(R"({"kind": "lions-mercier", "lambda": -1, "guard": false,
                                      "alpha": 2, "window": 3, "impedance": 7})");
  std::vector<std::string> places;
  for (const Issue& issue : testing::issues_of(scenario.dump())) places.push_back(issue.where);
  EXPECT_EQ(places, (std::vector<std::string>{"/method/lambda", "/method/guard", "/method/alpha",
                                              "/method/window", "/method/impedance"}));
}

/// The shortest method of a kind: what it cannot do without.
Json shortest(const MethodInfo& method) {
  Json json = {{"kind", std::string(method.name)}};
  if (method.kind == SplittingKind::impulse) json["fast"] = Json::array({"mass"});
  if (method.kind.couples_by_waves()) json["impedance"] = {{"kind", "auto"}};
  return json;
}

double number_of(const CouplingMethod& method, const OptionInfo& option) {
  if (const auto* const place = std::get_if<OptionField<int>>(&option.value)) {
    return place->of(method);
  }
  if (const auto* const place = std::get_if<OptionField<double>>(&option.value)) {
    return place->of(method);
  }
  return std::get<OptionField<std::optional<double>>>(option.value).of(method).value_or(NAN);
}

// Whatever the tables list is read, described by the schema, and refused where it does not belong.
TEST(ScenarioMethods, EveryNumberOfTheTablesIsReadByTheKindsThatHaveIt) {
  const SchemaChecker schema(scenario_schema());
  int read = 0, refused = 0;
  for (const MethodFamily* const family : method_families()) {
    for (const OptionInfo& option : family->options) {
      const bool is_integer = std::holds_alternative<OptionField<int>>(option.value);
      if (!is_integer && !std::holds_alternative<OptionField<double>>(option.value) &&
          !std::holds_alternative<OptionField<std::optional<double>>>(option.value)) {
        continue;
      }
      const std::string key(option.key);
      // Orders are even.
      const int integer = std::max(key == "order" ? 4 : 3, static_cast<int>(option.range.minimum));
      const double value = is_integer ? integer : option.range.minimum + 0.75;
      for (const MethodInfo& method : all_methods()) {
        Json text = shortest(method);
        text[key] = is_integer ? Json(integer) : Json(value);
        Json scenario = pair();
        scenario["method"] = text;
        const auto& own = family_of(method.kind).options;
        const auto found = std::find_if(own.begin(), own.end(), [&](const OptionInfo& each) {
          return each.key == option.key && each.is_for(method.kind) &&
                 each.refusal_by(method.kind).empty();
        });
        const Issues issues = testing::issues_of(scenario.dump());
        EXPECT_EQ(schema.accepts(scenario.dump()), found != own.end()) << text;
        if (found == own.end()) {
          ASSERT_EQ(issues.size(), 1U) << text;
          EXPECT_EQ(issues[0].where, "/method/" + key) << text;
          ++refused;
          continue;
        }
        ASSERT_EQ(issues.size(), 0U) << text << ": " << issues[0].what;
        const CouplingMethod method_read = testing::parse(scenario.dump()).options.method;
        EXPECT_EQ(number_of(method_read, *found), value) << text;
        ++read;
      }
    }
  }
  EXPECT_GT(read, 30);
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace portwave::test_scenario_network_methods
