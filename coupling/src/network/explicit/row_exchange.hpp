#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "network/explicit/kick_drift/stroke_map.hpp"
#include "network/explicit/shared_rows.hpp"
#include "portwave/coupling/network/network_peers.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// The rows of an island that another rank owns and this one reads. Blocks of rows have one owner each; every rank has
/// arrays for all rows, and what is in those of others is of no meaning but where it was exchanged.
class RowExchange {
 public:
  /// By row: the rows of this kind that are read for those of another kind, or the same, and the ranks of these.
  struct Reads {
    const StrokeMap& map;              ///< an entry (i, j): row j is read for row i
    std::span<const int> rank_of_row;  ///< of its rows
  };
  /// All ranks construct it. `most_arrays`: that are exchanged at once.
  RowExchange(NetworkPeers& peers, std::vector<int> rank_of_row, std::span<const Reads> reads,
              int most_arrays);

  /// Rows of other ranks that those of this rank read, of one or several arrays.
  void exchange(std::initializer_list<double*> arrays) {
    begin(arrays);
    finish(arrays);
  }
  /// The same in two: between them the rows that others read may be read, but not written.
  void begin(std::initializer_list<double*> arrays);
  void finish(std::initializer_list<double*> arrays);
  /// Whether others read a row of this rank.
  bool is_sent(int row) const;
  /// All rows of all ranks.
  void complete(double* array);
  std::size_t bytes() const;

 private:
  struct Neighbour {
    int rank = 0;
    std::vector<int> sent, received;  ///< rows
  };
  NetworkPeers& peers_;
  std::vector<int> rank_of_row_;
  std::vector<Neighbour> neighbours_;
  std::vector<std::unique_ptr<NetworkPeers::Messages>> messages_;  ///< by number of arrays − 1
  std::vector<std::size_t> counts_;                                ///< of rows, by rank
  AlignedVector own_, all_;
};

/// The rank of each block: neighbouring blocks go to one rank, and each has its share of the rows. `place`: of the
/// blocks, along a line on which neighbours are near.
std::vector<int> ranks_of_blocks(const SharedRows& rows, std::span<const double> place, int ranks);

/// By row.
std::vector<int> ranks_of_rows(const SharedRows& rows, std::span<const int> ranks_of_blocks);

}  // namespace portwave
