#pragma once

#include <span>
#include <vector>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/ranks/followers.hpp"

namespace portwave {

/// The terms that a quantity is made of: none of a signal, several of the storage of many parts.
std::vector<QuantityTerm> terms_of(const Quantity& quantity);

/// Which rank can record a quantity by itself; 0 where none of the others can.
int rank_of(const Stepper& stepper, const Quantity& quantity);

/// Quantities that are read together, row after row.
class ObservedRow {
 public:
  /// On rank 0 any quantities, elsewhere only those of that rank's parts.
  /// On rank 0 with others beside it all of them take part.
  ObservedRow(const Stepper& stepper, std::span<const Quantity> quantities);

  /// Reads all of them. The result is valid until the next call.
  std::span<const double> read(const Stepper& stepper);

 private:
  std::vector<Quantity> quantities_;
  std::vector<QuantityTerm> terms_;
  std::vector<std::size_t> ends_;  // of the terms, by quantity
  bool is_own_ = true;             // all terms are this rank's
  int set_ = -1;
  std::vector<double> numbers_, values_;
};

}  // namespace portwave
