#include "report/run_folder.hpp"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "output/files/input_file.hpp"

namespace portwave::report {
namespace {

/// Limits far beyond the files that runs write.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr int kNesting = 64;
struct TooDeep {};

std::string read_text(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("\"{}\" {}", path.string(), why));
  };
  const InputFile file(path);
  if (!file.problem().empty()) fail(file.problem());
  std::string text;
  std::string block(std::size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t count = file.read(block.data(), block.size());
    if (count == 0) return text;
    if (count < 0) fail("cannot be read: " + std::generic_category().message(errno));
    text.append(block, 0, static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) fail(fmt::format("is larger than {} MiB", kMostBytes >> 20));
  }
}

nlohmann::json read_json(const std::filesystem::path& path) {
  refuse_to_leave(path.parent_path(), path);
  const std::string text = read_text(path);
  const auto is_sound = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kNesting) throw TooDeep();
    return true;
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text, is_sound, false);
  } catch (const TooDeep&) {
    json = nlohmann::json::value_t::discarded;
  }
  if (json.is_discarded() || !json.is_object()) {
    throw std::runtime_error(
        fmt::format("\"{}\" was not written by a run: it is no JSON object", path.string()));
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
