#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace portwave::testing {

/// Of the sources that the tests were built from.
std::filesystem::path source_folder();
/// A file in it, as in source_file("examples/circuit.json").
inline std::string source_file(std::string_view name) { return (source_folder() / name).string(); }

}  // namespace portwave::testing
