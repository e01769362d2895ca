// Zip archives as NumPy writes them. Source: PKWARE, APPNOTE.TXT (4.3.7 local file header, 4.3.12
// central directory, 4.3.16 its end, 4.5.3 sizes of 64 bits).

#include "scenario/files/matrix_file_zip.hpp"

#include <algorithm>
#include <zlib.h>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/matrix_file.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::uint64_t kNot32 = 0xFFFFFFFFU;  // the size stands in the extra field

[[noreturn]] void fail_zip(std::string what) { throw MatrixFileDefect{std::move(what)}; }

std::string_view piece_of(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    fail_zip(": the zip archive is cut short");
  }
  return bytes.substr(offset, size);
}

std::uint64_t little_endian(std::string_view bytes, std::uint64_t offset, int count) {
  const std::string_view piece = piece_of(bytes, offset, static_cast<std::uint64_t>(count));
  std::uint64_t value = 0;
  for (int i = count; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
  }
  return value;
}

std::string inflate_beginning(std::string_view packed, std::uint64_t size, bool is_all,
                              const std::string& name) {
  auto out = inflated(packed, size, is_all, -MAX_WBITS);
  if (!out) fail_zip(fmt::format(": {} in the zip archive is damaged", in_quotes(name)));
  return *std::move(out);
}

}  // namespace

std::optional<std::string> inflated(std::string_view packed, std::uint64_t size, bool is_all,
                                    int window_bits) {
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) fail_zip(": zlib cannot be started");
  constexpr std::uint64_t kPiece = 1U << 30;  // zlib counts in 32 bits
  std::uint64_t read = 0, written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::uint64_t in = std::min(kPiece, packed.size() - read);
    const std::uint64_t room = std::min(kPiece, size - written);
    // zlib does not write to its input; its interface is older than const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += room - stream.avail_out;
    if (!is_all && written == size) break;
  }
  inflateEnd(&stream);
  if ((is_all && state != Z_STREAM_END) || written != size) return std::nullopt;
  return out;
}

ZipArchive::ZipArchive(std::string_view bytes) : bytes_(bytes) {
  if (!bytes.starts_with("PK")) fail_zip(" is no .npz file: it is not a zip archive");
  const std::size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string_view::npos) fail_zip(": the zip archive is cut short");
  const std::uint64_t count = little_endian(bytes, end + 10, 2);
  std::uint64_t at = little_endian(bytes, end + 16, 4);
  if (count == 0xFFFF || at == kNot32) fail_zip(": the zip archive has too many members");
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    members_.push_back(read_member(at));
    check_sizes(members_.back(), sum);
  }
}

// Where sizes need 64 bits they stand in the extra field 1, those that do not fit only.
void ZipArchive::read_large_sizes(std::string_view extra, Member& member) {
  while (extra.size() >= 4) {
    const std::uint64_t id = little_endian(extra, 0, 2), size = little_endian(extra, 2, 2);
    const std::string_view field = piece_of(extra, 4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    std::uint64_t at = 0;
    for (std::uint64_t* const value : {&member.unpacked, &member.packed, &member.header}) {
      if (*value != kNot32) continue;
      *value = little_endian(field, at, 8);
      at += 8;
    }
  }
}

ZipArchive::Member ZipArchive::read_member(std::uint64_t& at) const {
  if (piece_of(bytes_, at, 4) != "PK\x01\x02")
    fail_zip(": the directory of the zip archive is damaged");
  Member member{.name = {},
                .flags = little_endian(bytes_, at + 8, 2),
                .method = little_endian(bytes_, at + 10, 2),
                .crc = little_endian(bytes_, at + 16, 4),
                .packed = little_endian(bytes_, at + 20, 4),
                .unpacked = little_endian(bytes_, at + 24, 4),
                .header = little_endian(bytes_, at + 42, 4)};
  const std::uint64_t name = little_endian(bytes_, at + 28, 2);
  const std::uint64_t extra = little_endian(bytes_, at + 30, 2);
  const std::uint64_t comment = little_endian(bytes_, at + 32, 2);
  member.name = piece_of(bytes_, at + 46, name);
  read_large_sizes(piece_of(bytes_, at + 46 + name, extra), member);
  at += 46 + name + extra + comment;
  return member;
}

void ZipArchive::check_sizes(const Member& member, std::uint64_t& sum) const {
  // Deflate packs 258 bytes into 2 bits at best.
  if (member.unpacked / 1032 > member.packed + 8) {
    fail_zip(fmt::format(": {} in the zip archive is damaged: {} bytes cannot hold {}",
                         in_quotes(member.name), member.packed, member.unpacked));
  }
  constexpr std::uint64_t kMost = scenario_limits::kMatrixFileBytes;
  if (member.unpacked > kMost - sum) {
    fail_zip(fmt::format(" is larger than {} MiB when unpacked", kMost >> 20));
  }
  sum += member.unpacked;
  if (sum <= kFreeBytes || sum / kMostRatio <= bytes_.size()) return;
  fail_zip(fmt::format(
      " has {} bytes and is more than {} times as large when unpacked, which no matrix needs; if "
      "it "
      "is sound, write it without compression (scipy.sparse.save_npz(..., compressed=False))",
      bytes_.size(), kMostRatio));
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  // Of several of one name the last one counts, as in Python.
  const auto found = std::find_if(members_.rbegin(), members_.rend(),
                                  [name](const Member& own) { return own.name == name; });
  return found == members_.rend() ? nullptr : &*found;
}

std::uint64_t ZipArchive::size(std::string_view name) const {
  const Member* const member = find(name);
  return member == nullptr ? 0 : member->unpacked;
}

std::string ZipArchive::beginning(std::string_view name, std::uint64_t most) const {
  const Member* const member = find(name);
  return member == nullptr ? std::string() : unpack(*member, std::min(most, member->unpacked));
}

std::string ZipArchive::content(std::string_view name) const {
  const Member* const member = find(name);
  if (member == nullptr) return {};
  std::string content = unpack(*member, member->unpacked);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (crc != member->crc) {
    fail_zip(fmt::format(": {} in the zip archive is damaged", in_quotes(member->name)));
  }
  return content;
}

std::string ZipArchive::unpack(const Member& member, std::uint64_t size) const {
  if ((member.flags & 1U) != 0) fail_zip(fmt::format(": {} is encrypted", in_quotes(member.name)));
  if (piece_of(bytes_, member.header, 4) != "PK\x03\x04") {
    fail_zip(": the directory of the zip archive is damaged");
  }
  const std::uint64_t begin = member.header + 30 + little_endian(bytes_, member.header + 26, 2) +
                              little_endian(bytes_, member.header + 28, 2);
  const std::string_view packed = piece_of(bytes_, begin, member.packed);
  if (member.method == 8) {
    return inflate_beginning(packed, size, size == member.unpacked, member.name);
  }
  if (member.method != 0) {
    fail_zip(fmt::format(": {} is packed by method {}; stored and deflated ones can be read",
                         in_quotes(member.name), member.method));
  }
  if (packed.size() != member.unpacked) {
    fail_zip(fmt::format(": {} in the zip archive is damaged", in_quotes(member.name)));
  }
  return std::string(packed.substr(0, size));
}

}  // namespace portwave::scenario_file
