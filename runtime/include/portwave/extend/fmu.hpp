#pragma once

// FMUs as parts and as blocks of signals, in code.
// Guide    docs/guides/fmi.md

#include "portwave/runtime/adapters/fmu.hpp"
