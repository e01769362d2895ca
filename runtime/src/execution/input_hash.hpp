#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "portwave/runtime/execution/stepper.hpp"

namespace portwave {

/// FNV-1a.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  void add(double number) {
    unsigned char bytes[sizeof(double)];
    std::memcpy(bytes, &number, sizeof(double));
    for (const unsigned char byte : bytes) add_byte(byte);
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }

  std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// What a snapshot has to fit: how a system is made, and the options that its steps depend on.
void add(Hash& hash, const System& system);
void add(Hash& hash, const StepperOptions& options, const CouplingMethod& method);

}  // namespace portwave
