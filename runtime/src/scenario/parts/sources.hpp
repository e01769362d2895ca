#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/core/signal.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// A kind of functions of time: of external inputs, and of the blocks that are sources.
struct SourceKind {
  std::string name;
  Json schema;
  /// Tables are read relative to `folder`. `also`: keys of the object that belong to others.
  std::function<std::optional<Signal>(const Node& node, const std::filesystem::path& folder,
                                      const std::vector<std::string_view>& also)>
      read;
};

/// In the order of the documentation.
const std::vector<SourceKind>& source_kinds();
/// Null where there is none of that name.
const SourceKind* find_source_kind(std::string_view name);

/// A function of time in short: a number, or the text of an expression in t [s]. `hint` ends its defects.
std::optional<Signal> read_short(const Node& node, std::string_view hint = {});

/// The knots of a table file: two columns, time_s and value, and an optional header line.
/// Each defect goes on after the name of the file: ", line 3: ...".
std::vector<Signal::Knot> parse_table(const std::string& text, std::vector<std::string>& defects);

}  // namespace portwave::scenario_file
