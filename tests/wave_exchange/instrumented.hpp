#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "explorer.hpp"
#include "memory_model.hpp"

namespace portwave::weak_memory {

enum class Access : std::uint8_t { load, store, exchange };

/// An order that is replaced by another one in accesses to all variables of a name.
struct Weakening {
  std::string variable;
  Access access;
  std::memory_order shipped;
  Order instead;
};

/// What stands behind a variable of the shipped code.
struct Variable {
  enum class Kind : std::uint8_t {
    atomic,    ///< an atomic location of the memory
    plain,     ///< a cell of the memory, whose races are found
    constant,  ///< an atomic that is only ever given its initial value
    ignored,   ///< an atomic that is not read
  };
  std::string name;
  Kind kind = Kind::atomic;
  int at = 0;  ///< location or cell
  int initial = 0;
  std::vector<Weakening> weakened = {};
};

/// What the accesses of a thread have returned since it began with a piece of shipped code.
struct Log {
  static constexpr std::size_t kMost = 48;

  std::array<std::uint8_t, kMost> values{};
  std::uint8_t size = 0;

  void add(int value) {
    if (size == kMost) throw std::length_error("a piece of code with too many accesses");
    values[size++] = std::uint8_t(value);
  }
};

/// A thread that runs shipped code up to the point where it may be interrupted.
///
/// The code is ordinary C++ and cannot be stopped and copied. But it is deterministic: given what
/// its accesses have returned so far, it does the same again. So a thread is interrupted by an
/// exception, its state being the log of these values. It goes on by running the code from the
/// beginning, the log answering the accesses that were there already.
class Execution {
 public:
  struct Interrupted {};  ///< thrown where others come in

  Execution(Memory& memory, int thread, Choices& choices, Interrupt interrupt)
      : memory_(memory), choices_(choices), thread_(thread), interrupt_(interrupt) {}

  /// From here on accesses are those of this thread.
  static Execution& current() { return *current_; }

  /// Begins with a piece of code, or goes on with it. `word`: what it tries to claim, or null.
  /// `hint`: what it reads last before no plain access lies ahead of the claim.
  void begin(Log& log, const Variable* word, const Variable* hint) {
    current_ = this;
    log_ = &log;
    answered_ = 0;
    word_ = word;
    hint_ = hint;
    seen_of_word_ = -1;
    hint_seen_ = false;
    hopeless_ = false;
  }
  Effect last() const { return last_; }
  /// The claim cannot succeed unless others write something. What is read from here on is made up:
  /// the code gives up, and nothing comes of it.
  bool hopeless() const { return hopeless_; }

  int load(const Variable& v, std::memory_order shipped) {
    if (hopeless_) return 0;
    if (v.kind == Variable::Kind::constant) return v.initial;
    if (v.kind == Variable::Kind::plain) return noting(v, read(v));
    if (v.kind != Variable::Kind::atomic) throw std::logic_error(v.name + " is read");
    if (const int* known = answer()) return noting(v, *known);
    before(Access::load);
    const int value = memory_.load(thread_, v.at, order(v, Access::load, shipped), choices_);
    keep(value, Effect::read);
    if (says()) say("reads " + v.name + " = " + std::to_string(value));
    noting(v, value);
    const bool claims = word_ != nullptr && hint_seen_ && interrupt_ != Interrupt::everywhere;
    hopeless_ = claims && !memory_.can_exchange(thread_, word_->at, seen_of_word_);
    return value;
  }
  void store(const Variable& v, int value, std::memory_order shipped) {
    if (v.kind == Variable::Kind::ignored) return;
    if (v.kind == Variable::Kind::plain) return write(v, value);
    if (v.kind == Variable::Kind::constant) {
      if (value != v.initial) throw std::logic_error(v.name + " is not constant");
      return;
    }
    if (answer() != nullptr) return;
    before(Access::store);
    memory_.store(thread_, v.at, value, order(v, Access::store, shipped), choices_);
    keep(0, Effect::wrote);
    if (says()) say("sets " + v.name + " = " + std::to_string(value));
  }
  /// Strong, as weak ones in a loop might as well be. Returns what was there.
  int exchange_if(const Variable& v, int expected, int desired, std::memory_order shipped) {
    if (hopeless_) return expected + 1;
    if (v.kind != Variable::Kind::atomic) throw std::logic_error(v.name + " is exchanged");
    if (const int* known = answer()) return *known;
    before(Access::exchange);
    const int seen = memory_.exchange_if(thread_, v.at, expected, desired,
                                         order(v, Access::exchange, shipped), choices_);
    keep(seen, seen == expected ? Effect::exchanged : Effect::read);
    if (says()) {
      say((seen == expected ? "sets " : "fails to set ") + v.name + " from " +
          std::to_string(expected) + " to " + std::to_string(desired));
    }
    return seen;
  }
  int add_one(const Variable& v, std::memory_order shipped) {
    if (v.kind != Variable::Kind::atomic) throw std::logic_error(v.name + " is exchanged");
    if (const int* known = answer()) return *known;
    before(Access::exchange);
    const int seen = memory_.exchange(
        thread_, v.at, order(v, Access::exchange, shipped), [](int value) { return value + 1; },
        choices_);
    keep(seen, Effect::exchanged);
    if (says()) say("adds 1 to " + v.name + " = " + std::to_string(seen));
    return seen;
  }

