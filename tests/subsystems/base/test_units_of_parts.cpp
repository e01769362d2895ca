// Units of parts of one's own: unknown names, and entries of J and G that cannot be plain numbers.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave::test_units_of_parts {
namespace {

using States = std::vector<StateVariable>;

struct Given {
  States states = {{"x", "m"}, {"p", "kg m/s"}};
  Domain domain = Domain::translation;
  Causality causality = Causality::effort_in;
  std::vector<ExternalInput> inputs = {};
  ExpressionRows J = {{"0", "1"}, {"-1", "0"}};
  ExpressionRows G = {{"0"}, {"1"}};
};

/// The defects that are found: "/J/0/1: a plain 1 …\n".
std::string defects_of(const Given& given) {
  try {
    (void)make_part("port_hamiltonian",
                    {{"states", given.states},
                     {"ports", std::vector<Port>{{"hook", given.causality, given.domain, 1}}},
                     {"inputs", given.inputs},
                     {"constants", std::vector<NamedNumber>{{"k", 1.0}}},
                     {"energy", std::string("p^2/2 + x^2")},
                     {"J", given.J},
                     {"G", given.G}});
  } catch (const ConfigError& error) {
    std::string text;
    for (const Issue& issue : error.issues()) text += issue.where + ": " + issue.what + "\n";
    return text;
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(UnitsOfParts, RightOnesAreTaken) {
  EXPECT_EQ(defects_of({}), "");
  EXPECT_EQ(defects_of({.states = {{"x", "rad"}, {"p", "kg m^2/s"}}, .domain = Domain::rotation}),
            "");
  EXPECT_EQ(defects_of({.states = {{"x", "rad"}, {"p", "N m s"}}, .domain = Domain::rotation}), "");
  EXPECT_EQ(defects_of({.states = {{"x", "C"}, {"p", "Wb"}}, .domain = Domain::electrical}), "");
  EXPECT_EQ(defects_of({.states = {{"x", "C"}, {"p", "Wb"}},
                        .domain = Domain::electrical,
                        .causality = Causality::flow_in,
                        .G = {{"1"}, {"0"}}}),
            "");
  EXPECT_EQ(defects_of({.inputs = {{"wind", "N"}}, .G = {{"0", "0"}, {"1", "-1"}}}), "");
}

TEST(UnitsOfParts, UnknownOnesAreRefusedWithTheNearest) {
  const std::string text = defects_of({.states = {{"x", "furlongs"}, {"p", "kgg m/s"}},
                                       .inputs = {{"wind", "Newton"}},
                                       .G = {{"0", "0"}, {"1", "1"}}});
  EXPECT_TRUE(has(text, "/states/0/unit: the unit \"furlongs\" is not known")) << text;
  EXPECT_TRUE(has(text, "/states/1/unit: the unit \"kgg m/s\" is not known. Did you mean \"kg\"?"))
      << text;
  EXPECT_TRUE(has(text, "/inputs/0/unit: the unit \"Newton\" is not known")) << text;
  // Nothing is said of entries whose units are not known.
  EXPECT_FALSE(has(text, "/J/")) << text;
}

TEST(UnitsOfParts, EntriesOfJMustBeWhatTheirStatesAskFor) {
  const std::string text = defects_of({.states = {{"x", "m"}, {"p", "K"}}, .G = {{"0"}, {"0"}}});
  EXPECT_TRUE(has(text, "/J/0/1: a plain 1 does not lead from dH/dp in J/(K) to dx/dt in m/s"))
      << text;
  EXPECT_TRUE(has(text, "\"constants\"")) << text;
  EXPECT_FALSE(has(text, "/J/1/0")) << text;  // it is the same one
  // In millimetres the energy is still in joules.
  const std::string scaled =
      defects_of({.states = {{"x", "mm"}, {"p", "kg m/s"}}, .G = {{"0"}, {"0"}}});
  EXPECT_TRUE(has(scaled, "/J/0/1: ")) << scaled;
  EXPECT_TRUE(has(scaled, "in these units it is 1000")) << scaled;
}

TEST(UnitsOfParts, EntriesOfGMustBeWhatPortsAndInputsAskFor) {
  const std::string text = defects_of({.domain = Domain::electrical});
  EXPECT_TRUE(has(text,
                  "/G/1/0: a plain 1 does not lead from the effort of port \"hook\" in V to "
                  "dp/dt in kg m/s/s"))
      << text;
  const std::string input =
      defects_of({.inputs = {{"wind", "m/s"}}, .G = {{"0", "0"}, {"1", "-1"}}});
  EXPECT_TRUE(has(input, "/G/1/1: a plain -1 does not lead from input \"wind\" in m/s")) << input;
  EXPECT_TRUE(has(input, "write minus its name there")) << input;
}

/// What may have a unit of its own is not judged: constants, numbers other than 1, quantities without units.
TEST(UnitsOfParts, WhatMayBeRightIsTaken) {
  EXPECT_EQ(defects_of({.domain = Domain::electrical, .G = {{"0"}, {"k"}}}), "");
  EXPECT_EQ(defects_of({.domain = Domain::electrical, .G = {{"0"}, {"0.3"}}}), "");
  EXPECT_EQ(defects_of({.domain = Domain::generic}), "");
  for (const char* none : {"", "-", "1"}) {
    EXPECT_EQ(defects_of({.states = {{"x", none}, {"p", none}}}), "") << none;
    EXPECT_EQ(defects_of({.inputs = {{"wind", none}}, .G = {{"0", "0"}, {"1", "1"}}}), "") << none;
  }
}

}  // namespace
}  // namespace portwave::test_units_of_parts
