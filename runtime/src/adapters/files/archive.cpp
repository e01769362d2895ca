#include "adapters/files/archive.hpp"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>
#include <zip.h>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::files {
namespace {

[[noreturn]] void refuse_archive(std::string what) { throw ConfigError("", std::move(what)); }

/// Why a name may not be unpacked; empty: it may.
std::string_view defect_of_name(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.front() == '/') return "has an absolute path";
  if (name.find('\\') != std::string_view::npos) return "has a backslash in its path";
  if (name.size() > 1 && name[1] == ':') return "names a drive";
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return "leads out of the archive's folder";
    at = end + 1;
  }
  return {};
}

}  // namespace

struct Archive::Zip {
  zip_t* handle = nullptr;
  ~Zip() {
    if (handle != nullptr) zip_discard(handle);
  }
};

Archive::Archive(const std::filesystem::path& file, std::string_view what)
    : zip_(std::make_unique<Zip>()) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  if (error) refuse_archive(fmt::format("cannot be read: {}", error.message()));
  if (bytes > archive_limits::kFileBytes) {
    refuse_archive(fmt::format("is larger than {} MiB", archive_limits::kFileBytes >> 20));
  }
  int code = 0;
  // Not ZIP_CHECKCONS: tools write archives whose local headers differ from the directory, which alone is used.
  zip_->handle = zip_open(file.c_str(), ZIP_RDONLY, &code);
  if (zip_->handle == nullptr) {
    zip_error_t why;
    zip_error_init_with_code(&why, code);
    const std::string text = zip_error_strerror(&why);
    zip_error_fini(&why);
    refuse_archive(fmt::format("is no {}, which is a zip archive: {}", what, text));
  }
  check_members(bytes);
}

Archive::~Archive() = default;

void Archive::check_members(std::uint64_t file_bytes) {
  const std::int64_t members = zip_get_num_entries(zip_->handle, 0);
  if (members > archive_limits::kMembers) {
    refuse_archive(fmt::format("holds {} files, more than {}", members, archive_limits::kMembers));
  }
  std::uint64_t sum = 0;
  std::unordered_set<std::string_view> names;
  for (std::int64_t i = 0; i < members; ++i) {
    zip_stat_t stat;
    const auto number = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(zip_->handle, number, ZIP_FL_ENC_RAW, &stat) != 0) {
      refuse_archive(fmt::format("file {} of the archive cannot be read", i));
    }
    const std::string_view name = stat.name;
    const auto refuse_member = [&](std::string_view why) {
      refuse_archive(
          fmt::format("the file {} in it {}: nothing was unpacked", in_quotes(name), why));
    };
    if (const auto why = defect_of_name(name); !why.empty()) refuse_member(why);
    // Which of two is meant others may see otherwise.
    if (!names.insert(name).second) refuse_member("is there twice");
    if (stat.encryption_method != ZIP_EM_NONE) refuse_member("is encrypted");
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    zip_file_get_external_attributes(zip_->handle, number, 0, &system, &attributes);
    constexpr zip_uint32_t kTypeBits = 0170000U << 16, kLink = 0120000U << 16;
    if (system == ZIP_OPSYS_UNIX && (attributes & kTypeBits) == kLink) refuse_member("is a link");
    if (stat.size > std::numeric_limits<std::uint64_t>::max() - sum) refuse_member("is too large");
    sum += stat.size;
  }
  const std::uint64_t most =
      std::min(archive_limits::kUnpackedBytes,
               std::max(archive_limits::kFreeBytes, archive_limits::kMostRatio * file_bytes));
  if (sum > most) {
    refuse_archive(
        fmt::format("unpacks to {} MiB, and {} bytes do not hold that much: it is not unpacked",
                    sum >> 20, file_bytes));
  }
}

void Archive::read(std::int64_t member, std::uint64_t most,
                   const std::function<void(std::string_view)>& take) const {
  zip_stat_t stat;
  zip_stat_index(zip_->handle, static_cast<zip_uint64_t>(member), 0, &stat);
  const std::string name = stat.name;
  zip_file_t* const file = zip_fopen_index(zip_->handle, static_cast<zip_uint64_t>(member), 0);
  if (file == nullptr) {
    refuse_archive(fmt::format("the file {} in it cannot be unpacked: {}", in_quotes(name),
                               zip_strerror(zip_->handle)));
  }
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closes(file, &zip_fclose);
  std::vector<char> block(std::size_t{1} << 16);
  std::uint64_t sum = 0;
  for (;;) {
    const zip_int64_t count = zip_fread(file, block.data(), block.size());
    if (count < 0) {
      refuse_archive(fmt::format("the file {} in it is damaged: {}", in_quotes(name),
                                 zip_file_strerror(file)));
    }
    if (count == 0) return;
    sum += static_cast<std::uint64_t>(count);
    if (sum > std::min<std::uint64_t>(most, stat.size)) {
      refuse_archive(fmt::format("the file {} in it is larger than it may be", in_quotes(name)));
    }
    take({block.data(), static_cast<std::size_t>(count)});
  }
}

bool Archive::has(std::string_view name) const {
  return zip_name_locate(zip_->handle, std::string(name).c_str(), ZIP_FL_ENC_RAW) >= 0;
}

std::string Archive::content(std::string_view name) const {
  const std::int64_t member =
      zip_name_locate(zip_->handle, std::string(name).c_str(), ZIP_FL_ENC_RAW);
  std::string out;
  if (member < 0) return out;
  read(member, archive_limits::kDescriptionBytes, [&out](std::string_view piece) { out += piece; });
  return out;
}

void Archive::unpack(std::string_view prefix, const std::filesystem::path& folder) const {
  const std::int64_t members = zip_get_num_entries(zip_->handle, 0);
  for (std::int64_t i = 0; i < members; ++i) {
    const std::string_view name =
        zip_get_name(zip_->handle, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (!name.starts_with(prefix)) continue;
    const std::filesystem::path to = folder / name;  // checked: below the folder
    std::error_code error;
    if (name.ends_with('/')) {
      std::filesystem::create_directories(to, error);
      continue;
    }
    std::filesystem::create_directories(to.parent_path(), error);
    std::ofstream out(to, std::ios::binary);
    read(i, archive_limits::kUnpackedBytes, [&out](std::string_view piece) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    });
    out.close();
    if (!out) refuse_archive(fmt::format("the file {} in it cannot be written", in_quotes(name)));
    // Programs that an FMU brings may be started by it.
    std::filesystem::permissions(to, std::filesystem::perms::owner_all, error);
  }
}

std::string Archive::platforms() const {
  std::set<std::string> found;
  constexpr std::string_view kPrefix = "binaries/";
  const std::int64_t members = zip_get_num_entries(zip_->handle, 0);
  for (std::int64_t i = 0; i < members; ++i) {
    const std::string_view name =
        zip_get_name(zip_->handle, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (!name.starts_with(kPrefix)) continue;
    const std::size_t end = name.find('/', kPrefix.size());
    if (end != std::string_view::npos)
      found.emplace(name.substr(kPrefix.size(), end - kPrefix.size()));
  }
  std::string out;
  for (const std::string& platform : found) out += (out.empty() ? "" : ", ") + printable(platform);
  return out;
}

}  // namespace portwave::files
