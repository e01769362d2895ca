#pragma once

#include <map>
#include <memory>

#include "portwave/subsystems/core/component.hpp"

namespace portwave {

/// The parts of a stepper whose components are not those that it began with, and what they are now.
struct Exchanges {
  std::map<int, std::shared_ptr<const Component>> parts;

  /// Null where it is none of them.
  std::shared_ptr<const Component> of(int part) const {
    const auto found = parts.find(part);
    return found == parts.end() ? nullptr : found->second;
  }
};

}  // namespace portwave
