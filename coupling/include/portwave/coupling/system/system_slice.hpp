#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class System;

/// The slice of one process where several processes, ranks, build a system piece by piece. Its own parts come
/// first, in the order of their numbers in the whole; after them, for their impedances and the waves that
/// they send, the parts *outside*: parts of others that share a junction with its own.
/// Islands are those of the whole. docs/decisions/0059-slices.md
struct SystemSlice {
  int rank = 0;
  int own_parts = 0;
  std::vector<std::int64_t> numbers;  ///< by part: its number in the whole
  std::vector<int> ranks;             ///< by part: the rank that steps it

  /// A rank's share of an island.
  struct Share {
    int rank;
    std::int64_t parts;
  };
  /// By island, in the order of the ranks; ranks without a share are left out.
  std::vector<std::vector<Share>> islands;

  bool is_own(int part) const { return part < own_parts; }
  bool is_cut(int island) const { return islands[static_cast<std::size_t>(island)].size() > 1; }
};

/// Makes a system a slice; `island_of_part`: islands of the whole.
void make_slice(System& system, SystemSlice slice, std::vector<int> island_of_part);

}  // namespace portwave
