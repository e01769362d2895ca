// The archive of an FMU, and a first start of what is in it.

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <link.h>
#include <memory>
#include <string_view>
#include <system_error>
#include <zip.h>

#include <fmt/format.h>

#include "adapters/fmi/standard/fmi_interface.hpp"
#include "export/fmu/fmu_contents.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::exported {
namespace {

namespace v2 = fmi::v2;
namespace v3 = fmi::v3;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

[[noreturn]] void refuse_file(const std::filesystem::path& file, std::string_view why) {
  throw ConfigError("/out", fmt::format("{} cannot be written: {}", in_quotes(file.string()), why));
}

/// What an FMU says while it is started.
struct Log {
  std::string text;
  void note(const char* message) {
    if (message == nullptr) return;
    text += (text.empty() ? "" : "; ") + printable(message, 2000);
  }
};

void log_2(void* environment, const char*, int, const char*, const char* format, ...) {
  std::array<char, 2048> text;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  static_cast<Log*>(environment)->note(text.data());
}
void log_3(void* environment, int, const char*, const char* message) {
  static_cast<Log*>(environment)->note(message);
}

template <class Function>
Function function_of(void* library, const char* name) {
  const auto function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) {
    throw ConfigError("/library",
                      fmt::format("has no function {}: it is of another version", name));
  }
  return function;
}

template <class Call>
auto function_of(void* library, const char* name, Call v2::Functions::*) {
  return function_of<Call>(library, name);
}
template <class Call>
auto function_of(void* library, const char* name, Call v3::Functions::*) {
  return function_of<Call>(library, name);
}

bool starts_2(void* library, const std::string& token, const std::string& resources, double start_s,
              Log& log) {
  using F = v2::Functions;
  const v2::Callbacks callbacks = {&log_2, nullptr, nullptr, nullptr, &log};
  void* const instance = function_of(library, "fmi2Instantiate", &F::Instantiate)(
      "start", v2::kCoSimulation, token.c_str(), resources.c_str(), &callbacks, 0, 0);
  if (instance == nullptr) return false;
  const bool starts = function_of(library, "fmi2SetupExperiment", &F::SetupExperiment)(
                          instance, 0, 0.0, start_s, 0, 0.0) == fmi::kOk &&
                      function_of(library, "fmi2EnterInitializationMode",
                                  &F::EnterInitializationMode)(instance) == fmi::kOk &&
                      function_of(library, "fmi2ExitInitializationMode",
                                  &F::ExitInitializationMode)(instance) == fmi::kOk;
  function_of(library, "fmi2FreeInstance", &F::FreeInstance)(instance);
  return starts;
}

bool starts_3(void* library, const std::string& token, const std::string& resources, double start_s,
              Log& log) {
  using F = v3::Functions;
  void* const instance =
      function_of(library, "fmi3InstantiateCoSimulation", &F::InstantiateCoSimulation)(
          "start", token.c_str(), resources.c_str(), false, false, false, false, nullptr, 0, &log,
          &log_3, nullptr);
  if (instance == nullptr) return false;
  const bool starts =
      function_of(library, "fmi3EnterInitializationMode", &F::EnterInitializationMode)(
          instance, false, 0.0, start_s, false, 0.0) == fmi::kOk &&
      function_of(library, "fmi3ExitInitializationMode", &F::ExitInitializationMode)(instance) ==
          fmi::kOk;
  function_of(library, "fmi3FreeInstance", &F::FreeInstance)(instance);
  return starts;
}

/// Names that a loaded library tells: DT_NEEDED, those of libraries that it asks for, or DT_SONAME, its own.
std::vector<std::string> names_in(const link_map& library, ElfW(Sxword) tag) {
  const char* texts = nullptr;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  std::vector<std::string> names;
  for (const ElfW(Dyn)* entry = library.l_ld; texts != nullptr && entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == tag) names.emplace_back(texts + entry->d_un.d_val);
  }
  return names;
}

