#pragma once

// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include "portwave/subsystems/catalogue/parts/electrical.hpp"
#include "portwave/subsystems/catalogue/parts/general.hpp"
#include "portwave/subsystems/catalogue/parts/hydraulic.hpp"
#include "portwave/subsystems/catalogue/parts/rotation.hpp"
#include "portwave/subsystems/catalogue/parts/sources.hpp"
#include "portwave/subsystems/catalogue/parts/transducers.hpp"
#include "portwave/subsystems/catalogue/parts/translation.hpp"

/// A function for each type of the catalogue. It describes a part, which is checked and built where it is used:
///   network.add("wheel", portwave::parts::mass({.mass_kg = 2, .ports = 2}));
/// Defaults are those of the catalogue. Matrices, lists of numbers and texts that are empty count as not given.
namespace portwave::parts {}
