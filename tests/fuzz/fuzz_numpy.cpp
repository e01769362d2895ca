// NumPy's arrays and SciPy's sparse matrices, as they are and, so that more than the checksum of a zip
// archive is tried, with that made right.

#include <zlib.h>

#include "fuzz/matrix_input.hpp"

namespace {

using namespace portwave;

std::uint64_t number_at(const std::string& bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = count; i-- > 0;) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + static_cast<std::size_t>(i)]);
  }
  return value;
}

/// What a member that is stored or deflated unpacks to; at most a megabyte.
std::string unpacked(const std::string& bytes, std::size_t from, std::size_t size, bool deflated) {
  if (!deflated) return bytes.substr(from, size);
  std::string out(std::size_t{1} << 20, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {};
  std::string in = bytes.substr(from, size);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

/// Checksums of the entries of the directory: APPNOTE.TXT, 4.3.12.
void repair_checksums(std::string& bytes) {
  for (std::size_t at = bytes.find("PK\x01\x02"); at != std::string::npos;
       at = bytes.find("PK\x01\x02", at + 4)) {
    if (at + 46 > bytes.size()) return;
    const std::uint64_t method = number_at(bytes, at + 10, 2), size = number_at(bytes, at + 20, 4);
    const std::uint64_t header = number_at(bytes, at + 42, 4);
    if (header + 30 > bytes.size()) continue;
    const std::uint64_t from =
        header + 30 + number_at(bytes, header + 26, 2) + number_at(bytes, header + 28, 2);
    if (from > bytes.size() || size > bytes.size() - from) continue;
    const std::string contents = unpacked(bytes, from, size, method == 8);
    const auto sum = static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const unsigned char*>(contents.data()), contents.size()));
    for (int i = 0; i < 4; ++i) {
      bytes[at + 16 + static_cast<std::size_t>(i)] = static_cast<char>(sum >> (8 * i) & 0xff);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::read_matrix(scenario_file::parse_dense_npy, bytes);
  fuzz::read_matrix(scenario_file::parse_sparse_npz, bytes);
  std::string repaired(bytes);
  repair_checksums(repaired);
  fuzz::read_matrix(scenario_file::parse_sparse_npz, repaired);
  return 0;
}
