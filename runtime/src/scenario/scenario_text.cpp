#include "scenario/scenario_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "scenario/scenario_limits.hpp"

namespace portwave::scenario_file {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// What a path leads to when it is there and no regular file; "" otherwise.
std::string_view other_than_file(std::filesystem::file_type type) {
  using Type = std::filesystem::file_type;
  if (type == Type::directory) return "a folder";
  if (type == Type::fifo) return "a pipe";
  if (type == Type::socket) return "a socket";
  return type == Type::character || type == Type::block ? "a device" : "";
}

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

FilesRead::FilesRead() : outer_(std::exchange(noting, this)) {}
FilesRead::~FilesRead() { noting = outer_; }

FileText read_text_file(const std::filesystem::path& file, Pipes pipes, std::size_t most_bytes) {
  const auto failed = [](std::string problem) { return FileText{{}, std::move(problem)}; };
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(file, ignored).type();
  const bool is_handed_over = pipes == Pipes::handed_over && is_descriptor(file);
  if (const std::string_view other = other_than_file(type); !other.empty()) {
    const bool is_pipe = type == std::filesystem::file_type::fifo;
    if (!is_pipe || !is_handed_over) return failed(fmt::format("is {}, not a file", other));
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return failed(fmt::format("cannot be opened: {}", std::generic_category().message(errno)));

  std::string text;
  std::string block(std::size_t{1} << 20, '\0');
  while (stream) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most_bytes) {
      return failed(fmt::format("is larger than {} MiB", most_bytes >> 20));
    }
  }
  if (stream.bad()) return failed("cannot be read");
  note(file, text);
  return {std::move(text), {}};
}

}  // namespace portwave::scenario_file
