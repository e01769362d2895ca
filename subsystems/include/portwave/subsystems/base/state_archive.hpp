#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/archive_section.hpp"

namespace portwave {

/// Writes the state of a run into bytes, or reads it back: one function per class, which names
/// its members in one order, serves both ways.
///
/// Bytes are those of this machine and of this build. Neither direction allocates, but for members
/// that grow and for the first use of a buffer.
///
/// Bytes may be malicious: whoever reads members checks them (`expect`, `expect_finite`) before anything is
/// indexed, counted or divided by them. Bytes that this process wrote and nobody else has touched are not checked.
class StateArchive {
 public:
  using Sections = std::vector<ArchiveSection>;  ///< of the calls of `section`, in their order

  /// Bytes that no archive has written, or that do not fit their destination. The destination is then
  /// unusable until it has been read from other bytes.
  class Mismatch : public std::logic_error {
    using std::logic_error::logic_error;
  };
  /// Largest count of steps, windows and the like: the largest integer range of a double, far from
  /// overflow of further additions.
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

  /// Writes over the contents of `bytes`, whose memory it reuses; `finish` ends it.
  /// `sections`: of what was written into them before, by this process, and of what is written now; null: unknown.
  static StateArchive writer(std::vector<std::byte>& bytes, Sections* sections = nullptr) {
    return StateArchive(bytes, sections);
  }
  static StateArchive reader(std::span<const std::byte> bytes) {
    return StateArchive(bytes, nullptr);
  }
  /// Of bytes that this process wrote, with their sections, and that fit.
  static StateArchive own_reader(std::span<const std::byte> bytes, const Sections& sections) {
    return StateArchive(bytes, const_cast<Sections*>(&sections));  // NOLINT(*-const-cast): it reads
  }

  bool reads() const { return out_ == nullptr; }
  /// Whether it reads, from bytes that may be anybody's.
  bool checks() const { return reads() && sections_ == nullptr; }

