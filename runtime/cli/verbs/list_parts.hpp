#pragma once

#include <string>

#include <portwave/subsystems/catalogue/catalogue.hpp>

/// What `portwave list` shows of a type of part, in words.
namespace portwave::cli {

/// "required", "0.5", …
std::string parameter_default(const ParameterInfo& info);
/// "> 0", ">= 0 (less with allow_active)", …
std::string parameter_range(const ParameterInfo& info);

/// A box with a line for each port and input: taken values on the left, given values on the right.
std::string port_drawing(const std::string& name, const Signature& signature);
/// A part of the type as a scenario has it: the one whose ports and states are shown.
std::string example_text(const PartType& type);
/// A type as a section of Markdown, and the page of all types.
std::string part_section(const PartType& type);
std::string parts_page();

}  // namespace portwave::cli
