#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

/// The header of a plugin: a shared library whose types of parts a program takes into its
/// catalogue while it runs. One source file of the library holds
///
///   PORTWAVE_PLUGIN(types) {
///     types.add(my_type());
///   }
///
/// and no portwave library is linked to it: it takes portwave's code from the program that loads it.
/// In CMake: find_package(portwave), then portwave_add_plugin(my_parts my_parts.cpp).
/// Scenarios name the library in "plugins"; programs load it with `load_plugin`, which describes the
/// errors.
namespace PORTWAVE_EXPORT portwave {

/// The build settings of a plugin, in plain data: a program reads them from the file and compares them
/// with its own before any code of the plugin runs. The form never changes; another form gets another
/// name than portwave_plugin_build_v1.
struct PluginBuild {
  char portwave[16];               ///< version of the headers, ended by 0
  std::int32_t standard_library;   ///< 1: libstdc++, 2: libc++, 0: another
  std::int32_t string_abi;         ///< which of its std::string, and so on
  std::int32_t checked_iterators;  ///< containers of another layout, as with _GLIBCXX_DEBUG
  std::int32_t eigen;              ///< 30400 for 3.4.0
  std::int32_t eigen_alignment;    ///< of its objects [bytes]; instruction sets change it
  std::int32_t sanitizers;         ///< 1: address, 2: thread, 4: memory
  std::uint32_t layout;            ///< of the classes that a plugin hands over
  std::uint32_t reserved[5];       ///< 0
};
static_assert(sizeof(PluginBuild) == 64);

/// The build settings of the code that is being compiled.
constexpr PluginBuild plugin_build() {
  PluginBuild build = {};
  for (std::size_t i = 0; i < sizeof(kVersion); ++i) build.portwave[i] = kVersion[i];
  static_assert(sizeof(kVersion) <= sizeof(build.portwave));
#if defined(__GLIBCXX__)
  build.standard_library = 1;
  build.string_abi = _GLIBCXX_USE_CXX11_ABI;
#elif defined(_LIBCPP_VERSION)
  build.standard_library = 2;
  build.string_abi = _LIBCPP_ABI_VERSION;
#endif
#if defined(_GLIBCXX_DEBUG)
  build.checked_iterators = 1;
#endif
  build.eigen = EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
  build.eigen_alignment = EIGEN_DEFAULT_ALIGN_BYTES;
#if defined(__SANITIZE_ADDRESS__)
  build.sanitizers |= 1;
#endif
#if defined(__SANITIZE_THREAD__)
  build.sanitizers |= 2;
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  build.sanitizers |= 1;
#endif
#if __has_feature(thread_sanitizer)
  build.sanitizers |= 2;
#endif
#if __has_feature(memory_sanitizer)
  build.sanitizers |= 4;
#endif
#endif
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const std::size_t size :
       {sizeof(PartType), sizeof(ParameterInfo), sizeof(ParameterValue), sizeof(Parameters),
        sizeof(Component), sizeof(Subsystem), sizeof(StepBatch), sizeof(Signature),
        sizeof(Structure), sizeof(Eigen::Index), std::size_t{EIGEN_MAX_STATIC_ALIGN_BYTES}}) {
    hash = (hash ^ static_cast<std::uint32_t>(size)) * 16777619U;
  }
  build.layout = hash;
  return build;
}

/// Receives the types of a plugin. They are checked and go into the catalogue when the plugin is done:
/// all of them, or none.
class PluginTypes {
 public:
  void add(PartType type) { types_.push_back(std::move(type)); }
  std::vector<PartType> take() { return std::exchange(types_, {}); }

 private:
  std::vector<PartType> types_;
};

/// The names of a plugin's exported symbols.
inline constexpr std::string_view kPluginBuildSymbol = "portwave_plugin_build_v1";
inline constexpr const char* kPluginEntrySymbol = "portwave_plugin_v1";
using PluginEntry = void (*)(PluginTypes* types);

}  // namespace portwave

/// Seen from outside the library, also where nothing else is.
#define PORTWAVE_PLUGIN_SHOWN __attribute__((visibility("default")))

/// Begins the function that adds the types of a plugin; once in each plugin. `types` names its
/// argument, a PluginTypes&. It may throw: the plugin is then refused with the exception's text.
#define PORTWAVE_PLUGIN(types)                                                                   \
  static void portwave_plugin_add_types(::portwave::PluginTypes& types);                         \
  extern "C" {                                                                                   \
  extern PORTWAVE_PLUGIN_SHOWN const ::portwave::PluginBuild portwave_plugin_build_v1;           \
  PORTWAVE_PLUGIN_SHOWN void portwave_plugin_v1(::portwave::PluginTypes* into);                  \
  }                                                                                              \
  constinit const ::portwave::PluginBuild portwave_plugin_build_v1 = ::portwave::plugin_build(); \
  void portwave_plugin_v1(::portwave::PluginTypes* into) { portwave_plugin_add_types(*into); }   \
  static void portwave_plugin_add_types([[maybe_unused]] ::portwave::PluginTypes& types)
