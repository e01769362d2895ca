#pragma once

// An FMU by its bare functions, as any importer calls them: with good and bad arguments, in any order.

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "adapters/fmi/standard/fmi_interface.hpp"

namespace portwave::testing {

/// One instance. Its functions return the status of FMI; of both versions it is 0 to 4.
class RawFmu {
 public:
  RawFmu(const std::filesystem::path& library, int version)
      : version_(version), library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
  }
  ~RawFmu() { free(); }
  RawFmu(const RawFmu&) = delete;
  RawFmu& operator=(const RawFmu&) = delete;

  /// False where there is no instance.
  bool instantiate(const std::string& token, const std::string& resources,
                   int kind = fmi::v2::kCoSimulation) {
    if (version_ == 2) {
      callbacks_ = {&RawFmu::log_2, nullptr, nullptr, nullptr, this};
      instance_ = function<decltype(F2::Instantiate)>("fmi2Instantiate")(
          "raw", kind, token.c_str(), resources.c_str(), &callbacks_, 0, 0);
    } else {
      instance_ = function<decltype(F3::InstantiateCoSimulation)>("fmi3InstantiateCoSimulation")(
          "raw", token.c_str(), resources.c_str(), false, false, false, false, nullptr, 0, this,
          &RawFmu::log_3, nullptr);
    }
    return instance_ != nullptr;
  }
  void free() {
    if (instance_ != nullptr) function<void (*)(void*)>(named("FreeInstance"))(instance_);
    instance_ = nullptr;
  }
  int setup(double start_s) {
    if (version_ == 3) return fmi::kOk;
    return function<decltype(F2::SetupExperiment)>("fmi2SetupExperiment")(instance_, 0, 0.0,
                                                                          start_s, 0, 0.0);
  }
  int enter(double start_s = 0.0) {
    if (version_ == 2) return plain("EnterInitializationMode");
    return function<decltype(F3::EnterInitializationMode)>("fmi3EnterInitializationMode")(
        instance_, false, 0.0, start_s, false, 0.0);
  }
  int exit() { return plain("ExitInitializationMode"); }
  int terminate() { return plain("Terminate"); }
  int reset() { return plain("Reset"); }
  /// A function that takes the instance alone.
  int plain(const char* name) { return function<int (*)(void*)>(named(name))(instance_); }
  /// From nothing to steps.
  bool start(const std::string& token, const std::string& resources, double start_s = 0.0) {
    return instantiate(token, resources) && setup(start_s) == 0 && enter(start_s) == 0 &&
           exit() == 0;
  }

  int get(const std::vector<std::uint32_t>& which, std::vector<double>& values) {
    values.resize(which.size());
    if (version_ == 2) {
      return function<decltype(F2::GetReal)>("fmi2GetReal")(instance_, which.data(), which.size(),
                                                            values.data());
    }
    return function<decltype(F3::GetFloat64)>("fmi3GetFloat64")(
        instance_, which.data(), which.size(), values.data(), values.size());
  }
  int set(const std::vector<std::uint32_t>& which, const std::vector<double>& values) {
    if (version_ == 2) {
      return function<decltype(F2::SetReal)>("fmi2SetReal")(instance_, which.data(), which.size(),
                                                            values.data());
    }
    return function<decltype(F3::SetFloat64)>("fmi3SetFloat64")(
        instance_, which.data(), which.size(), values.data(), values.size());
  }
  double value(std::uint32_t which) {
    std::vector<double> out;
    if (get({which}, out) != fmi::kOk) throw std::runtime_error("no value: " + log);
    return out[0];
  }
  int step(double time_s, double size_s) {
    if (version_ == 2) {
      return function<decltype(F2::DoStep)>("fmi2DoStep")(instance_, time_s, size_s, 1);
    }
    bool event = true, terminates = true, early = true;
    return function<decltype(F3::DoStep)>("fmi3DoStep")(instance_, time_s, size_s, true, &event,
                                                        &terminates, &early, &last_s);
  }

  int save(void*& state) {
    return function<decltype(F2::GetFMUstate)>(state_name("Get"))(instance_, &state);
  }
  int restore(void* state) {
    return function<decltype(F2::SetFMUstate)>(state_name("Set"))(instance_, state);
  }
  int release(void*& state) {
    return function<decltype(F2::FreeFMUstate)>(state_name("Free"))(instance_, &state);
  }
  int serialise(void* state, std::vector<std::uint8_t>& bytes) {
    const std::string suffix = version_ == 2 ? "FMUstate" : "FMUState";
    std::size_t size = 0;
    int status = function<int (*)(void*, void*, std::size_t*)>(
        named("Serialized" + suffix + "Size"))(instance_, state, &size);
    if (status != fmi::kOk) return status;
    bytes.resize(size);
    return function<int (*)(void*, void*, std::uint8_t*, std::size_t)>(named("Serialize" + suffix))(
        instance_, state, bytes.data(), size);
  }
  int deserialise(const std::vector<std::uint8_t>& bytes, void*& state) {
    const std::string name = version_ == 2 ? "DeSerializeFMUstate" : "DeserializeFMUState";
    return function<int (*)(void*, const std::uint8_t*, std::size_t, void**)>(named(name))(
        instance_, bytes.data(), bytes.size(), &state);
  }

  template <class Function>
  Function function(const std::string& name) {
    void* const found = ::dlsym(library_, name.c_str());
    if (found == nullptr) throw std::runtime_error("no function " + name);
    return reinterpret_cast<Function>(found);
  }
  std::string named(const std::string& name) const {
    return (version_ == 2 ? "fmi2" : "fmi3") + name;
  }
  void* instance() { return instance_; }

  std::string log;       ///< all that it said
  double last_s = -1.0;  ///< FMI 3: the time that the last step came to

 private:
  using F2 = fmi::v2::Functions;
  using F3 = fmi::v3::Functions;

  std::string state_name(const char* verb) const {
    return named(std::string(verb) + (version_ == 2 ? "FMUstate" : "FMUState"));
  }
  static void log_2(void* environment, const char*, int, const char*, const char* format, ...) {
    std::array<char, 2048> text;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    static_cast<RawFmu*>(environment)->log += std::string(text.data()) + "\n";
  }
  static void log_3(void* environment, int, const char*, const char* message) {
    static_cast<RawFmu*>(environment)->log += std::string(message) + "\n";
  }

  int version_;
  void* library_;
  void* instance_ = nullptr;
  fmi::v2::Callbacks callbacks_ = {};
};

}  // namespace portwave::testing