bool is_of_every_system(std::string_view name) {
  constexpr std::string_view kStems[] = {"ld-linux",   "libc.",       "libm.",      "libdl.",
                                         "librt.",     "libpthread.", "libstdc++.", "libgcc_s.",
                                         "libatomic.", "libasan.",    "libtsan.",   "libubsan."};
  return std::ranges::any_of(kStems,
                             [name](std::string_view stem) { return name.starts_with(stem); });
}

/// The loaded library that goes by a name, whatever its file is called; null: none.
const link_map* loaded_as(const std::string& name, const link_map* any) {
  while (any->l_prev != nullptr) any = any->l_prev;
  for (; any != nullptr; any = any->l_next) {
    const std::filesystem::path file = any->l_name;
    if (!file.has_parent_path()) continue;  // the program, and what the kernel gives
    if (file.filename() == name) return any;
    const std::vector<std::string> own = names_in(*any, DT_SONAME);
    if (std::ranges::find(own, name) != own.end()) return any;
  }
  return nullptr;
}

}  // namespace

void write_archive(const std::vector<Member>& members, const std::filesystem::path& out,
                   const std::filesystem::path& name) {
  int code = 0;
  std::unique_ptr<zip_t, Discard> archive(zip_open(out.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    refuse_file(name, text);
  }
  for (const Member& own : members) {
    zip_source_t* const source =
        own.file.empty()
            ? zip_source_buffer(archive.get(), own.content.data(), own.content.size(), 0)
            : zip_source_file(archive.get(), own.file.c_str(), 0, 0);
    const zip_int64_t place =
        source == nullptr ? -1
                          : zip_file_add(archive.get(), own.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (place < 0) {
      zip_source_free(source);
      refuse_file(name, zip_strerror(archive.get()));
    }
    // Not libzip's own 9, which takes four times as long for a hundredth less.
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(place), ZIP_CM_DEFLATE, 6);
    // The same bytes whenever it is written: 1 January 1980, where dates of zip begin.
    constexpr zip_uint16_t kDate = (0 << 9) | (1 << 5) | 1;
    zip_file_set_dostime(archive.get(), static_cast<zip_uint64_t>(place), 0, kDate, 0);
    constexpr zip_uint32_t kReadable = 0100644U << 16;
    zip_file_set_external_attributes(archive.get(), static_cast<zip_uint64_t>(place), 0,
                                     ZIP_OPSYS_UNIX, kReadable);
  }
  if (zip_close(archive.get()) != 0) refuse_file(name, zip_strerror(archive.get()));
  static_cast<void>(archive.release());
}

Engine::Engine(const std::filesystem::path& library)
    : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const reason = ::dlerror();
  throw ConfigError("/library",
                    fmt::format("{} cannot be loaded: {}", in_quotes(library.string()),
                                printable(reason == nullptr ? "no reason given" : reason, 300)));
}

std::vector<Member> Engine::companions() const {
  link_map* first = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&first)) != 0) return {};
  std::vector<Member> out;
  std::vector<const link_map*> found = {first};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::string& name : names_in(*found[i], DT_NEEDED)) {
      if (is_of_every_system(name) || std::ranges::find(out, name, &Member::name) != out.end())
        continue;
      const link_map* const own = loaded_as(name, first);
      if (own == nullptr) {
        throw ConfigError("/library", fmt::format("it needs {}, which was not found among the "
                                                  "libraries of this process",
                                                  in_quotes(name)));
      }
      found.push_back(own);
      out.push_back({.name = name, .content = {}, .file = own->l_name});
    }
  }
  return out;
}

void Engine::expect_start(int fmi, const std::string& token, const std::filesystem::path& resources,
                          double start_s) const {
  Log log;
  const bool starts = fmi == 2 ? starts_2(handle_, token, resources.string(), start_s, log)
                               : starts_3(handle_, token, resources.string(), start_s, log);
  if (!starts) throw ConfigError("", fmt::format("the FMU does not start: {}", log.text));
}

}  // namespace portwave::exported
