// Resistances between states leave them free, whatever their sizes.

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_resistances_tie_nothing {
namespace {

/// A branch and a capacitor between two nodes, each tied to both by ideal transformers.
System between_two_nodes(const std::string& type, Parameters parameters) {
  SystemBuilder builder;
  builder.add("branch", make_part(type, std::move(parameters)));
  builder.add("store", make_part("capacitor", {{"capacitance_F", 20.0}}),
              {.initial_state = {-9.0}});
  for (const std::string& of : std::vector<std::string>{"branch", "store"}) {
    builder.add(of + "_to_1", make_part("electrical_transformer", {{"ratio", 1.0}}));
    builder.add(of + "_to_2", make_part("electrical_transformer", {{"ratio", -1.0}}));
    builder.join(joint::CommonFlow{},
                 {of + (type == "effort_source" && of == "branch" ? ".port" : ".terminals"),
                  of + "_to_1.primary", of + "_to_2.primary"});
  }
  for (const std::string& node : std::vector<std::string>{"1", "2"}) {
    builder.join(joint::CommonEffort{},
                 {"branch_to_" + node + ".secondary", "store_to_" + node + ".secondary"});
  }
  return builder.build();
}

bool ties_anything(const System& system) {
  return !StateConstraints(system, [&](int part) -> std::span<const double> {
            return system.parts()[static_cast<std::size_t>(part)].initial_state;
          }).empty();
}

TEST(ResistancesTieNothing, WhateverTheirSize) {
  for (const double ohm : {1e-15, 1e-12, 1e-6, 1.0, 1e6, 1e12, 1e15}) {
    EXPECT_FALSE(ties_anything(between_two_nodes("resistor", {{"resistance_ohm", ohm}}))) << ohm;
  }
}

/// A diode of 22 mV would conduct 1e13 A at 1 V.
TEST(ResistancesTieNothing, NorDoDiodes) {
  for (const double volt : {1.0, 0.05, 0.0216, 0.005}) {
    EXPECT_FALSE(ties_anything(between_two_nodes(
        "diode", {{"saturation_current_A", 1.7e-7}, {"thermal_voltage_V", volt}})))
        << volt;
  }
}

/// The control: a wire in the place of the resistance ties the capacitor.
TEST(ResistancesTieNothing, ButWiresDo) {
  EXPECT_TRUE(ties_anything(between_two_nodes("effort_source", {{"domain", "electrical"}})));
}

}  // namespace
}  // namespace portwave::test_resistances_tie_nothing
