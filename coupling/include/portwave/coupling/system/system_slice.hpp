#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class System;

/// Of a system that several processes, ranks, make piece by piece: the piece that one of them has. Its own
/// parts come first, in the order of their numbers in the whole; after them, for their impedances and the
/// waves that they send, the parts *outside*: those of others that share a junction with parts of its own.
/// Islands are those of the whole. docs/decisions/0059-slices.md
struct SystemSlice {
  int rank = 0;
  int own_parts = 0;
  std::vector<std::int64_t> numbers;  ///< by part: its number in the whole
  std::vector<int> ranks;             ///< by part: who steps it

  /// What a rank has of an island.
  struct Share {
    int rank;
    std::int64_t parts;
  };
  /// By island, in the order of the ranks; ranks that have nothing of it are left out.
  std::vector<std::vector<Share>> islands;

  bool is_own(int part) const { return part < own_parts; }
  bool is_cut(int island) const { return islands[static_cast<std::size_t>(island)].size() > 1; }
};

/// Makes a system a slice; `island_of_part`: islands of the whole.
void make_slice(System& system, SystemSlice slice, std::vector<int> island_of_part);

}  // namespace portwave
