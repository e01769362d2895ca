#include "adapters/structures/structure_files.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {
namespace {

constexpr const char* kMain = "SystemStructure.ssd";

/// %20 as a blank; nothing for a sequence that is none, and for the character 0.
std::optional<std::string> decoded(std::string_view uri) {
  std::string out;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      out += uri[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = uri.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() < 2 || error != std::errc() || end != digits.data() + 2 || byte == 0) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

/// "scheme" of "scheme:rest"; empty: there is none.
std::string_view scheme_of(std::string_view uri) {
  const std::size_t colon = uri.find(':');
  if (colon == std::string_view::npos || uri.find('/') < colon) return {};
  const std::string_view scheme = uri.substr(0, colon);
  const bool is_scheme = !scheme.empty() && std::ranges::all_of(scheme, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  return is_scheme ? scheme : std::string_view();
}

bool leads_out(const std::filesystem::path& path) {
  const std::filesystem::path plain = path.lexically_normal();
  return plain.is_absolute() || (!plain.empty() && *plain.begin() == "..");
}

}  // namespace

std::string_view proxied_file(std::string_view uri) {
  constexpr std::string_view kScheme = "proxyfmu://", kFile = "?file=";
  if (!uri.starts_with(kScheme)) return {};
  const std::size_t end = uri.find(kFile);
  if (end == std::string_view::npos) return {};
  std::string_view host = uri.substr(kScheme.size(), end - kScheme.size());
  host = host.substr(0, host.find(':'));
  if (host != "localhost" && host != "127.0.0.1") return {};
  return uri.substr(end + kFile.size());
}

StructureFiles::StructureFiles(const std::filesystem::path& file) {
  if (file.extension() != ".ssp") {
    folder_ = file.parent_path();
    main_ = file.filename().string();
    return;
  }
  const files::Archive archive(file, "package of a system structure");
  if (!archive.has(kMain)) {
    throw ConfigError(
        "", fmt::format("is no package of a system structure: there is no {} in it", kMain));
  }
  scratch_ = std::make_shared<files::ScratchFolder>();
  archive.unpack("", scratch_->path());
  folder_ = scratch_->path();
  main_ = kMain;
}

std::optional<std::filesystem::path> StructureFiles::find(const std::string& uri,
                                                          std::string& refusal) const {
  const std::string_view proxied = proxied_file(uri);
  std::string_view rest = proxied.empty() ? uri : proxied;
  const auto refuse = [&](std::string why) {
    refusal = fmt::format("{} {}", in_quotes(uri), why);
    return std::nullopt;
  };
  if (uri.empty()) return refuse("names no file");
  if (const std::string_view scheme = scheme_of(rest); !scheme.empty()) {
    constexpr std::string_view kFile = "file://";
    if (!rest.starts_with(kFile) || is_package()) {
      return refuse(is_package() ? "must be a path within the package"
                                 : "is not in a file: FMUs that run on other machines "
                                   "are not taken");
    }
    rest.remove_prefix(kFile.size());
    if (!rest.starts_with('/')) return refuse("names a file of another machine");
  }
  if (rest.find('#') != std::string_view::npos) return refuse("names a part of a file");
  const auto name = decoded(rest);
  if (!name) return refuse("is no URI: '%' needs two digits behind it");
  const std::filesystem::path path(*name);
  if (is_package() && leads_out(path)) return refuse("leads out of the package");
  std::filesystem::path file = folder_ / path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return refuse(is_package() ? "is not in the package" : "is no file that can be read");
  }
  return file;
}

std::string StructureFiles::text_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  if (!error && bytes > files::archive_limits::kDescriptionBytes) {
    throw ConfigError("", fmt::format("{} is larger than {} MiB", file.filename().string(),
                                      files::archive_limits::kDescriptionBytes >> 20));
  }
  std::ifstream in(file, std::ios::binary);
  if (error || !in) throw ConfigError("", fmt::format("{} cannot be read", file.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace portwave::structures
