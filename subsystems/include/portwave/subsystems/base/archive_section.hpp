#pragma once

#include <cstddef>
#include <cstdint>

namespace portwave {

/// Where in the bytes of a state members lie that seldom change, and the mark that they had there. Internal to the
/// library.
struct ArchiveSection {
  std::uint64_t mark = 0;
  std::size_t begin = 0, size = 0;
  bool operator==(const ArchiveSection&) const = default;
};

}  // namespace portwave
