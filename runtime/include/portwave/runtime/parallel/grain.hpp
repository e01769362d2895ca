#pragma once

#include <string>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How finely a step is cut into tasks. Results do not depend on it.
struct Grain {
  enum class Kind {
    automatic,  ///< by cost, as many tasks as the threads can use
    part,       ///< a task per part, each a batch of its own
    parts,      ///< about `count` parts per task
  };
  Kind kind = Kind::automatic;
  int count = 0;

  static Grain automatic() { return {}; }
  static Grain per_part() { return {Kind::part, 1}; }
  static Grain of_parts(int count) { return {Kind::parts, count}; }
};

/// "auto", "part" or a number.
std::string to_string(Grain grain);

}  // namespace portwave
