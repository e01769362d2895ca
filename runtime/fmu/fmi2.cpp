// The functions of FMI 2.0 for co-simulation.

#include <utility>

#include <fmt/format.h>

#include "instance.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace {

namespace v2 = portwave::fmi::v2;
using portwave::fmi::Reference;
using portwave::fmi::StateHandle;
using portwave::fmu::expect_values;
using portwave::fmu::Instance;
using portwave::fmu::kAnyMode;
using portwave::fmu::kBeforeSteps;
using portwave::fmu::kInitialising;
using portwave::fmu::kInstantiated;
using portwave::fmu::kStepping;
using portwave::fmu::kTerminated;
using portwave::fmu::kWithOutputs;
using portwave::fmu::refuse;
using portwave::fmu::refuse_values;

constexpr unsigned kSettableModes = kBeforeSteps | kStepping;

/// Of fmi2StatusKind those that there are without steps that go on after their call.
enum StatusKind : int { kLastSuccessfulTime = 2, kTerminatedStatus = 3 };

class Logger2 final : public portwave::fmu::Listener {
 public:
  Logger2(const v2::Callbacks& callbacks, const char* name)
      : logger_(callbacks.logger),
        environment_(callbacks.environment),
        name_(name == nullptr ? "" : name) {}
  void tell(int status, const char* category, const std::string& text) override {
    if (logger_ == nullptr) return;
    // Marks of formats and of value references ("#r1#") are written twice. The message is the format itself,
    // because many importers show that alone.
    std::string message;
    for (const char c : text) message.append(c == '%' || c == '#' ? 2 : 1, c);
    logger_(environment_, name_.c_str(), status, category, message.c_str());
  }

 private:
  v2::Logger logger_;
  void* environment_;
  std::string name_;
};

