#pragma once

#include <exception>
#include <memory>
#include <string>

#include <portwave/runtime/ranks/ranks.hpp>

namespace portwave::cli {

/// The ranks that this program was started as, by mpirun or the like; null: there is one process.
/// Errors: RankError where there are several processes and MPI is not available.
std::shared_ptr<Ranks> join_ranks();

/// The result of join_ranks, for the rest of the program.
std::shared_ptr<Ranks>& ranks();
/// Whether this process may print and write files: the first rank, or the only process.
inline bool is_first_rank() { return ranks() == nullptr || ranks()->rank() == 0; }

/// Returns act() on every rank. If it throws on one rank, all ranks throw: those whose `act` succeeded throw
/// RankError. All ranks call it.
template <class Act>
auto together(const Act& act) {
  std::exception_ptr failure;
  std::unique_ptr<decltype(act())> out;
  try {
    out = std::make_unique<decltype(act())>(act());
  } catch (...) {
    failure = std::current_exception();
  }
  if (ranks() != nullptr) {
    const auto all = gather_values(*ranks(), failure ? 1 : 0);
    for (std::size_t r = 0; r < all.size() && !failure; ++r) {
      if (all[r] != 0) throw RankError("rank " + std::to_string(r) + " could not begin");
    }
  }
  if (failure) std::rethrow_exception(failure);
  return std::move(*out);
}

/// The text of rank 0, on all ranks. All ranks call it.
std::string told_by_first(const std::string& text);
int told_by_first(int number);

}  // namespace portwave::cli
