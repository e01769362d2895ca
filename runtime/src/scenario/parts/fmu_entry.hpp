#pragma once

#include <memory>
#include <optional>
#include <string>

#include "portwave/subsystems/core/component.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/key_table.hpp"

namespace portwave::scenario_file {

/// The keys of an FMU, beside those that all parts have.
struct FmuKeys {
  std::optional<Node> path, ports, start, outputs, rollback, process, time_limit, held;
};

constexpr const char* kFmuType = "fmu";

Json fmu_ports_schema();
Json fmu_start_schema();
Json fmu_rollback_schema();
Json fmu_process_schema();
Json fmu_time_limit_schema();
Json fmu_held_schema();

/// The part that an entry of the type "fmu" describes, null, and noted, where it has defects; energies and notes
/// for people are added to the draft. `inputs`: the inputs that the entry drives, null where it drives none.
std::shared_ptr<const Component> read_fmu(const Node& node, const std::string& name,
                                          const FmuKeys& keys, const Node* inputs,
                                          SystemDraft& draft);
/// The name under which a part has an input of its FMU.
std::string input_of_fmu(const std::string& variable);

}  // namespace portwave::scenario_file
