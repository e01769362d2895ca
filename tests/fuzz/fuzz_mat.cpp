// MATLAB's files of level 5, by variables of several names.

#include "fuzz/matrix_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace portwave;
  const std::string bytes(fuzz::text_of(data, size));
  for (const char* const variable : {"", "K", "L", "S"}) {
    fuzz::read_matrix(
        [variable](std::string_view own, std::vector<std::string>& defects) {
          return scenario_file::parse_mat(own, variable, defects);
        },
        bytes);
  }
  return 0;
}
