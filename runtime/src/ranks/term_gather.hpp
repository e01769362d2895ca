#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// By part: the rank that steps it; 0 if every rank does.
std::vector<int> ranks_of_parts(const WaveDiscretisation& waves, const Partition& partition,
                                std::span<const int> ranks_of_tasks);

/// A set of terms whose values rank 0 receives from the ranks that have them, and nothing else.
class TermGather {
 public:
  using Read = std::function<double(const QuantityTerm&)>;

  /// `ranks_of_terms`: the rank of each term. All ranks call it, with the same arguments.
  TermGather(std::vector<QuantityTerm> terms, std::span<const int> ranks_of_terms, Ranks& ranks);

  std::span<const QuantityTerm> terms() const { return terms_; }
  /// On rank 0: fills `values`, in the order of the terms. On the others: sends. All ranks call it. `read`
  /// gives the value of a term of this rank.
  void gather(const Read& read, std::span<double> values);

 private:
  std::vector<QuantityTerm> terms_;
  std::vector<std::vector<int>> of_rank_;  // terms, in order
  int rank_;
  std::vector<int> senders_;  // on rank 0: of each neighbour; elsewhere rank 0 is the only one
  std::unique_ptr<NeighbourMessages> messages_;
  std::uint64_t number_ = 0;
};

}  // namespace portwave
