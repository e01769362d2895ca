#include "portwave/runtime/scenario/plugins.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cxxabi.h>
#include <deque>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/plugin.hpp"
#include "scenario/files/plugins.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/text.hpp"

namespace portwave {
namespace scenario_file {
namespace {

static_assert(std::string_view(kVersion) == PORTWAVE_VERSION, "version.hpp is out of date");

/// Tells the contents of a file from what they were.
struct FileStamp {
  dev_t device = 0;
  ino_t number = 0;
  off_t bytes = 0;
  timespec changed = {};

  bool is_same_file(const FileStamp& other) const {
    return device == other.device && number == other.number;
  }
  bool operator==(const FileStamp& other) const {
    return is_same_file(other) && bytes == other.bytes && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

std::optional<FileStamp> stamp_of(const std::filesystem::path& file) {
  struct ::stat status = {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return FileStamp{status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

/// The plugins of this process. What they registered lies in the catalogue for good, so they are
/// never unloaded.
struct LoadedPlugins {
  struct Entry {
    LoadedPlugin plugin;
    FileStamp stamp;
  };
  std::mutex mutex;
  std::deque<Entry> entries;  // whose addresses stay

  static LoadedPlugins& instance() {
    static LoadedPlugins all;
    return all;
  }
  /// The library at a path, as it is now or was; null if there is none.
  const Entry* find(const std::filesystem::path& file, const FileStamp& stamp) const {
    for (const Entry& entry : entries) {
      if (entry.plugin.file == file || entry.stamp.is_same_file(stamp)) return &entry;
    }
    return nullptr;
  }
  const Entry* owner_of(std::string_view type) const {
    for (const Entry& entry : entries) {
      for (const std::string& own : entry.plugin.types) {
        if (own == type) return &entry;
      }
    }
    return nullptr;
  }
};

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

/// What the system says of a library that it cannot load, without its name, the symbol in words.
std::string load_failure(const std::filesystem::path& file, std::string text) {
  const std::string name = file.string() + ": ";
  if (text.starts_with(name)) text.erase(0, name.size());
  const std::string_view label = "undefined symbol: ";
  const std::size_t at = text.find(label);
  if (at == std::string::npos) return fmt::format("cannot be loaded: {}", text);
  const std::string mangled = text.substr(at + label.size());
  const std::string symbol = demangled(mangled.substr(0, mangled.find_first_of(" ,(\t")));
  std::string failure =
      fmt::format("cannot be loaded: it uses {}, which is nowhere", printable(symbol, 200));
  if (symbol.find("portwave::") == std::string::npos) {
    return failure + ".\nLink the plugin to the library that has it.";
  }
  // A function that is in every program that exports portwave.
  const bool has_exports = ::dlsym(RTLD_DEFAULT, "_ZN8portwave9catalogueEv") != nullptr;
  return failure + (has_exports ? ".\nPlugins may use what portwave::subsystems has. Link any "
                                  "other library to them."
                                : ".\nThis program does not export portwave: link it with "
                                  "portwave_enable_plugins(program).");
}

/// What the plugin adds. Errors: ConfigError.
std::vector<PartType> types_of(const std::filesystem::path& file) {
  // No library is looked for anywhere else: the path is absolute.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const text = ::dlerror();
    throw ConfigError("", load_failure(file, text == nullptr ? "no reason given" : text));
  }
  void* const address = ::dlsym(handle, kPluginEntrySymbol);
  if (address == nullptr) {
    throw ConfigError("", fmt::format("has no function {}", kPluginEntrySymbol));
  }
  PluginTypes types;
  try {
    reinterpret_cast<PluginEntry>(address)(&types);
  } catch (const std::exception& error) {
    throw ConfigError("", fmt::format("failed in its entry: {}", error.what()));
  } catch (...) {
    throw ConfigError("", "failed in its entry with an exception that is no std::exception");
  }
  return types.take();
}

void add_types(const LoadedPlugins& loaded, std::vector<PartType> types) {
  if (types.empty()) throw ConfigError("", "adds no type");
  try {
    Catalogue::add(std::move(types));
  } catch (const ConfigError& error) {
    Issues issues = error.issues();
    for (Issue& issue : issues) {
      const std::string_view where = issue.where;
      if (!where.ends_with("/name")) continue;
      const std::string_view type = where.substr(1, where.rfind('/') - 1);
      if (const auto* const owner = loaded.owner_of(type)) {
        issue.what += fmt::format(", from the plugin {}", in_quotes(owner->plugin.file.string()));
      }
    }
    throw ConfigError(std::move(issues));
  }
}

/// A path as the system knows it, and what is there.
struct FoundFile {
  std::filesystem::path path;
  FileStamp stamp;
};

FoundFile find_plugin(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(file, error);
  const auto stamp = error ? std::nullopt : stamp_of(path);
  if (error || !stamp) {
    throw ConfigError(
        "",
        fmt::format("cannot be opened: {}",
                    (error ? error : std::error_code(errno, std::generic_category())).message()));
  }
  return {std::move(path), *stamp};
}

const LoadedPlugin& load(const std::filesystem::path& file) {
  const FoundFile found = find_plugin(file);
  LoadedPlugins& loaded = LoadedPlugins::instance();
  const std::lock_guard lock(loaded.mutex);
  if (const auto* const known = loaded.find(found.path, found.stamp)) {
    if (known->stamp == found.stamp) return known->plugin;
    throw ConfigError("",
                      "has changed since this program loaded it; start the program again to load "
                      "the new one");
  }
  const PluginFile content = inspect_plugin(found.path);
  if (!content.ok()) throw ConfigError("", content.problem);
  Issues issues;
  for (std::string& difference : differences(content.build, plugin_build())) {
    issues.push_back({"", std::move(difference)});
  }
  throw_if_any(std::move(issues));

  std::vector<PartType> types = types_of(found.path);
  LoadedPlugins::Entry entry{{found.path, {}}, found.stamp};
  for (const PartType& type : types) entry.plugin.types.push_back(type.name);
  add_types(loaded, std::move(types));
  return loaded.entries.emplace_back(std::move(entry)).plugin;
}

}  // namespace

bool is_loaded_plugin(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  const auto stamp = error ? std::nullopt : stamp_of(path);
  LoadedPlugins& loaded = LoadedPlugins::instance();
  const std::lock_guard lock(loaded.mutex);
  return stamp && loaded.find(path, *stamp) != nullptr;
}

namespace {

constexpr std::string_view kPluginsRefused =
    "plugins are code that may do all that this program may, and are loaded only if the program "
    "was told to.\n"
    "If you trust them, give --allow-plugins, or --plugin FILE for each; in C++ Plugins::allowed, "
    "in Python allow_plugins=True, in C portwave_options.allow_plugins.";

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

}  // namespace scenario_file

const LoadedPlugin& load_plugin(const std::filesystem::path& file) {
  return scenario_file::load(file);
}

}  // namespace portwave
