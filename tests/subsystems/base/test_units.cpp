#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/units.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_units {
namespace {

UnitRelation between(const std::string& from, const std::string& to) {
  const auto a = parse_unit(from), b = parse_unit(to);
  EXPECT_TRUE(a.has_value()) << from;
  EXPECT_TRUE(b.has_value()) << to;
  return a && b ? relation(*a, *b) : UnitRelation{};
}

TEST(Units, OfOneDimensionHaveAFactor) {
  const double pi = std::numbers::pi;
  const struct {
    const char *from, *to;
    double factor;
  } cases[] = {{"deg", "rad", pi / 180},
               {"rpm", "rad/s", pi / 30},
               {"km/h", "m/s", 1 / 3.6},
               {"bar", "Pa", 1e5},
               {"kN", "N", 1e3},
               {"mm", "m", 1e-3},
               {"l/min", "m^3/s", 1e-3 / 60},
               {"Hz", "rad/s", 2 * pi},
               {"rad/s", "Hz", 0.5 / pi},
               {"1/s", "rad/s", 1.0},
               {"N m", "J", 1.0},
               {"V s", "Wb", 1.0},
               {"N m s/rad", "N m s", 1.0},
               {"kg m^2/s", "N m s", 1.0},
               {"V A", "W", 1.0},
               {"A s", "C", 1.0},
               {"ohm", "V/A", 1.0},
               {"", "1", 1.0},
               {"Pa s/m^3", "kg/m^4 s^-1", 1},
               {"uF", "F", 1e-6}};
  for (const auto& own : cases) {
    const UnitRelation relation = between(own.from, own.to);
    EXPECT_TRUE(relation.is_same_dimension) << own.from << " to " << own.to;
    EXPECT_NEAR(relation.factor, own.factor, 1e-12 * own.factor) << own.from << " to " << own.to;
  }
}

TEST(Units, OfOtherDimensionsHaveNone) {
  for (const auto& [from, to] : {std::pair{"V", "A"}, {"rad", "rad/s"}, {"N", "N m"}, {"m", ""}}) {
    EXPECT_FALSE(between(from, to).is_same_dimension) << from << " to " << to;
  }
}

TEST(Units, WhatIsNotAUnitIsNotKnown) {
  for (const char* text : {"furlong", "m^x", "m/", "N mx", "kkg", "m^99"}) {
    EXPECT_FALSE(parse_unit(text).has_value()) << text;
  }
}

TEST(Units, ThoseOfTheCatalogueAreKnown) {
  for (const PartType& type : catalogue()) {
    const Signature& signature = make_part(type.name, type.example)->signature();
    for (const StateVariable& state : signature.states) {
      EXPECT_TRUE(parse_unit(state.unit).has_value()) << type.name << " " << state.unit;
    }
    for (const ExternalInput& input : signature.inputs) {
      EXPECT_TRUE(parse_unit(input.unit).has_value()) << type.name << " " << input.unit;
    }
    for (const Port& port : signature.ports) {
      EXPECT_TRUE(parse_unit(units(port.domain).effort).has_value());
      EXPECT_TRUE(parse_unit(units(port.domain).flow).has_value());
    }
  }
}

}  // namespace
}  // namespace portwave::test_units
