#pragma once

// A type of part of your own, by name in scenarios: added to the catalogue, or taken from a plugin.
// Guides   docs/tutorial/your-own-part.md, docs/tutorial/your-own-part-at-run-time.md

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/plugin.hpp"
