#pragma once

#include <cstdint>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class Component;

/// A number that tells components of one shape apart if their parameters are not known
/// (Component::built_from): equal ones have equal numbers. It stands for
///   linear parts     all of their matrices;
///   others           their structure matrices, H and ∇H at some states, port laws at some sizes, and the
///                    levels of their states. Two that agree at all of these are not told apart;
///   opaque parts     that they are active, and how many stages they have: their contents are unknown.
/// Errors: an exception of the part's callbacks at the probe states counts as a value.
std::uint64_t component_digest(const Component& component);

}  // namespace portwave
