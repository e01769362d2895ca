#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace portwave {

/// Counters of energy of the processor packages, as Linux shows them (powercap, RAPL): each counts microjoules
/// up to a largest value and goes on from 0. They count the whole package, with whatever else runs on it.
class EnergyMeter {
 public:
  /// Looks for counters in `folder`.
  explicit EnergyMeter(const std::filesystem::path& folder = "/sys/class/powercap");

  bool is_there() const { return !counters_.empty(); }
  /// Why there are none, or what they are, in a sentence.
  const std::string& note() const { return note_; }

  /// Energy since the last call [J]; the first counts from construction. Between two calls no counter may
  /// go round more than once: some minutes. Empty where a counter can no longer be read.
  std::optional<double> read_J();

 private:
  struct Counter {
    std::filesystem::path file;
    std::int64_t range_uJ = 0;
    std::int64_t last_uJ = 0;
  };
  std::vector<Counter> counters_;
  std::string note_;
};

}  // namespace portwave
