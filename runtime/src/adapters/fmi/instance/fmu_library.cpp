#include "adapters/fmi/instance/fmu_library.hpp"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

/// Why a file cannot be a whole shared library for this machine; empty: it may be one. The system's loader
/// trusts what the headers say of the file's length.
std::string library_defect(const std::filesystem::path& file) {
#if defined(__x86_64__)
  constexpr Elf64_Half kMachine = EM_X86_64;
#else
  constexpr Elf64_Half kMachine = EM_AARCH64;
#endif
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  Elf64_Ehdr header = {};
  if (!in.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is no shared library";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_type != ET_DYN) {
    return "is no shared library for this processor";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "is damaged";
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    in.seekg(
        static_cast<std::streamoff>(header.e_phoff + static_cast<unsigned>(i) * sizeof(segment)));
    if (!in.read(reinterpret_cast<char*>(&segment), sizeof(segment))) return "is cut off";
    const bool is_in_file = segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC;
    if (is_in_file && (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset)) {
      return "is cut off";
    }
  }
  return {};
}

/// The functions of a library by name; collects those that are missing.
class Symbols {
 public:
  Symbols(void* library, std::string prefix) : library_(library), prefix_(std::move(prefix)) {}

  template <class Function>
  void require(Function*& function, const char* name) {
    optional(function, name);
    if (function == nullptr) missing_.push_back(prefix_ + name);
  }
  template <class Function>
  void optional(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, (prefix_ + name).c_str()));
  }
  void expect_all() const {
    if (missing_.empty()) return;
    throw ConfigError("", fmt::format("its library has no function {}: it does not hold what its "
                                      "modelDescription.xml says",
                                      fmt::join(missing_, ", ")));
  }

 private:
  void* library_;
  std::string prefix_;
  std::vector<std::string> missing_;
};

v2::Functions functions_of_2(void* library, const LibraryNeeds& needs) {
  Symbols symbols(library, "fmi2");
  v2::Functions f = {};
  symbols.require(f.GetVersion, "GetVersion");
  symbols.require(f.Instantiate, "Instantiate");
  symbols.require(f.FreeInstance, "FreeInstance");
  symbols.require(f.SetupExperiment, "SetupExperiment");
  symbols.require(f.EnterInitializationMode, "EnterInitializationMode");
  symbols.require(f.ExitInitializationMode, "ExitInitializationMode");
  symbols.require(f.Terminate, "Terminate");
  symbols.require(f.GetReal, "GetReal");
  symbols.require(f.SetReal, "SetReal");
  symbols.require(f.GetInteger, "GetInteger");
  symbols.require(f.SetInteger, "SetInteger");
  symbols.require(f.GetBoolean, "GetBoolean");
  symbols.require(f.SetBoolean, "SetBoolean");
  symbols.require(f.DoStep, "DoStep");
  symbols.optional(f.GetBooleanStatus, "GetBooleanStatus");
  if (needs.has(VariableType::text)) symbols.require(f.SetString, "SetString");
  if (needs.saves_state) {
    symbols.require(f.GetFMUstate, "GetFMUstate");
    symbols.require(f.SetFMUstate, "SetFMUstate");
    symbols.require(f.FreeFMUstate, "FreeFMUstate");
  }
  if (needs.writes_state) {
    symbols.optional(f.SerializedFMUstateSize, "SerializedFMUstateSize");
    symbols.optional(f.SerializeFMUstate, "SerializeFMUstate");
    symbols.optional(f.DeSerializeFMUstate, "DeSerializeFMUstate");
  }
  symbols.expect_all();
  return f;
}

