#pragma once

// How an engine and the process of an FMU speak: memory that both have, calls as bytes in it, and for each direction a
// word that counts what was said.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "adapters/fmi/instance/fmu_instance.hpp"
#include "adapters/fmi/instance/fmu_library.hpp"

namespace portwave::fmi {

/// Counts with every change of what a channel is, or of how calls are written.
#ifdef PORTWAVE_FMU_PROTOCOL
inline constexpr std::uint32_t kFmuProtocol = PORTWAVE_FMU_PROTOCOL;
#else
inline constexpr std::uint32_t kFmuProtocol = 3;
#endif

/// The descriptors that a host is started with.
inline constexpr int kChannelDescriptor = 3;
inline constexpr int kLifelineDescriptor = 4;  ///< at its end when the engine's process is gone

enum class Operation : std::uint32_t {
  none,  ///< the host is between two calls
  load,
  instantiate,
  set_text,
  configure,
  initialise,
  get,
  set,
  step,
  means,
  save,
  restore,
  release,
  write_state,  ///< keeps the bytes of a state, and tells how many
  fetch_state,  ///< tells them
  read_state,
  grow,  ///< the area has become larger
  end,   ///< free the instance and exit
};

/// A count that one process raises and another one waits for.
class alignas(64) Doorbell {
 public:
  using Clock = std::chrono::steady_clock;

  std::uint32_t rung() const { return count_.load(std::memory_order_acquire); }
  void ring();
  /// True as soon as it has been rung since `seen`; false at the time given.
  bool wait(std::uint32_t seen, Clock::time_point until);

 private:
  std::atomic<std::uint32_t> count_{0}, sleeps_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The beginning of the memory that both have. What is in it may be wrong in any way when an FMU has written over it.
struct Channel {
  static constexpr std::uint64_t kMagic = 0x31554d4657505750;
  static constexpr std::size_t kVersionBytes = 32;
  static constexpr std::size_t kTextBytes = 8192;

  enum Outcome : std::uint32_t {
    kDone,
    kFault,    ///< of a call: FmuFault
    kRefused,  ///< the library cannot be used: ConfigError
  };

  // The same in every protocol.
  std::uint64_t magic = kMagic;
  std::uint32_t engine_protocol = kFmuProtocol, host_protocol = 0;
  char engine_version[kVersionBytes] = {}, host_version[kVersionBytes] = {};
  Doorbell request, answer;

  // Of this protocol.
  std::uint64_t request_bytes = 0;
  std::atomic<std::uint32_t> now_in{0};   ///< the operation that the host is in
  std::atomic<std::int64_t> since_ns{0};  ///< when it began it, by the steady clock
  std::uint32_t outcome = kDone;
  std::uint32_t failed_in = 0;  ///< operation
  std::uint32_t text_bytes = 0;
  char text[kTextBytes] = {};  ///< of the fault
  FmuLog log;
};
static_assert(std::is_trivially_destructible_v<Channel>);

/// Where the area for calls begins in the file; answers are written into them. It is mapped by itself, because it may grow,
/// and for every size of pages.
inline constexpr std::size_t kAreaBegins = std::size_t{64} << 10;
static_assert(sizeof(Channel) <= kAreaBegins);

/// Writes calls, one after the other.
class MessageWriter {
 public:
  explicit MessageWriter(std::span<std::byte> area) : area_(area) {}

  std::size_t size() const { return size_; }
  std::size_t left() const { return area_.size() - size_; }
  void clear() { size_ = 0; }
  void move_to(std::span<std::byte> area) { area_ = area; }

  template <class Number>
  void put(Number value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    put_bytes(&value, sizeof(value));
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    put_bytes(text.data(), text.size());
  }
  void put_bytes(const void* bytes, std::size_t count) {
    if (count > left()) throw std::logic_error("a call that does not fit its area");
    if (count > 0) std::memcpy(area_.data() + size_, bytes, count);
    size_ += count;
  }
  /// Room for an answer; its place.
  std::size_t put_room(std::size_t count) {
    if (count > left()) throw std::logic_error("a call that does not fit its area");
    size_ += count;
    return size_ - count;
  }
  void put_list(const VariableList& list);
  static std::size_t size_of(const VariableList& list);
  void put_needs(const LibraryNeeds& needs);
  void put_uses(const InstanceUses& uses);
  static std::size_t size_of(const InstanceUses& uses);

 private:
  std::span<std::byte> area_;
  std::size_t size_ = 0;
};

/// Reads them. Errors: std::runtime_error at the end of what there is.
class MessageReader {
 public:
  explicit MessageReader(std::span<std::byte> from) : left_(from) {}

  bool at_end() const { return left_.empty(); }
  template <class Number>
  Number take() {
    Number value;
    take_bytes(&value, sizeof(value));
    return value;
  }
  std::string take_text();
  void take_bytes(void* to, std::size_t count) {
    const std::span<std::byte> from = take_room(count);
    if (count > 0) std::memcpy(to, from.data(), count);
  }
  std::span<std::byte> take_room(std::size_t count) {
    if (count > left_.size()) throw std::runtime_error("a call is cut off");
    const std::span<std::byte> out = left_.first(count);
    left_ = left_.subspan(count);
    return out;
  }
  /// Replaces what is in the list.
  void take_list(VariableList& list);
  LibraryNeeds take_needs();
  InstanceUses take_uses();

 private:
  template <class Number>
  void take_numbers(std::vector<Number>& numbers) {
    const auto count = take<std::uint64_t>();
    if (count > left_.size() / sizeof(Number)) throw std::runtime_error("a list is cut off");
    numbers.resize(count);
    take_bytes(numbers.data(), count * sizeof(Number));
  }

  std::span<std::byte> left_;
};

}  // namespace portwave::fmi
