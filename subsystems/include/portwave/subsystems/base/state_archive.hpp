#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace portwave {

/// Writes what a run is made of into bytes, or reads it back: one function per class, which names
/// its members in one order, serves both ways.
///
/// Bytes are those of this machine and of this build. Neither direction allocates, but for members
/// that grow and for the first use of a buffer.
class StateArchive {
 public:
  /// Bytes that do not fit what they are read into. Whoever restores checks before that they were
  /// written by the like (Stepper::restore), so that this is a defect of the program.
  class Mismatch : public std::logic_error {
    using std::logic_error::logic_error;
  };

  /// Writes over what is in `bytes`, whose memory it uses again; `finish` ends it.
  static StateArchive writer(std::vector<std::byte>& bytes) { return StateArchive(&bytes, {}); }
  static StateArchive reader(std::span<const std::byte> bytes) {
    return StateArchive(nullptr, bytes);
  }

  bool reads() const { return out_ == nullptr; }

  template <class T>
  void value(T& member) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    if (reads()) {
      std::memcpy(&member, take(sizeof(T)), sizeof(T));
    } else {
      std::memcpy(room(sizeof(T)), &member, sizeof(T));
    }
  }
  template <class... T>
  void values(T&... members) {
    (value(members), ...);
  }
  /// As many as there are: the size is not in the archive.
  template <class T>
  void array(std::span<T> members) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    const std::size_t size = members.size() * sizeof(T);
    if (size == 0) return;
    if (reads()) {
      std::memcpy(members.data(), take(size), size);
    } else {
      std::memcpy(room(size), members.data(), size);
    }
  }
  template <class Vector>
  void array(Vector& members) {
    array(std::span(members));
  }
  /// One whose size may differ from that of the same member elsewhere.
  template <class Vector>
  void vector(Vector& members) {
    std::uint64_t size = members.size();
    value(size);
    if (reads()) {
      if (size > rest() / sizeof(typename Vector::value_type)) throw_mismatch();
      members.resize(static_cast<std::size_t>(size));
    }
    array(members);
  }
  /// Reading: whether the next bytes are those of `members`; they are skipped then.
  template <class T>
  bool skip_if_equal(std::span<const T> members) {
    const std::size_t size = members.size() * sizeof(T);
    if (rest() < size) throw_mismatch();
    if (size > 0 && std::memcmp(in_.data() + position_, members.data(), size) != 0) return false;
    position_ += size;
    return true;
  }

  /// Ends a writer: the buffer is as long as what was written. Ends a reader: all has been read.
  void finish() {
    if (!reads()) return out_->resize(position_);
    if (position_ != in_.size()) throw_mismatch();
  }

 private:
  StateArchive(std::vector<std::byte>* out, std::span<const std::byte> in) : out_(out), in_(in) {}

  std::size_t rest() const { return in_.size() - position_; }
  const std::byte* take(std::size_t size) {
    if (rest() < size) throw_mismatch();
    return in_.data() + std::exchange(position_, position_ + size);
  }
  std::byte* room(std::size_t size) {
    if (out_->size() - position_ < size) out_->resize(2 * out_->size() + size + 256);
    return out_->data() + std::exchange(position_, position_ + size);
  }
  [[noreturn]] static void throw_mismatch() {
    throw Mismatch("an archived state does not fit what it is restored into");
  }

  std::vector<std::byte>* out_;
  std::span<const std::byte> in_;
  std::size_t position_ = 0;
};

}  // namespace portwave
