#pragma once

#include "scenario/reader/document.hpp"

namespace portwave::scenario_file {

/// The schema of "method", from the tables of the methods.
Json method_schema();

}  // namespace portwave::scenario_file
