// A folder of results, of which a page is made: summary.json, network.json, trajectory.csv and
// energy.csv, in this order, with a line "====" between two.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>

#include <portwave/runtime/report/report.hpp>

#include "fuzz/fuzz_target.hpp"
#include "report/page.hpp"
#include "report/run_folder.hpp"
#include "report/run_page.hpp"

namespace {

using namespace portwave;

constexpr std::array kFiles = {"summary.json", "network.json", "trajectory.csv", "energy.csv"};
constexpr std::string_view kBetween = "\n====\n";

/// In memory where there is such a folder.
struct Folder {
  std::filesystem::path path;

  Folder() {
    const bool has_memory = std::filesystem::is_directory("/dev/shm");
    const std::filesystem::path above =
        has_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (above / "portwave-fuzz-XXXXXX").string();
    fuzz::expect(::mkdtemp(name.data()) != nullptr, "there is a folder for files");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// False where there is nothing more: then there is no such file.
bool write_next(const std::filesystem::path& to, std::string_view& rest) {
  std::filesystem::remove(to);
  if (rest.empty()) return false;
  const std::size_t end = std::min(rest.find(kBetween), rest.size());
  std::ofstream(to, std::ios::binary) << rest.substr(0, end);
  rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::string_view rest = fuzz::text_of(data, size);
  for (const char* const name : kFiles) write_next(folder.path / name, rest);
  try {
    const report::RunFolder run = report::RunFolder::read(folder.path);
    // What is said must stand in a page, whether this build has what draws it or not.
    fuzz::expect(!report::page_json(report::run_page(run)).empty(), "a page has data");
    fuzz::expect(!report::page_json(report::comparison_page(run, run)).empty(),
                 "so has that of two");
  } catch (const std::runtime_error& error) {
    fuzz::expect(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
