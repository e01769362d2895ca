#pragma once

// Extensions of scenarios: recipes that make parts out of entries, and plugins.
// Guide    docs/reference/scenario.md

#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/plugins.hpp"
