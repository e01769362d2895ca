// The functions that describe parts of the catalogue's types: their defaults are the catalogue's.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_part_factories {
namespace {

/// Of every type that there is: one without a function does not compile.
std::vector<CataloguePart> without_parameters() {
  return {
#define PORTWAVE_PART_TYPE(name) parts::name({}),
#include "../../../subsystems/catalogue/part_types.def"
#undef PORTWAVE_PART_TYPE
  };
}

bool is_nothing(const ParameterValue& value) {
  return std::visit(
      [](const auto& own) {
        if constexpr (requires { own.empty(); }) {
          return own.empty();
        } else {
          return false;
        }
      },
      value);
}

bool are_equal(const ParameterValue& a, const ParameterValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* const own = std::get_if<double>(&a)) return *own == std::get<double>(b);
  if (const auto* const own = std::get_if<int>(&a)) return *own == std::get<int>(b);
  if (const auto* const own = std::get_if<bool>(&a)) return *own == std::get<bool>(b);
  if (const auto* const own = std::get_if<std::string>(&a)) return *own == std::get<std::string>(b);
  return is_nothing(a) && is_nothing(b);
}

/// What a description without parameters says other than the catalogue does.
std::string differences(const CataloguePart& part) {
  std::string text;
  const PartType* const type = find_part_type(part.type());
  if (type == nullptr) return "no such type";
  for (const ParameterInfo& info : type->parameters) {
    const auto given = part.parameters().find(info.name);
    const bool is_given = given != part.parameters().end();
    if (!info.default_value) {
      if (is_given && !is_nothing(given->second)) text += info.name + " has a value; ";
    } else if (is_given ? !are_equal(given->second, *info.default_value)
                        : !is_nothing(*info.default_value)) {
      text += info.name + " has another default; ";
    }
  }
  for (const auto& [name, value] : part.parameters()) {
    bool is_known = name == "allow_active";
    for (const ParameterInfo& info : type->parameters) is_known = is_known || info.name == name;
    if (!is_known) text += name + " is not known; ";
  }
  return text;
}

TEST(PartFactories, HaveTheDefaultsOfTheCatalogue) {
  const std::vector<CataloguePart> all = without_parameters();
  EXPECT_GE(all.size(), 44U);
  for (const CataloguePart& part : all) EXPECT_EQ(differences(part), "") << part.type();
}

TEST(PartFactoriesControl, AnotherDefaultOrNameIsNoticed) {
  CataloguePart part = parts::mass({});
  part.give("ports", 2);
  part.give("mass_kg", 1.0);
  part.give("weight_N", 9.81);
  EXPECT_EQ(differences(part),
            "mass_kg has a value; ports has another default; weight_N is not known; ");
}

TEST(PartFactories, BuildWhatTheirParametersSay) {
  const auto part = parts::mass({.mass_kg = 2, .ports = 2}).build();
  EXPECT_EQ(part->signature().type, "mass");
  EXPECT_EQ(part->signature().ports.size(), 2U);
  const double x[] = {0.0, 3.0};
  EXPECT_EQ(part->port_hamiltonian()->storage(x), 9.0);
  EXPECT_EQ(parts::effort_source({.domain = "electrical"}).build()->signature().ports[0].domain,
            Domain::electrical);
  const std::shared_ptr<const Component> arm =
      parts::planar_arm({.lengths_m = {1.0, 0.5}, .masses_kg = {2.0, 1.0}, .tip_port = true});
  EXPECT_EQ(arm->signature().ports.size(), 3U);
}

TEST(PartFactories, AComponentTellsItsDescription) {
  for (const PartType& type : catalogue()) {
    const auto part = make_part(type.name, type.example);
    const std::optional<CataloguePart> told = description_of(*part);
    bool has_lists = false;
    Parameters given = type.example;
    ASSERT_TRUE(check_parameters(type, given, false).empty());
    for (const ParameterInfo& info : type.parameters) {
      const bool is_scalar =
          info.kind == ParameterKind::number || info.kind == ParameterKind::integer ||
          info.kind == ParameterKind::boolean || info.kind == ParameterKind::choice;
      has_lists = has_lists || (!is_scalar && !is_nothing(given.find(info.name)->second));
    }
    ASSERT_EQ(told.has_value(), !has_lists) << type.name;
    if (!told) continue;
    EXPECT_EQ(told->type(), type.name);
    ASSERT_EQ(told->parameters().size(), given.size()) << type.name;
    for (const auto& [name, value] : given) {
      EXPECT_TRUE(are_equal(told->parameters().find(name)->second, value)) << type.name << name;
    }
  }
  EXPECT_FALSE(description_of(*linear_oscillator({})).has_value()) << "built by hand";
}

TEST(PartFactories, WrongValuesGiveTheErrorsOfTheCatalogue) {
  const auto issues = [](const CataloguePart& part) {
    try {
      (void)part.build();
    } catch (const ConfigError& error) {
      return error.issues();
    }
    return Issues{};
  };
  const Issues found = issues(parts::mass({.damping_Ns_per_m = -1, .ports = 0}));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].where, "/mass_kg");
  EXPECT_EQ(found[0].what, "is required: mass m [kg]");
  EXPECT_EQ(found[1].where, "/damping_Ns_per_m");
  EXPECT_EQ(found[2].what, "must be >= 1, got 0");
  EXPECT_TRUE(
      issues(parts::mass({.mass_kg = 1, .damping_Ns_per_m = -1, .allow_active = true})).empty());
  EXPECT_NE(issues(parts::contact({.force_N = 1, .compression_m = 1, .law = "herz"}))[0].what.find(
                "Did you mean \"hertz\"?"),
            std::string::npos);
  EXPECT_NE(issues(CataloguePart("mas"))[0].what.find("Did you mean \"mass\"?"), std::string::npos);
}

TEST(PartFactories, TakeMatricesByRowsDenseAndSparse) {
  const auto storage = [](MatrixParameter Q) {
    const auto part = parts::linear_port_hamiltonian({
        .states = {{"q", "m"}, {"p", "kg m/s"}},
        .ports = {{"port", Causality::effort_in, Domain::translation, 1}},
        .J = {{0, 1}, {-1, 0}},
        .G = {{0}, {-1}},
        .Q = std::move(Q),
    });
    const double x[] = {1.0, 2.0};
    return part.build()->port_hamiltonian()->storage(x);
  };
  Eigen::MatrixXd dense(2, 2);
  dense << 50, 0, 0, 0.5;
  EXPECT_EQ(storage({{50, 0}, {0, 0.5}}), 26.0);
  EXPECT_EQ(storage(dense), 26.0);
  EXPECT_EQ(storage(SparseMatrix(dense.sparseView())), 26.0);
  EXPECT_THROW(storage({}), ConfigError) << "Q is required";
}

}  // namespace
}  // namespace portwave::test_part_factories
