#pragma once

#include "portwave/subsystems/base/error.hpp"
#include "scenario/parts/system_draft.hpp"

namespace portwave::scenario_file {

/// What is allowed, but probably not meant: shafts that are joined so that they turn against each
/// other. `where` is as in errors.
Issues notes_of(const SystemDraft& draft);

}  // namespace portwave::scenario_file
