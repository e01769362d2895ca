#pragma once

// Processes of your own that step a system together: what they have to be able to send one another.
// Guide    docs/guides/cluster.md

#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
