// Scenario files.

#include "fuzz/scenario_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  portwave::fuzz::read_and_step(std::string(portwave::fuzz::text_of(data, size)), {});
  return 0;
}
