#pragma once

// What scenarios may hold beyond their own words: recipes that make parts out of entries, and plugins.
// Guide    docs/reference/scenario.md

#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/plugins.hpp"
