#include "report/run_folder.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace portwave::report {
namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    throw std::runtime_error(fmt::format("cannot read \"{}\": {}", path.string(),
                                         std::generic_category().message(errno)));
  }
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    throw std::runtime_error(
        fmt::format("\"{}\" is not what a run writes: it is no JSON object", path.string()));
  }
  return json;
}

}  // namespace

RunFolder RunFolder::read(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw std::runtime_error(fmt::format("there is no folder \"{}\"", folder.string()));
  }
  if (!std::filesystem::exists(folder / "summary.json", ignored)) {
    throw std::runtime_error(
        fmt::format("\"{}\" holds no results: there is no summary.json, which \"portwave run "
                    "SCENARIO --out DIR\" writes at its end",
                    folder.string()));
  }
  RunFolder out{folder, read_json(folder / "summary.json"), nullptr, {}};
  if (!out.summary.contains("steps") || !out.summary.contains("certificate")) {
    throw std::runtime_error(
        fmt::format("\"{}\" is not the summary of a run", (folder / "summary.json").string()));
  }
  if (std::filesystem::exists(folder / "network.json", ignored)) {
    out.network = read_json(folder / "network.json");
    if (const nlohmann::json& units = at(out.network, "units"); units.is_object()) {
      for (const auto& [label, unit] : units.items()) out.units[label] = text_or(unit, "");
    }
  }
  return out;
}

std::string RunFolder::title() const { return text_or(at(summary, "scenario"), "a run"); }

double number_or(const nlohmann::json& json, double otherwise) {
  return json.is_number() ? json.get<double>() : otherwise;
}

std::string text_or(const nlohmann::json& json, const std::string& otherwise) {
  return json.is_string() ? json.get<std::string>() : otherwise;
}

}  // namespace portwave::report
