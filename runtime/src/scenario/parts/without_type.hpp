#pragma once

#include <string>
#include <string_view>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

/// What is wrong with a part whose type is named before it: parts that are built by themselves begin with theirs.
inline std::string without_type(const std::string& what, std::string_view type) {
  const std::string own = in_quotes(type) + ": ", subject = std::string(type) + " has ";
  if (what.starts_with(subject)) return what.substr(type.size() + 1);  // "has no parameter …"
  return what.starts_with(own) ? what.substr(own.size()) : what;
}

}  // namespace portwave
