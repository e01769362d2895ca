#include "support/instruction_sets.hpp"

int main(int argc, char** argv) {
  return portwave::testing::run_tests_or_print_digests(argc, argv);
}
