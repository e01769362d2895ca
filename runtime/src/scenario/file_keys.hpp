#pragma once

#include <optional>
#include <string>

#include "scenario/reader/key_table.hpp"

namespace portwave::scenario_file {

/// The sections of a scenario file.
struct FileKeys {
  std::string schema, name, description;
  std::optional<Node> plugins, time, subsystems, couplings, method, signals, events, outputs;
};

const KeyTable<FileKeys>& file_keys();
/// The schema of a file, without the definitions that it refers to.
Json file_schema();

}  // namespace portwave::scenario_file
