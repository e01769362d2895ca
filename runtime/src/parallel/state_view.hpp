#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

/// Committed states in signature order. Records hold states in the layout of their batches; the state of a
/// part is unpacked at the first request in a step.
class StateView {
 public:
  explicit StateView(const WaveDiscretisation& waves)
      : waves_(waves), unpacked_(waves.slots().size(), -1) {
    std::size_t size = 0;
    for (const Part& part : waves.system().parts()) {
      begin_.push_back(size);
      size += static_cast<std::size_t>(part.component->signature().state_size());
    }
    begin_.push_back(size);
    states_.resize(size);
  }

  /// Forgets the unpacked states, because the records have changed.
  void forget() { ++version_; }
  /// The state of a part in `record`.
  std::span<const double> of(int part, const double* record) {
    const auto i = static_cast<std::size_t>(part);
    double* own = states_.data() + begin_[i];
    if (unpacked_[i] != version_) {
      waves_.get_state(part, record, own);
      unpacked_[i] = version_;
    }
    return {own, begin_[i + 1] - begin_[i]};
  }

  /// Memory, not counting the states themselves.
  std::size_t bytes() const {
    return begin_.capacity() * sizeof(std::size_t) + unpacked_.capacity() * sizeof(std::int64_t);
  }

 private:
  const WaveDiscretisation& waves_;
  std::vector<std::size_t> begin_;
  std::vector<double> states_;
  std::vector<std::int64_t> unpacked_;  // by part: its unpacked version; −1: none
  std::int64_t version_ = 0;
};

}  // namespace portwave
