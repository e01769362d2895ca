#include "scenario/reader/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "output/files/input_file.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// True for the name of an open descriptor, such as the shell's <(...) gives.
bool is_descriptor(const std::filesystem::path& file) {
  const std::string name = file.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    if (static_cast<unsigned char>(text[offset]) < 0x80U) {
      ++offset;
      continue;
    }
    const std::size_t length = utf8_length(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return std::nullopt;
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::string_view line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto continued = std::count_if(line.begin(), line.end(), is_continuation);
  return fmt::format("line {}, column {}", line_of(text, offset),
                     line.size() - static_cast<std::size_t>(continued) + 1);
}

namespace {

thread_local FilesRead* noting = nullptr;

void note(const std::filesystem::path& file, const std::string& text) {
  if (noting == nullptr) return;
  const auto sum = ::crc32_z(0, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  noting->files.push_back({file, static_cast<std::uint32_t>(sum)});
}

}  // namespace

FilesRead::FilesRead(const std::filesystem::path& folder, OutsideFiles outside, std::string whose)
    : whose_(std::move(whose)), outer_(std::exchange(noting, this)) {
  if (outside == OutsideFiles::refused) folder_ = plain_folder(folder);
}
FilesRead::~FilesRead() { noting = outer_; }

void FilesRead::note_plugin(const std::filesystem::path& path) {
  if (noting != nullptr) noting->plugins.push_back(path);
}

std::string FilesRead::refusal_of(const std::filesystem::path& path) const {
  if (folder_.empty() || lies_within(folder_, path)) return {};
  return fmt::format(
      "lies outside of the folder of the {}.\nIf you trust it, give --allow-outside-files; in C++ "
      "OutsideFiles::allowed",
      whose_);
}

FileText read_text_file(const std::filesystem::path& path, Pipes pipes, std::size_t most_bytes) {
  if (noting != nullptr) {
    if (std::string why = noting->refusal_of(path); !why.empty()) return {{}, std::move(why)};
  }
  const InputFile file(path, pipes == Pipes::handed_over && is_descriptor(path));
  if (!file.problem().empty()) return {{}, file.problem()};
  std::string text;
  std::string block(std::size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t count = file.read(block.data(), block.size());
    if (count == 0) break;
    if (count < 0) {
      return {{}, fmt::format("cannot be read: {}", std::generic_category().message(errno))};
    }
    text.append(block, 0, static_cast<std::size_t>(count));
    if (text.size() > most_bytes) {
      return {{}, fmt::format("is larger than {} MiB", most_bytes >> 20)};
    }
  }
  note(path, text);
  return {std::move(text), {}};
}

}  // namespace portwave::scenario_file
