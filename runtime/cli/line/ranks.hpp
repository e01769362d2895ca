#pragma once

#include <exception>
#include <memory>
#include <string>

#include <portwave/runtime/ranks/ranks.hpp>

namespace portwave::cli {

/// The ranks that this program was started as, by mpirun or the like; null: there is one process.
/// Errors: RankError where there are several processes and MPI is not available.
std::shared_ptr<Ranks> join_ranks();

/// The same, for the rest of the program.
std::shared_ptr<Ranks>& ranks();
/// Others than the first say nothing and write nothing.
inline bool is_first_rank() { return ranks() == nullptr || ranks()->rank() == 0; }

/// Does something on every rank of which all have to know that it went well everywhere. Errors: what
/// `act` throws; RankError on the ranks where it went well while it failed on others.
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

/// A text of rank 0, known to all.
std::string told_by_first(const std::string& text);
int told_by_first(int number);

}  // namespace portwave::cli