[[noreturn]] void refuse_status() {
  throw portwave::exported::Refusal("there is no such status to be told");
}
/// The standard has a step discarded after which the FMU asks to end the simulation.
[[noreturn]] void refuse_to_go_on(Instance& of) {
  throw portwave::exported::Refusal(fmt::format("the event {} ended the run at {:.17g} s",
                                                portwave::in_quotes(of.run().ending_watch()->name),
                                                of.run().time_s()));
}
/// Of what there is only where steps go on after their call: discarded, as the standard says.
int discard_status(void* instance, const char* function) {
  return Instance::call(instance, function, kAnyMode, [](Instance&) { refuse_status(); });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* fmi2GetTypesPlatform() { return "default"; }
const char* fmi2GetVersion() { return "2.0"; }

void* fmi2Instantiate(const char* name, int kind, const char* guid, const char* resources,
                      const v2::Callbacks* callbacks, v2::Boolean /*visible*/,
                      v2::Boolean /*logs*/) {
  if (callbacks == nullptr) return nullptr;
  try {
    auto listener = std::make_unique<Logger2>(*callbacks, name);
    if (kind != v2::kCoSimulation) {
      listener->tell(portwave::fmi::kError, "logStatusError",
                     "this FMU is for co-simulation alone");
      return nullptr;
    }
    return Instance::make(name, guid, resources == nullptr ? "" : resources, std::move(listener));
  } catch (...) {
    return nullptr;
  }
}

void fmi2FreeInstance(void* instance) { delete static_cast<Instance*>(instance); }

int fmi2SetDebugLogging(void* instance, v2::Boolean /*on*/, std::size_t /*count*/,
                        const char* const* /*categories*/) {
  // Warnings and errors are always told, and nothing else is.
  return Instance::call(instance, "fmi2SetDebugLogging", kAnyMode, [](Instance&) {});
}

int fmi2SetupExperiment(void* instance, v2::Boolean /*has_tolerance*/, double /*tolerance*/,
                        double start, v2::Boolean /*has_stop*/, double /*stop*/) {
  return Instance::call(instance, "fmi2SetupExperiment", kInstantiated,
                        [&](Instance& own) { own.run().set_start(start); });
}

int fmi2EnterInitializationMode(void* instance) {
  return Instance::call(instance, "fmi2EnterInitializationMode", kInstantiated,
                        [](Instance& own) { own.mode = kInitialising; });
}

int fmi2ExitInitializationMode(void* instance) {
  return Instance::call(instance, "fmi2ExitInitializationMode", kInitialising,
                        [](Instance& own) { own.exit_initialisation(); });
}

int fmi2Terminate(void* instance) {
  return Instance::call(instance, "fmi2Terminate", kStepping,
                        [](Instance& own) { own.terminate(); });
}

int fmi2Reset(void* instance) {
  return Instance::call(instance, "fmi2Reset", kAnyMode, [](Instance& own) { own.reset(); });
}

int fmi2GetReal(void* instance, const Reference* which, std::size_t count, double* values) {
  return Instance::call(instance, "fmi2GetReal", kWithOutputs, [&](Instance& own) {
    expect_values(which, values, count);
    own.get({which, count}, values);
  });
}
int fmi2SetReal(void* instance, const Reference* which, std::size_t count, const double* values) {
  return Instance::call(instance, "fmi2SetReal", kSettableModes, [&](Instance& own) {
    expect_values(which, values, count);
    own.set({which, count}, values);
  });
}
int fmi2GetInteger(void* instance, const Reference*, std::size_t count, int*) {
  return refuse_values(instance, "fmi2GetInteger", count);
}
int fmi2SetInteger(void* instance, const Reference*, std::size_t count, const int*) {
  return refuse_values(instance, "fmi2SetInteger", count);
}
int fmi2GetBoolean(void* instance, const Reference*, std::size_t count, v2::Boolean*) {
  return refuse_values(instance, "fmi2GetBoolean", count);
}
int fmi2SetBoolean(void* instance, const Reference*, std::size_t count, const v2::Boolean*) {
  return refuse_values(instance, "fmi2SetBoolean", count);
}
int fmi2GetString(void* instance, const Reference*, std::size_t count, const char**) {
  return refuse_values(instance, "fmi2GetString", count);
}
int fmi2SetString(void* instance, const Reference*, std::size_t count, const char* const*) {
  return refuse_values(instance, "fmi2SetString", count);
}

int fmi2GetFMUstate(void* instance, StateHandle* state) {
  return Instance::call(instance, "fmi2GetFMUstate", kAnyMode,
                        [&](Instance& own) { own.save(state); });
}
int fmi2SetFMUstate(void* instance, StateHandle state) {
  return Instance::call(instance, "fmi2SetFMUstate", kAnyMode,
                        [&](Instance& own) { own.restore(state); });
}
int fmi2FreeFMUstate(void* instance, StateHandle* state) {
  return Instance::call(instance, "fmi2FreeFMUstate", kAnyMode,
                        [&](Instance& own) { own.release(state); });
}
int fmi2SerializedFMUstateSize(void* instance, StateHandle state, std::size_t* size) {
  return Instance::call(instance, "fmi2SerializedFMUstateSize", kAnyMode, [&](Instance& own) {
    expect_values(size, size, 1);
    *size = own.size_of(state);
  });
}
int fmi2SerializeFMUstate(void* instance, StateHandle state, char* bytes, std::size_t size) {
  return Instance::call(instance, "fmi2SerializeFMUstate", kAnyMode, [&](Instance& own) {
    own.serialise(state, reinterpret_cast<std::byte*>(bytes), size);
  });
}
int fmi2DeSerializeFMUstate(void* instance, const char* bytes, std::size_t size,
                            StateHandle* state) {
  return Instance::call(instance, "fmi2DeSerializeFMUstate", kAnyMode, [&](Instance& own) {
    own.deserialise(reinterpret_cast<const std::byte*>(bytes), size, state);
  });
}

int fmi2GetDirectionalDerivative(void* instance, const Reference* unknowns,
                                 std::size_t unknown_count, const Reference* knowns,
                                 std::size_t known_count, const double* seed, double* out) {
  return Instance::call(
      instance, "fmi2GetDirectionalDerivative", kInitialising | kStepping, [&](Instance& own) {
        expect_values(unknowns, out, unknown_count);
        expect_values(knowns, seed, known_count);
        own.directional_derivative({unknowns, unknown_count}, {knowns, known_count},
                                   {seed, known_count}, out);
      });
}
int fmi2SetRealInputDerivatives(void* instance, const Reference*, std::size_t, const int*,
                                const double*) {
  return refuse(instance, "fmi2SetRealInputDerivatives");
}
int fmi2GetRealOutputDerivatives(void* instance, const Reference*, std::size_t, const int*,
                                 double*) {
  return refuse(instance, "fmi2GetRealOutputDerivatives");
}

int fmi2DoStep(void* instance, double time, double step, v2::Boolean /*no_return_before*/) {
  return Instance::call(instance, "fmi2DoStep", kStepping, [&](Instance& own) {
    if (own.run().step(time, step, false)) refuse_to_go_on(own);
  });
}
int fmi2CancelStep(void* instance) { return refuse(instance, "fmi2CancelStep"); }

int fmi2GetStatus(void* instance, int, int*) { return discard_status(instance, "fmi2GetStatus"); }
int fmi2GetRealStatus(void* instance, int kind, double* value) {
  return Instance::call(instance, "fmi2GetRealStatus", kStepping | kTerminated, [&](Instance& own) {
    expect_values(value, value, 1);
    if (kind != kLastSuccessfulTime) refuse_status();
    *value = own.run().time_s();
  });
}
int fmi2GetIntegerStatus(void* instance, int, int*) {
  return discard_status(instance, "fmi2GetIntegerStatus");
}
int fmi2GetBooleanStatus(void* instance, int kind, v2::Boolean* value) {
  return Instance::call(instance, "fmi2GetBooleanStatus", kStepping | kTerminated,
                        [&](Instance& own) {
                          expect_values(value, value, 1);
                          if (kind != kTerminatedStatus) refuse_status();
                          *value = own.run().ending_watch() != nullptr ? 1 : 0;
                        });
}
int fmi2GetStringStatus(void* instance, int, const char**) {
  return discard_status(instance, "fmi2GetStringStatus");
}

}  // extern "C"
#pragma GCC visibility pop
