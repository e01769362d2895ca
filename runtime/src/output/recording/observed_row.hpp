#pragma once

#include <span>
#include <vector>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/ranks/followers.hpp"

namespace portwave {

/// The channels that an observable is made of: none of a signal, several of the storage of many parts.
std::vector<ScalarChannel> channels_of(const Observable& observable);

/// Which rank can record an observable by itself; 0 where none of the others can.
int rank_of(const Stepper& stepper, const Observable& observable);

/// Observables that are looked at together, row after row.
class ObservedRow {
 public:
  /// Those of `observables`; on rank 0, whatever they look at, elsewhere only what is that rank's own.
  /// On rank 0 with others beside it all of them take part.
  ObservedRow(const Stepper& stepper, std::span<const Observable> observables);

  /// Looks. What it gives is good until the next call.
  std::span<const double> read(const Stepper& stepper);

 private:
  std::vector<Observable> observables_;
  std::vector<ScalarChannel> channels_;
  std::vector<std::size_t> ends_;  // of the channels, by observable
  bool is_own_ = true;             // all channels are this rank's
  int set_ = -1;
  std::vector<double> numbers_, values_;
};

}  // namespace portwave
