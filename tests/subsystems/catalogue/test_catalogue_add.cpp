// Types of parts that a program adds. A test that adds one does so in a process of its own: the
// others compare the list with what portwave has.

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace portwave::test_catalogue_add {
namespace {

PartType sound_type(std::string name) {
  PartType type;
  type.name = std::move(name);
  type.summary = "a mass that is free";
  ParameterInfo mass;
  mass.name = "mass_kg";
  mass.unit = "kg";
  mass.minimum = 0.0;
  mass.minimum_excluded = true;
  type.parameters = {mass};
  type.build = [](const Parameters& parameters) -> std::unique_ptr<Component> {
    return linear_oscillator({.mass_kg = std::get<double>(parameters.find("mass_kg")->second)});
  };
  type.example = {{"mass_kg", 2.0}};
  return type;
}

std::string defects(PartType type) {
  const std::size_t before = catalogue().size();
  std::string text;
  try {
    Catalogue::add(std::move(type));
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) text += issue.where + ": " + issue.what + "\n";
  }
  EXPECT_EQ(catalogue().size(), before) << "nothing is added that has a defect";
  return text;
}

bool added_types_work() {
  const std::size_t before = catalogue().size();
  const PartType* const first = &catalogue()[0];
  for (int i = 0; i < 100; ++i) Catalogue::add(sound_type("free_mass_" + std::to_string(i)));
  const PartType* const own = find_part_type("free_mass_7");
  Catalogue::add(sound_type("one-more"));
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  const auto part = make_part("free_mass_7", {{"mass_kg", 3.0}});
  return names.size() == before + 101 && names[before] == "free_mass_0" &&
         names.back() == "one-more" && own != nullptr && own == find_part_type("free_mass_7") &&
         first == &catalogue()[0] && own == &catalogue()[before + 7] &&
         part->signature().type == "linear_oscillator";
}

TEST(CatalogueAdd, ListsOwnTypesAfterThoseOfPortwaveAtLastingAddresses) {
  EXPECT_EXIT(std::exit(added_types_work() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(CatalogueAdd, RefusesATypeTwice) {
  const auto added_twice = [] {
    Catalogue::add(sound_type("free_mass"));
    return defects(sound_type("free_mass")) == "/name: there is a type \"free_mass\" already\n";
  };
  EXPECT_EXIT(std::exit(added_twice() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(defects(sound_type("duffing_node")),
            "/name: there is a type \"duffing_node\" already\n");
}

TEST(CatalogueAdd, AddsSeveralTypesOrNone) {
  const auto several = [](const std::vector<std::string>& names) {
    std::vector<PartType> types;
    for (const std::string& name : names) types.push_back(sound_type(name));
    return types;
  };
  const std::size_t before = catalogue().size();
  try {
    Catalogue::add(several({"first", "mass", "second", "a b", "second"}));
    ADD_FAILURE() << "it has three defects";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 3U) << error.what();
    EXPECT_EQ(error.issues()[0].where, "/mass/name");
    EXPECT_EQ(error.issues()[1].where, "/a b/name");
    EXPECT_EQ(error.issues()[2].where, "/second");
  }
  EXPECT_EQ(catalogue().size(), before);
  const auto added = [&] {
    Catalogue::add(several({"first", "second"}));
    return catalogue().size() == before + 2 && catalogue()[before].name == "first" &&
           catalogue()[before + 1].name == "second";
  };
  EXPECT_EXIT(std::exit(added() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(CatalogueAdd, NamesEveryDefect) {
  const std::string form =
      "/name: must begin with a letter and be made of letters, digits, '_' and '-', got ";
  for (const char* name : {"", "a b", "2masses", "mass/kg", "größe", "a.b", "_a"}) {
    EXPECT_EQ(defects(sound_type(name)), form + "\"" + name + "\"\n");
  }
  PartType type = sound_type("a b");
  type.build = nullptr;
  type.parameters.push_back(type.parameters[0]);
  ParameterInfo choice;
  choice.name = "kind";
  choice.kind = ParameterKind::choice;
  ParameterInfo unnamed;
  ParameterInfo text;
  text.name = "length_m";
  text.default_value = std::string("long");
  ParameterInfo active;
  active.name = "allow_active";
  type.parameters.insert(type.parameters.end(), {choice, unnamed, text, active});
  EXPECT_EQ(
      defects(std::move(type)),
      form +
          "\"a b\"\n"
          "/parameters/mass_kg: there are two parameters of this name\n"
          "/parameters/kind: must list its choices\n"
          "/parameters/3: the name of a parameter must not be empty nor contain dots, slashes, "
          "brackets, blanks, commas or quotes, got \"\"\n"
          "/parameters/length_m: its default: expected a number, got \"long\"\n"
          "/parameters/allow_active: \"allow_active\" is understood by every type: it is not a "
          "parameter\n"
          "/build: there is no function to build the part with\n");
  type = sound_type("free_mass");
  type.example["mass_kg"] = -1.0;
  EXPECT_EQ(defects(std::move(type)), "/example/mass_kg: must be > 0 kg, got -1\n");
}

}  // namespace
}  // namespace portwave::test_catalogue_add
