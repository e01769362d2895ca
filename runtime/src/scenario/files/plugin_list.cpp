#include "scenario/files/plugin_list.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/schema_tools.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::string_view kPluginsRefused =
    "plugins are code that may do all that this program may, and are loaded only if the program "
    "was "
    "told to.\n"
    "If you trust them, give --allow-plugins, or --plugin FILE for each; in C++ Plugins::allowed.";

/// The file that a name stands for, absolute; equal for equal files as far as that can be seen.
std::filesystem::path library_path(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder / name, error);
  if (error) return folder / name;
  std::filesystem::path plain = std::filesystem::weakly_canonical(path, error);
  return error ? path : plain;
}

/// All that is wrong with one plugin as one text, in which each further line is set in.
std::string text_of_plugin_issues(const std::string& name, const ConfigError& error) {
  std::string text;
  for (const Issue& issue : error.issues()) {
    const std::string_view where = issue.where;
    if (!text.empty()) text += '\n';
    if (where.empty()) {
      text += text.empty() ? fmt::format("{} {}", in_quotes(name), issue.what) : issue.what;
      continue;
    }
    const std::size_t end = std::min(where.find('/', 1), where.size());
    text += fmt::format("{}the type {}{}{}: {}", text.empty() ? in_quotes(name) + ": " : "",
                        in_quotes(where.substr(1, end - 1)), end < where.size() ? ", " : "",
                        where.substr(end), issue.what);
  }
  return text;
}

}  // namespace

bool read_plugins(const Node& node, const std::filesystem::path& folder, Plugins plugins) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one file");
    return false;
  }
  bool are_all_there = true, is_refused = false;
  std::vector<std::filesystem::path> files;  // one for each entry
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    const auto fail = [&](std::string what) {
      element.fail(std::move(what));
      are_all_there = false;
    };
    files.emplace_back();
    const auto name = element.text();
    if (!name || name->empty() || name->find('\0') != std::string::npos) {
      if (name) fail(name->empty() ? "must not be empty" : "must not contain the character 0");
      are_all_there = false;
      continue;
    }
    files.back() = library_path(folder, *name);
    const auto first = std::find(files.begin(), files.end() - 1, files.back());
    if (first != files.end() - 1) {
      fail(fmt::format("{} is listed twice, first as /plugins/{}", in_quotes(*name),
                       first - files.begin()));
      continue;
    }
    if (plugins == Plugins::refused && !is_loaded_plugin(files.back())) {
      is_refused = true;
      continue;
    }
    try {
      load_plugin(files.back());
      FilesRead::note_plugin(files.back());
    } catch (const ConfigError& error) {
      fail(text_of_plugin_issues(*name, error));
    }
  }
  if (is_refused) node.fail(std::string(kPluginsRefused));
  return are_all_there && !is_refused;
}

Json plugins_schema() {
  Json files = list({{"type", "string"}, {"minLength", 1}}, 1);
  files["uniqueItems"] = true;
  return described(std::move(files),
                   "shared libraries with types of parts, such as \"./libmy.so\"; loaded only with "
                   "--allow-plugins");
}

}  // namespace portwave::scenario_file