  template <class... T>
  void values(T&... members) {
    static_assert(((std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)&&...));
    constexpr std::size_t kSize = (sizeof(T) + ... + 0);
    if (reads()) {
      const std::byte* from = take(kSize);
      ((read_one(members, from), from += sizeof(T)), ...);
    } else {
      std::byte* to = room(kSize);
      ((write_one(members, to), to += sizeof(T)), ...);
    }
  }
  template <class T>
  void value(T& member) {
    values(member);
  }
  /// A span of fixed length: the size is not in the archive.
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
    } else if constexpr (std::is_class_v<T>) {
      std::byte* to = room(size);
      for (const T& member : members) {
        write_one(member, to);
        to += sizeof(T);
      }
    } else {
      std::memcpy(room(size), members.data(), size);
    }
  }
  template <class Vector>
  void array(Vector& members) {
    array(std::span(members));
  }
  /// A container whose size may differ from that of the same member elsewhere.
  template <class Vector>
  void vector(Vector& members) {
    std::uint64_t size = members.size();
    value(size);
    if (reads()) {
      if (size > rest() / sizeof(typename Vector::value_type))
        throw_mismatch();  // no memory for it
      members.resize(static_cast<std::size_t>(size));
    }
    array(members);
  }
  /// The number of members that follow, each of which is archived with at least this many bytes.
  void count(std::uint64_t& members, std::size_t least_bytes) {
    value(members);
    expect(members <= rest() / least_bytes, "a number of members");
  }
  /// Reading: refuses the bytes unless a condition holds for the values read. `what` names them, as in "the
  /// number of steps".
  void expect(bool holds, const char* what) const {
    if (checks() && !holds) [[unlikely]] {
      throw_unexpected(what);
    }
  }
  void expect_finite(std::span<const double> numbers, const char* what) const {
    if (!checks()) return;
    constexpr std::uint64_t kExponent = 0x7ff0000000000000U;
    bool all = true;
    for (const double number : numbers) {
      all = all && (std::bit_cast<std::uint64_t>(number) & kExponent) != kExponent;
    }
    expect(all, what);
  }
  /// A count of steps.
  void expect_counts(std::initializer_list<std::int64_t> counts, const char* what) const {
    for (const std::int64_t count : counts) expect(count >= 0 && count <= kMostSteps, what);
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

  /// Members that seldom change, which `members` archives. Where `mark` says that bytes and owner have the same, a writer
  /// leaves them in the bytes, and a reader in their owner. `mark`: of their owner, to be set to 0 when they change.
  template <class Members>
  void section(std::uint64_t& mark, const Members& members) {
    if (sections_ == nullptr) {
      if (reads()) mark = 0;
      return members();
    }
    if (!reads() && next_section_ == sections_->size()) sections_->emplace_back();
    ArchiveSection& known = (*sections_)[next_section_++];
    if (!reads() && mark == 0) mark = new_mark();
    const std::size_t begin = reads() ? 0 : written();
    const bool is_there = known.mark == mark && mark != 0 && (reads() || known.begin == begin);
    if (is_there && known.size <= rest()) {
      cursor_ += known.size;
      return;
    }
    if (reads()) mark = 0;  // until they are read
    members();
    if (reads()) {
      mark = known.mark;
    } else {
      known = {mark, begin, written() - begin};
    }
  }

  /// Ends a writer: the buffer is cut to the written length. Ends a reader: all bytes must have been read.
  void finish() {
    if (!reads()) {
      if (sections_ != nullptr)
        sections_->resize(next_section_);  // others are of what was there before
      return out_->resize(written());
    }
    if (rest() != 0) throw_mismatch();
  }

 private:
  StateArchive(std::vector<std::byte>& out, Sections* sections)
      : out_(&out), sections_(sections), cursor_(out.data()), end_(out.data() + out.size()) {}
  StateArchive(std::span<const std::byte> in, Sections* sections)
      // A reader writes nothing there.
      : sections_(sections),
        cursor_(
            const_cast<std::byte*>(in.data())),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        end_(cursor_ + in.size()) {}

  /// Bytes read may differ from those written, and a bool must be 0 or 1: the flags of a type are
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
  /// Padding between the members of a class is no state: its previous contents would make different bytes of
  /// equal states, and get into files.
  template <class T>
  static void write_one(const T& member, std::byte* to) {
#if defined(__GNUC__) && !defined(__clang__)
    if constexpr (std::is_class_v<T>) {
      T own = member;
      __builtin_clear_padding(&own);
      std::memcpy(to, &own, sizeof(T));
      return;
    }
#endif
    std::memcpy(to, &member, sizeof(T));
  }
  /// An optional's value is followed by a flag for its presence; the rest is zeros.
  template <class T>
  static void read_one(std::optional<T>& member, const std::byte* from) {
    static_assert(sizeof(std::optional<T>) > sizeof(T));
    if (from[sizeof(T)] > std::byte{1}) throw_mismatch();
    member.reset();
    if (from[sizeof(T)] == std::byte{0}) return;
    T value{};
    read_one(value, from);
    member = value;
  }
  template <class T>
  static void write_one(const std::optional<T>& member, std::byte* to) {
    std::memset(to, 0, sizeof(member));
    if (!member) return;
    write_one(*member, to);
    to[sizeof(T)] = std::byte{1};
  }

  std::size_t rest() const { return static_cast<std::size_t>(end_ - cursor_); }
  std::size_t written() const { return out_->size() - rest(); }
  /// Of members whose values no others have.
  static std::uint64_t new_mark() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
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
    const std::size_t before = written();
    out_->resize(2 * out_->size() + size + 256);
    cursor_ = out_->data() + before;
    end_ = out_->data() + out_->size();
  }
  [[noreturn]] static void throw_unexpected(const char* what) {
    throw Mismatch(std::string(what) + " is not one that a run can reach");
  }
  [[noreturn]] static void throw_mismatch() {
    throw Mismatch("an archived state does not fit what it is restored into");
  }

  std::vector<std::byte>* out_ = nullptr;  // null: it reads
  Sections* sections_;
  std::size_t next_section_ = 0;
  std::byte* cursor_;
  std::byte* end_;
};

}  // namespace portwave
