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
  static StateArchive writer(std::vector<std::byte>& bytes) { return StateArchive(bytes); }
  static StateArchive reader(std::span<const std::byte> bytes) { return StateArchive(bytes); }

  bool reads() const { return out_ == nullptr; }

  template <class... T>
  void values(T&... members) {
    static_assert(((std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)&&...));
    constexpr std::size_t kSize = (sizeof(T) + ... + 0);
    if (reads()) {
      const std::byte* from = take(kSize);
      ((read_one(members, from), from += sizeof(T)), ...);
    } else {
      std::byte* to = room(kSize);
      ((std::memcpy(to, &members, sizeof(T)), to += sizeof(T)), ...);
    }
  }
  template <class T>
  void value(T& member) {
    values(member);
  }
  /// As many as there are: the size is not in the archive.
  template <class T>
  void array(std::span<T> members) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    const std::size_t size = members.size() * sizeof(T);
    if (size == 0) return;
    if (reads()) {
      const std::byte* const from = take(size);
      for (std::size_t i = 0; HasFlags<T> && i < members.size(); ++i)
        check<T>(from + i * sizeof(T));
      std::memcpy(members.data(), from, size);
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
    if (size > 0 && std::memcmp(cursor_, members.data(), size) != 0) return false;
    cursor_ += size;
    return true;
  }

  /// Ends a writer: the buffer is as long as what was written. Ends a reader: all has been read.
  void finish() {
    if (!reads()) return out_->resize(out_->size() - rest());
    if (rest() != 0) throw_mismatch();
  }

 private:
  explicit StateArchive(std::vector<std::byte>& out)
      : out_(&out), cursor_(out.data()), end_(out.data() + out.size()) {}
  explicit StateArchive(std::span<const std::byte> in)
      // A reader writes nothing there.
      : cursor_(
            const_cast<std::byte*>(in.data())),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        end_(cursor_ + in.size()) {}

  /// Bytes that are read need not be what was written, and a bool is 0 or 1: the flags of a type are
  /// itself, or those that its function `archive_flags` gives as offsets.
  template <class T>
  static constexpr bool HasFlags = std::is_same_v<T, bool> || requires {
    archive_flags(static_cast<const T*>(nullptr));
  };
  template <class T>
  static void check(const std::byte* bytes) {
    if constexpr (std::is_same_v<T, bool>) {
      if (bytes[0] > std::byte{1}) throw_mismatch();
    } else if constexpr (HasFlags<T>) {
      for (const std::size_t flag : archive_flags(static_cast<const T*>(nullptr))) {
        if (bytes[flag] > std::byte{1}) throw_mismatch();
      }
    }
  }
  template <class T>
  static void read_one(T& member, const std::byte* from) {
    check<T>(from);
    std::memcpy(&member, from, sizeof(T));
  }
  /// Behind the value of an optional stands whether there is one.
  template <class T>
  static void read_one(std::optional<T>& member, const std::byte* from) {
    static_assert(sizeof(std::optional<T>) > sizeof(T));
    if (from[sizeof(T)] > std::byte{1}) throw_mismatch();
    check<T>(from);
    std::memcpy(&member, from, sizeof(member));
  }

  std::size_t rest() const { return static_cast<std::size_t>(end_ - cursor_); }
  const std::byte* take(std::size_t size) {
    if (rest() < size) throw_mismatch();
    return std::exchange(cursor_, cursor_ + size);
  }
  std::byte* room(std::size_t size) {
    if (rest() < size) [[unlikely]] {
      grow(size);
    }
    return std::exchange(cursor_, cursor_ + size);
  }
  void grow(std::size_t size) {
    const std::size_t written = out_->size() - rest();
    out_->resize(2 * out_->size() + size + 256);
    cursor_ = out_->data() + written;
    end_ = out_->data() + out_->size();
  }
  [[noreturn]] static void throw_mismatch() {
    throw Mismatch("an archived state does not fit what it is restored into");
  }

  std::vector<std::byte>* out_ = nullptr;  // null: it reads
  std::byte* cursor_;
  std::byte* end_;
};

}  // namespace portwave
