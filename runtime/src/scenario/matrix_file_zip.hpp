#pragma once

#include <map>
#include <string>
#include <string_view>

namespace portwave::scenario_file {

/// The members of a zip archive, unpacked and checked against their CRC-32: stored or deflated,
/// sizes of 32 or 64 bits, no encryption and no parts on other disks.
/// Errors: MatrixFileDefect.
std::map<std::string, std::string> unzip(std::string_view bytes);

}  // namespace portwave::scenario_file
