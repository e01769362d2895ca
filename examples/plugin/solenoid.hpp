#pragma once

#include <portwave/extend/part_type.hpp>

/// The type of part that this plugin brings, for its own tests.
portwave::PartType solenoid_type();
