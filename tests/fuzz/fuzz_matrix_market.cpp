// Matrix Market files.

#include "fuzz/matrix_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace portwave;
  fuzz::read_matrix(scenario_file::parse_matrix_market, fuzz::text_of(data, size));
  return 0;
}
