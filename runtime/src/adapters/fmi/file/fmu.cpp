#include "adapters/fmi/file/fmu.hpp"

#include <cctype>
#include <cstdint>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"

namespace portwave::fmi {
namespace {

/// A path as a URI: what is neither a letter, a digit nor one of a few signs is written as %XX.
std::string uri_of(const std::filesystem::path& path) {
  std::string out = "file://";
  for (const char c : path.string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-_.~").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

/// Those that are open.
struct OpenFmus {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const Fmu>> by_file;

  static OpenFmus& instance() {
    static OpenFmus all;
    return all;
  }
};

}  // namespace

std::string platform_of(Version version) {
#if defined(__x86_64__)
  return version == Version::v2 ? "linux64" : "x86_64-linux";
#elif defined(__aarch64__)
  static_cast<void>(version);
  return "aarch64-linux";
#else
  static_cast<void>(version);
  return "unknown";
#endif
}

std::string osp_description(const files::Archive& archive) {
  constexpr std::string_view kName = "OspModelDescription.xml";
  std::string out = archive.content(kName);
  if (out.empty())
    out = archive.content(fmt::format("extra/org.open-simulation-platform/{}", kName));
  return out;
}

std::shared_ptr<const Fmu> Fmu::open(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  if (error) throw ConfigError("", fmt::format("cannot be opened: {}", error.message()));
  if (!std::filesystem::is_regular_file(path, error)) throw ConfigError("", "is no file");
  const auto changed = std::filesystem::last_write_time(path, error).time_since_epoch().count();
  const auto bytes = std::filesystem::file_size(path, error);
  const std::string key = fmt::format("{}:{}:{}", path.string(), changed, bytes);
  OpenFmus& all = OpenFmus::instance();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.by_file, [](const auto& own) { return own.second.expired(); });
  std::weak_ptr<const Fmu>& known = all.by_file[key];
  if (auto fmu = known.lock()) return fmu;
  std::shared_ptr<const Fmu> fmu(new Fmu(path));
  known = fmu;
  return fmu;
}

Fmu::Fmu(const std::filesystem::path& file) : file_(file) {
  const files::Archive archive(file);
  const std::string xml = archive.content("modelDescription.xml");
  if (xml.empty()) throw ConfigError("", "is no FMU: there is no modelDescription.xml in it");
  description_ = read_model_description(xml);
  if (const std::string text = archive.content("terminalsAndIcons/terminalsAndIcons.xml");
      !text.empty()) {
    ports_ = read_terminals(text);
  }
  const std::string osp = osp_description(archive);
  if (ports_.empty() && !osp.empty()) ports_ = read_osp_ports(osp);

  const std::string platform = platform_of(description_.version);
  const std::string binary = fmt::format("binaries/{}/{}.so", platform, description_.library);
  if (!archive.has(binary)) {
    const std::string others = archive.platforms();
    throw ConfigError(
        "", fmt::format("has no {}.\n{}", binary,
                        others.empty() ? "It holds no binaries: compile it first"
                                       : fmt::format("It was made for: {}. Export it for {}",
                                                     others, platform)));
  }
  archive.unpack(fmt::format("binaries/{}/", platform), folder_.path());
  archive.unpack("resources/", folder_.path());
  std::error_code error;
  std::filesystem::create_directories(folder_.path() / "resources", error);
}

std::filesystem::path Fmu::library() const {
  return folder_.path() / "binaries" / platform_of(description_.version) /
         (description_.library + ".so");
}

const Functions& Fmu::functions() const {
  const std::lock_guard lock(loading_);
  if (!functions_) functions_ = load_library(library(), LibraryNeeds::of(description_));
  return *functions_;
}

std::string Fmu::resources() const {
  const std::filesystem::path path = folder_.path() / "resources";
  return description_.version == Version::v2 ? uri_of(path) : path.string() + "/";
}

}  // namespace portwave::fmi
