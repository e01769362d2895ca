#pragma once

#include <filesystem>

#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// "inputs" of a part, whose type and component are read already: its external inputs into the options of
/// `draft`, and what signals and functions of time drive, numbers among its parameters included, into `whole`.
void read_inputs(const Node& node, PartDraft& draft, const std::filesystem::path& folder,
                 SystemDraft& whole);

}  // namespace portwave::scenario_file
