#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <zlib.h>

namespace portwave::testing {

// The bytes of NumPy's files, made by hand from their specifications.

/// Least significant byte first.
inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

template <class Number>
std::string packed(const std::vector<Number>& values, bool big_endian = false) {
  std::string text;
  for (const Number value : values) {
    std::string bytes(sizeof(Number), '\0');
    std::memcpy(bytes.data(), &value, sizeof(Number));
    if (big_endian) std::reverse(bytes.begin(), bytes.end());
    text += bytes;
  }
  return text;
}

/// An .npy file with this header and content.
inline std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  std::string header = dictionary;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(version), 1) + little(0, 1) +
         little(header.size(), version == 1 ? 2 : 4) + header + data;
}

inline std::string npy_of(const std::string& type, const std::string& shape,
                          const std::string& data, bool fortran = false) {
  return npy("{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
                 ", 'shape': (" + shape + "), }",
             data);
}

struct ZipEntry {
  std::string name;
  std::string content;
};

struct ZipOptions {
  bool deflate = false;
  bool large_sizes = false;     ///< in the extra field, with 64 bits
  std::uint64_t flags = 0;      ///< 1: encrypted
  std::uint64_t method = 0;     ///< in place of the true one, if not 0
  std::uint64_t wrong_crc = 0;  ///< added to each CRC
  std::uint64_t claimed = 0;    ///< in place of the unpacked sizes, if not 0
  std::string comment = {};
};

inline std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 16, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zip(const std::vector<ZipEntry>& entries, const ZipOptions& options = {}) {
  std::string archive, directory;
  for (const ZipEntry& entry : entries) {
    const std::string body = options.deflate ? deflated(entry.content) : entry.content;
    const std::uint64_t method = options.method != 0 ? options.method : (options.deflate ? 8 : 0);
    const std::uint64_t crc =
        crc32_z(0, reinterpret_cast<const Bytef*>(entry.content.data()), entry.content.size()) +
        options.wrong_crc;
    const std::uint64_t size = options.claimed != 0 ? options.claimed : entry.content.size();
    const std::string sizes = options.large_sizes ? little(0xFFFFFFFF, 4) + little(0xFFFFFFFF, 4)
                                                  : little(body.size(), 4) + little(size, 4);
    const std::string extra = options.large_sizes ? little(1, 2) + little(16, 2) + little(size, 8) +
                                                        little(body.size(), 8)
                                                  : "";
    const std::string common = little(20, 2) + little(options.flags, 2) + little(method, 2) +
                               little(0, 4) + little(crc, 4) + sizes +
                               little(entry.name.size(), 2) + little(extra.size(), 2);
    directory += "PK\x01\x02" + little(20, 2) + common + little(0, 2) + little(0, 2) +
                 little(0, 2) + little(0, 4) + little(archive.size(), 4) + entry.name + extra;
    archive += "PK\x03\x04" + common + entry.name + extra + body;
  }
  const std::uint64_t begin = archive.size();
  return archive + directory + "PK\x05\x06" + little(0, 4) + little(entries.size(), 2) +
         little(entries.size(), 2) + little(directory.size(), 4) + little(begin, 4) +
         little(options.comment.size(), 2) + options.comment;
}

}  // namespace portwave::testing
