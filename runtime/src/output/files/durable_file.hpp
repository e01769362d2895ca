#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <vector>

/// Files that are there when the power comes back.
/// Errors: std::runtime_error naming the file and the system's reason.
namespace portwave {

/// The error `cannot <what> "<path>": <reason>`, with the reason of a system error number.
[[noreturn]] void fail_at(const char* what, const std::filesystem::path& path, int error);

/// A file with these bytes, which are on the disk when it returns.
void write_through(const std::filesystem::path& path, std::span<const std::byte> bytes);
/// Reads a file that a run has left. A link in its place is refused: it may lead anywhere.
std::vector<std::byte> read_all(const std::filesystem::path& path);
/// The same, opened to be read piece by piece.
std::FILE* open_own(const std::filesystem::path& path);
/// Renames `from` to `to`, replacing a file of that name.
void give_name(const std::filesystem::path& from, const std::filesystem::path& to);
void remove_if_there(const std::filesystem::path& path);
bool is_there(const std::filesystem::path& path);
/// The names in a folder are on the disk when it returns, where the file system knows such a thing.
void sync_names(const std::filesystem::path& folder);

}  // namespace portwave
