#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A number that stands for numbers and texts, in their order (FNV-1a). It detects accidental differences;
/// deliberate collisions are possible.
class Digest {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);  // so that texts do not run together
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(int number) { add(static_cast<double>(number)); }
  void add(std::uint64_t bits) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(bits >> (8 * i)));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }

  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace portwave
