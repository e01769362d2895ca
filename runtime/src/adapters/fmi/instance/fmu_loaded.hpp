#pragma once

// What instances in this process share, of either version.

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/instance/fmu_instance.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {

inline constexpr std::string_view kStatusNames[] = {"ok",    "warning", "discard",
                                                    "error", "fatal",   "pending"};

inline std::string status_name(int status) {
  if (status >= 0 && status < static_cast<int>(std::size(kStatusNames))) {
    return std::string(kStatusNames[status]);
  }
  return fmt::format("the unknown status {}", status);
}

/// Steps are taken back to their beginning, and not further. There are FMUs that go back by themselves where
/// they are told that somebody might.
inline constexpr bool kNoReturnBefore = true;

/// What an FMU does wrong that lacks the functions for it.
inline constexpr const char* kNoBytes =
    "lacks the functions that write its state as bytes, though its description says that it does";

inline constexpr std::size_t kChunk = 64;  // values that are converted at a time

/// A number as a type of FMI has it. Errors: FmuFault for what fits no integer of this type.
template <class Number>
Number number_of(double value) {
  if constexpr (std::is_floating_point_v<Number>) {
    return static_cast<Number>(value);
  } else if constexpr (std::is_same_v<Number, bool>) {
    return value != 0.0;
  } else {
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<Number>::min());
    constexpr auto kMost = static_cast<double>(std::numeric_limits<Number>::max());
    if (!(value >= kLeast && value <= kMost)) {
      throw FmuFault(fmt::format("{} does not fit an integer of {} bytes", value, sizeof(Number)));
    }
    return value == kMost ? std::numeric_limits<Number>::max()
                          : static_cast<Number>(std::nearbyint(value));
  }
}

/// What stands where an FMU is to write a number: one that no FMU answers by chance, of real numbers.
template <class Number>
Number untouched() {
  if constexpr (std::is_same_v<Number, double>) {
    return std::bit_cast<double>(std::uint64_t{0x7ff8'5a5a'1234'5a5a});
  } else if constexpr (std::is_same_v<Number, float>) {
    return std::bit_cast<float>(std::uint32_t{0x7fc5'a123});
  } else {
    return Number{};
  }
}
template <class Number>
bool is_untouched(Number value) {
  if constexpr (!std::is_floating_point_v<Number>) return false;
  const Number mark = untouched<Number>();
  return std::memcmp(&value, &mark, sizeof(Number)) == 0;
}

template <class Number, class Call>
void set_converted(const VariableList::Run& run, const double* values, const Call& set) {
  std::array<Number, kChunk> chunk;
  for (std::size_t i = 0; i < run.references.size(); i += kChunk) {
    const std::size_t count = std::min(kChunk, run.references.size() - i);
    for (std::size_t k = 0; k < count; ++k) chunk[k] = number_of<Number>(values[run.first + i + k]);
    set(&run.references[i], count, chunk.data());
  }
}

/// An instance in this process: what both versions share.
class LoadedInstance : public Instance {
 protected:
  LoadedInstance(InstanceOrigin origin, FmuLog* log)
      : origin_(std::move(origin)), log_(log == nullptr ? &own_log_ : log) {}

  const InstanceOrigin& origin() const { return origin_; }
  FmuLog& log() { return *log_; }
  bool is_dead() const { return dead_; }
  bool was_fatal() const { return fatal_; }
  void expect_alive() const {
    if (dead_) throw FmuFault(fault_);
  }
  /// What the FMU does wrong, told with its name.
  [[noreturn]] void fail(const std::string& what) const {
    throw FmuFault(fmt::format("the FMU {} {}", in_quotes(origin_.file), what));
  }
  [[noreturn]] void ask_to_end(const std::string& where) const {
    fail(fmt::format("asks to end the simulation, in {}", where));
  }
  /// Calls `get` for numbers. Errors: FmuFault, also for real ones that it leaves as they were.
  template <class Number, class Call>
  void get_numbers(const Reference* which, std::size_t count, Number* to, const Call& get) const {
    std::fill_n(to, count, untouched<Number>());
    get(which, count, to);
    for (std::size_t k = 0; k < count; ++k) {
      if (!is_untouched(to[k])) continue;
      fail(fmt::format(
          "gave no value for the variable of valueReference {}: the defect is in the FMU",
          which[k]));
    }
  }
  template <class Call>
  void get_reals(const VariableList::Run& run, double* values, const Call& get) const {
    get_numbers(run.references.data(), run.references.size(), values + run.first, get);
  }
  /// Calls `get` on chunks of a run and converts what comes.
  template <class Number, class Call>
  void get_converted(const VariableList::Run& run, double* values, const Call& get) const {
    std::array<Number, kChunk> chunk;
    for (std::size_t i = 0; i < run.references.size(); i += kChunk) {
      const std::size_t count = std::min(kChunk, run.references.size() - i);
      get_numbers(&run.references[i], count, chunk.data(), get);
      for (std::size_t k = 0; k < count; ++k)
        values[run.first + i + k] = static_cast<double>(chunk[k]);
    }
  }
  /// Throws FmuFault unless the status is ok or a warning. `when`: such as " at 0.2 s".
  void expect_ok(int status, const char* function, const std::string& when = {}) {
    if (status == kOk || status == kWarning) {
      log_->clear();
      return;
    }
    dead_ = status != kDiscard;
    fatal_ = status == kFatal;
    std::string text = fmt::format("the FMU {}: {}{} returned {}", in_quotes(origin_.file),
                                   function, when, status_name(status));
    if (!log_->empty()) text += fmt::format("; it says: {}", log_->text());
    if (status == kDiscard && std::string_view(function).ends_with("DoStep"))
      text += "; a shorter \"step_s\" may help";
    log_->clear();
    if (dead_) fault_ = text;
    throw FmuFault(text);
  }

 private:
  InstanceOrigin origin_;
  FmuLog own_log_;
  FmuLog* log_;
  bool dead_ = false, fatal_ = false;
  std::string fault_;  ///< of which it died
};

/// Keeps how this thread computes: rounding, traps, what becomes of the smallest numbers. FMUs may leave them changed.
class KeptArithmetic {
 public:
  KeptArithmetic() { std::fegetenv(&before_); }
  ~KeptArithmetic() { std::fesetenv(&before_); }
  KeptArithmetic(const KeptArithmetic&) = delete;
  KeptArithmetic& operator=(const KeptArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

/// Instances in this process, as `instantiate`.
std::unique_ptr<Instance> make_instance_3(const v3::Functions& functions, InstanceOrigin origin,
                                          FmuLog* log);

}  // namespace portwave::fmi
