#pragma once

// The laws that every part obeys, as tests of your own part: check_all.
// Guide    docs/tutorial/your-own-part.md

#include "portwave/subsystems/conformance/conformance.hpp"
