#pragma once

#include <portwave/subsystems/catalogue/catalogue.hpp>

/// The type of part that this plugin brings, for its own tests.
portwave::PartType solenoid_type();
