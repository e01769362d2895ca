#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Bytes of the well-formed UTF-8 character at the front of `text` (Unicode, table 3-7); 0 when
/// there is none.
std::size_t utf8_length(std::string_view text);

/// Text that is safe to print on one line: control characters (also the 8-bit ones and those that
/// turn the writing direction) escaped, bytes that are not UTF-8 replaced by '?', cut after `most`
/// characters.
std::string printable(std::string_view text, std::size_t most = 80);

/// printable() between double quotes: how every message quotes what a user wrote.
std::string in_quotes(std::string_view text);

/// A number in a message: NaN is shown without a sign.
std::string shown_number(double value);

}  // namespace portwave
