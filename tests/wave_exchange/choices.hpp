#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace portwave::weak_memory {

/// What a run of the program must never do: a data race, a wrong message, a wrong report.
struct Violation {
  std::string what;
};

/// The choices of one step, like the digits of an odometer: the step is run again from the same
/// state until every combination has been taken.
///
/// Choice 0 of `stale` is the newest value (or the end of the modification order); a step that took
/// only these is what a thread does that sees everything at once.
class Choices {
 public:
  static constexpr int kLargest = 32;
  static constexpr int kMost = 12;  ///< choices in one step

  int stale(int count) {
    const int digit = pick(count);
    if (digit != 0) newest_ = false;
    return digit;
  }
  int any(int count) { return pick(count); }
  bool newest() const { return newest_; }

  void rewind() {
    used_ = 0;
    newest_ = true;
  }
  /// The next combination; false when all have been taken.
  bool advance() {
    digits_.resize(used_);
    while (!digits_.empty() && digits_.back().value + 1 == digits_.back().count) digits_.pop_back();
    if (digits_.empty()) return false;
    ++digits_.back().value;
    return true;
  }

  /// The combination in five bits per choice, and back.
  std::uint64_t packed() const {
    if (used_ > kMost) throw std::length_error("too many choices in one step");
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < used_; ++i) bits |= std::uint64_t(digits_[i].value) << (5 * i);
    return bits;
  }
  static Choices replay(std::uint64_t bits, std::vector<std::string>* log) {
    Choices choices;
    for (int i = 0; i < kMost; ++i)
      choices.digits_.push_back({int(bits >> (5 * i) & 31), kLargest});
    choices.log_ = log;
    return choices;
  }

  /// Says what a step does; heard only when a counterexample is replayed.
  bool logs() const { return log_ != nullptr; }
  void say(std::string line) {
    if (log_) log_->push_back(std::move(line));
  }

 private:
  struct Digit {
    int value, count;
  };

  int pick(int count) {
    if (count < 1 || count > kLargest) throw std::length_error("a choice among too many");
    if (count == 1) return 0;
    if (used_ == digits_.size()) digits_.push_back({0, count});
    return digits_[used_++].value;
  }

  std::vector<Digit> digits_;
  std::size_t used_ = 0;
  bool newest_ = true;
  std::vector<std::string>* log_ = nullptr;
};

}  // namespace portwave::weak_memory
