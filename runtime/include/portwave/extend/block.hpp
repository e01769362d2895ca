#pragma once

// A block of your own in a signal graph: a sensor's filter, a controller; by name in scenarios, too.
// Guide    docs/concepts/signals.md

#include "portwave/runtime/scenario/block_kinds.hpp"
#include "portwave/runtime/signals/block.hpp"