  int read(const Variable& v) {
    if (const int* known = answer()) return *known;
    const int value = memory_.read(thread_, v.at, v.name.c_str());
    log_->add(value);
    ++answered_;
    return value;
  }
  void write(const Variable& v, int value) {
    if (answer() != nullptr) return;
    memory_.write(thread_, v.at, value, v.name.c_str());
    log_->add(0);
    ++answered_;
  }
  /// What the world outside decides: 0 … count − 1.
  int any(int count) {
    if (const int* known = answer()) return *known;
    const int value = choices_.any(count);
    log_->add(value);
    ++answered_;
    return value;
  }

 private:
  /// The next value of the log, if the access was there already.
  const int* answer() {
    if (answered_ == log_->size) return nullptr;
    known_ = log_->values[answered_++];
    return &known_;
  }
  void before(Access next) const {
    const bool wrote = last_ == Effect::wrote || last_ == Effect::exchanged;
    const bool stops = interrupt_ == Interrupt::everywhere     ? last_ != Effect::local
                       : interrupt_ == Interrupt::after_writes ? wrote
                                                               : wrote && next != Access::store;
    if (stops) throw Interrupted{};
  }
  void keep(int value, Effect effect) {
    log_->add(value);
    ++answered_;
    last_ = effect;
  }
  int noting(const Variable& v, int value) {
    if (&v == word_) seen_of_word_ = value;
    if (&v == hint_) hint_seen_ = true;
    return value;
  }
  static Order order(const Variable& v, Access access, std::memory_order shipped) {
    for (const Weakening& w : v.weakened) {
      if (w.access == access && w.shipped == shipped) return w.instead;
    }
    switch (shipped) {
      case std::memory_order_relaxed:
        return Order::relaxed;
      case std::memory_order_acquire:
        return Order::acquire;
      case std::memory_order_release:
        return Order::release;
      case std::memory_order_acq_rel:
        return Order::acq_rel;
      default:
        throw std::logic_error("an order that the memory model does not have");
    }
  }
  bool says() const { return choices_.logs(); }
  void say(const std::string& what) {
    choices_.say("thread " + std::to_string(thread_) + " " + what);
  }

  static inline Execution* current_ = nullptr;

  Memory& memory_;
  Choices& choices_;
  const int thread_;
  const Interrupt interrupt_;
  Log* log_ = nullptr;
  std::size_t answered_ = 0;
  int known_ = 0;
  Effect last_ = Effect::local;
  const Variable* word_ = nullptr;
  const Variable* hint_ = nullptr;
  int seen_of_word_ = -1;
  bool hint_seen_ = false;
  bool hopeless_ = false;
};

/// The atomics policy of the explored instantiations: the shipped code with these runs on the
/// memory model, and each atomic access is a point where other threads may come in.
struct ModelAtomics {
  template <class T>
  class Atomic {
   public:
    Atomic(T initial = {}) : initial_(encoded(initial)) {}  // NOLINT: as std::atomic
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order order) const {
      return decoded(Execution::current().load(*variable_, order));
    }
    void store(T value, std::memory_order order) {
      Execution::current().store(*variable_, encoded(value), order);
    }
    T fetch_add(T one, std::memory_order order) {
      if (one != 1) throw std::logic_error("the memory model adds 1 only");
      return decoded(Execution::current().add_one(*variable_, order));
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order,
                                 std::memory_order /*on_failure*/) {
      const T seen = decoded(
          Execution::current().exchange_if(*variable_, encoded(expected), encoded(desired), order));
      const bool same = seen == expected;
      expected = seen;
      return same;
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order order) {
      return compare_exchange_strong(expected, desired, order, order);
    }

    int initial() const { return initial_; }
    void bind(const Variable& variable) { variable_ = &variable; }

   private:
    static constexpr int kLargest = 255;  ///< stands for the largest T

    static int encoded(T value) {
      if (value == std::numeric_limits<T>::max() && sizeof(T) > 1) return kLargest;
      if (value < T{} || static_cast<std::uint64_t>(value) >= std::uint64_t{kLargest}) {
        throw std::length_error("a value that the memory model has no room for");
      }
      return static_cast<int>(value);
    }
    static T decoded(int value) {
      return value == kLargest ? std::numeric_limits<T>::max() : static_cast<T>(value);
    }

    int initial_;
    const Variable* variable_ = nullptr;
  };

  /// The memory has the numbers of the values that there have been.
  template <class T>
  class Plain {
   public:
    const T& get() const { return values_.at(std::size_t(Execution::current().read(*variable_))); }
    void set(const T& value) {
      std::size_t number = 0;
      while (number < values_.size() && !(values_[number] == value)) ++number;
      if (number == values_.size()) values_.push_back(value);
      Execution::current().write(*variable_, int(number));
    }
    int initial() const { return 0; }
    void bind(const Variable& variable) { variable_ = &variable; }

   private:
    std::deque<T> values_{T{}};
    const Variable* variable_ = nullptr;
  };

  /// Of a channel; the waves of a message are a stamp.
  struct SlotMemory {
    Atomic<std::uint64_t> epochs[2];
    Plain<std::uint64_t> stamps[2];
  };
  struct Slots {
    SlotMemory* memory;
    std::size_t last;  ///< 1, or 0 to have one slot only
    Atomic<std::uint64_t>& epoch(std::size_t slot) const { return memory->epochs[slot & last]; }
    Plain<std::uint64_t>* waves(std::size_t slot) const { return &memory->stamps[slot & last]; }
  };
};

}  // namespace portwave::weak_memory
