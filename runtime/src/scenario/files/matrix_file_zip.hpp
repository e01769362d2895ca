#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portwave::scenario_file {

/// The first `size` bytes of what was deflated, or all, which are as many. `window_bits`: as zlib has
/// them, negative without a header. Nothing where it is damaged or has fewer.
std::optional<std::string> inflated(std::string_view packed, std::uint64_t size, bool is_all,
                                    int window_bits);

/// A zip archive: members that are stored or deflated, sizes of 32 or 64 bits, no encryption and no parts
/// on other disks. Nothing is unpacked before it is asked for, and what an archive says of its sizes is
/// checked before: that its bytes can hold so much, and that it is not more than a matrix may be. An
/// archive of small bytes does not unpack to large ones: beyond kFreeBytes to kMostRatio times its own
/// size, which is far more than sparse matrices are packed to.
/// Errors: MatrixFileDefect.
class ZipArchive {
 public:
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMostRatio = 200;

  /// `bytes` must outlive it.
  explicit ZipArchive(std::string_view bytes);

  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Bytes of a member, as the directory says. 0 where there is none.
  std::uint64_t size(std::string_view name) const;
  /// Its first bytes, at most so many. They are not checked against its CRC-32.
  std::string beginning(std::string_view name, std::uint64_t most) const;
  /// All of them, checked against its CRC-32.
  std::string content(std::string_view name) const;

 private:
  struct Member {
    std::string name;
    std::uint64_t flags, method, crc, packed, unpacked, header;
  };

  static void read_large_sizes(std::string_view extra, Member& member);
  /// Whose entry of the directory begins at `at`, which moves to the next one.
  Member read_member(std::uint64_t& at) const;
  void check_sizes(const Member& member, std::uint64_t& sum) const;
  const Member* find(std::string_view name) const;
  /// The first `size` bytes of a member that has at least as many.
  std::string unpack(const Member& member, std::uint64_t size) const;

  std::string_view bytes_;
  std::vector<Member> members_;
};

}  // namespace portwave::scenario_file