v3::Functions functions_of_3(void* library, const LibraryNeeds& needs) {
  Symbols symbols(library, "fmi3");
  v3::Functions f = {};
  symbols.require(f.GetVersion, "GetVersion");
  symbols.require(f.InstantiateCoSimulation, "InstantiateCoSimulation");
  symbols.require(f.FreeInstance, "FreeInstance");
  symbols.require(f.EnterInitializationMode, "EnterInitializationMode");
  symbols.require(f.ExitInitializationMode, "ExitInitializationMode");
  symbols.require(f.Terminate, "Terminate");
  symbols.require(f.DoStep, "DoStep");
  symbols.require(f.GetFloat64, "GetFloat64");
  symbols.require(f.SetFloat64, "SetFloat64");
  const auto pair_for = [&](VariableType type, auto& get, const char* get_name, auto& set,
                            const char* set_name) {
    if (!needs.has(type)) return;
    symbols.require(get, get_name);
    symbols.require(set, set_name);
  };
  pair_for(VariableType::float32, f.GetFloat32, "GetFloat32", f.SetFloat32, "SetFloat32");
  pair_for(VariableType::int8, f.GetInt8, "GetInt8", f.SetInt8, "SetInt8");
  pair_for(VariableType::uint8, f.GetUInt8, "GetUInt8", f.SetUInt8, "SetUInt8");
  pair_for(VariableType::int16, f.GetInt16, "GetInt16", f.SetInt16, "SetInt16");
  pair_for(VariableType::uint16, f.GetUInt16, "GetUInt16", f.SetUInt16, "SetUInt16");
  pair_for(VariableType::int32, f.GetInt32, "GetInt32", f.SetInt32, "SetInt32");
  pair_for(VariableType::uint32, f.GetUInt32, "GetUInt32", f.SetUInt32, "SetUInt32");
  pair_for(VariableType::int64, f.GetInt64, "GetInt64", f.SetInt64, "SetInt64");
  pair_for(VariableType::uint64, f.GetUInt64, "GetUInt64", f.SetUInt64, "SetUInt64");
  pair_for(VariableType::boolean, f.GetBoolean, "GetBoolean", f.SetBoolean, "SetBoolean");
  if (needs.has(VariableType::text)) symbols.require(f.SetString, "SetString");
  if (needs.configures) {
    symbols.require(f.EnterConfigurationMode, "EnterConfigurationMode");
    symbols.require(f.ExitConfigurationMode, "ExitConfigurationMode");
  }
  if (needs.has_events) {
    symbols.require(f.EnterEventMode, "EnterEventMode");
    symbols.require(f.UpdateDiscreteStates, "UpdateDiscreteStates");
    symbols.require(f.EnterStepMode, "EnterStepMode");
  }
  if (needs.has_clocks) {
    symbols.require(f.GetClock, "GetClock");
    symbols.require(f.SetClock, "SetClock");
    symbols.optional(f.GetIntervalDecimal, "GetIntervalDecimal");
    symbols.optional(f.GetShiftDecimal, "GetShiftDecimal");
  }
  if (needs.saves_state) {
    symbols.require(f.GetFMUState, "GetFMUState");
    symbols.require(f.SetFMUState, "SetFMUState");
    symbols.require(f.FreeFMUState, "FreeFMUState");
  }
  if (needs.writes_state) {
    symbols.optional(f.SerializedFMUStateSize, "SerializedFMUStateSize");
    symbols.optional(f.SerializeFMUState, "SerializeFMUState");
    symbols.optional(f.DeserializeFMUState, "DeserializeFMUState");
  }
  symbols.expect_all();
  return f;
}

void expect_version(const char* given, char major) {
  if (given != nullptr && given[0] == major) return;
  throw ConfigError(
      "", fmt::format("its library says that it is of FMI {}, its modelDescription.xml of FMI {}",
                      printable(given == nullptr ? "nothing" : given), major));
}

}  // namespace

LibraryNeeds LibraryNeeds::of(const ModelDescription& model) {
  LibraryNeeds out = {.version = model.version,
                      .saves_state = model.saves_state,
                      .writes_state = model.writes_state};
  out.has_events = model.has_event_mode;
  out.has_clocks = model.has_event_mode && !model.clocks.empty();
  for (const Variable& own : model.variables) {
    out.types |= bit_of(own.type);
    out.configures = out.configures || own.role == Role::structural_parameter;
  }
  return out;
}

Functions load_library(const std::filesystem::path& path, const LibraryNeeds& needs) {
  if (const std::string defect = library_defect(path); !defect.empty()) {
    throw ConfigError(
        "", fmt::format("its library cannot be loaded: {} {}", path.filename().string(), defect));
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    std::string text = reason == nullptr ? "no reason given" : reason;
    const std::string name = path.string() + ": ";
    if (text.starts_with(name)) text.erase(0, name.size());
    const bool is_python = text.find("undefined symbol: Py") != std::string::npos ||
                           text.find("undefined symbol: _Py") != std::string::npos;
    throw ConfigError(
        "", fmt::format("its library cannot be loaded: {}{}", printable(text, 300),
                        is_python ? "; it is written in Python, and leaves the interpreter to the "
                                    "program: start portwave with LD_PRELOAD=libpython3.x.so, or "
                                    "run it from Python"
                                  : ""));
  }
  if (needs.version == Version::v2) {
    const v2::Functions own = functions_of_2(library, needs);
    expect_version(own.GetVersion(), '2');
    return own;
  }
  const v3::Functions own = functions_of_3(library, needs);
  expect_version(own.GetVersion(), '3');
  return own;
}

}  // namespace portwave::fmi
