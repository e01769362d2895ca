// Gives a target the files of a folder and, for each of them, pieces and variants that are the same
// in every run. For builds without libFuzzer.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"

namespace {

std::size_t given = 0;

void give(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  ++given;
}

/// A byte changed, a piece left out, or a piece twice.
std::string variant(std::string bytes, std::minstd_rand& random) {
  const std::size_t at = random() % bytes.size();
  const std::size_t count = std::min<std::size_t>(1 + random() % 16, bytes.size() - at);
  switch (random() % 3) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
      bytes.erase(at, count);
      break;
    default:
      bytes.insert(at, bytes.substr(at, count));
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s FOLDER VARIANTS\n", arguments[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  const int variants = std::atoi(arguments[2]);
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    give(bytes);
    std::minstd_rand random(1);
    for (int i = 0; i < variants && !bytes.empty(); ++i) {
      give(bytes.substr(
          0, bytes.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(variants)));
      give(variant(bytes, random));
    }
  }
  std::printf("%zu files, %zu inputs\n", files.size(), given);
  return files.empty() ? 1 : 0;
}
