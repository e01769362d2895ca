// The functions of FMI 3.0. Those of other interface types than co-simulation are there, as the standard
// demands, and say no.

#include <cstdint>

#include "instance.hpp"

namespace {

namespace v3 = portwave::fmi::v3;
using portwave::fmi::Reference;
using portwave::fmi::StateHandle;
using portwave::fmu::expect_values;
using portwave::fmu::Instance;
using portwave::fmu::kAnyMode;
using portwave::fmu::kBeforeSteps;
using portwave::fmu::kInitialising;
using portwave::fmu::kInstantiated;
using portwave::fmu::kStepping;
using portwave::fmu::kWithOutputs;
using portwave::fmu::refuse;
using portwave::fmu::refuse_values;

class Logger3 final : public portwave::fmu::Listener {
 public:
  Logger3(void* environment, v3::Logger logger) : logger_(logger), environment_(environment) {}
  void tell(int status, const char* category, const std::string& text) override {
    if (logger_ != nullptr) logger_(environment_, status, category, text.c_str());
  }

 private:
  v3::Logger logger_;
  void* environment_;
};

void expect_as_many(std::size_t count, std::size_t values) {
  if (count == values) return;
  throw std::invalid_argument(
      fmt::format("{} variables have {} values, and not {}", count, count, values));
}

void* no_instance(void* environment, v3::Logger logger) {
  if (logger != nullptr) {
    logger(environment, portwave::fmi::kError, "logStatusError",
           "this FMU is for co-simulation alone");
  }
  return nullptr;
}

}  // namespace

// Macros, since a function says its own name where it refuses, and as the standard writes it where it is found.

/// Both functions of a type that no variable of this FMU has.
#define PORTWAVE_NO_VALUES(type, Number)                                                         \
  int fmi3Get##type(void* instance, const Reference*, std::size_t count, Number*, std::size_t) { \
    return refuse_values(instance, "fmi3Get" #type, count);                                      \
  }                                                                                              \
  int fmi3Set##type(void* instance, const Reference*, std::size_t count, Number const*,          \
                    std::size_t) {                                                               \
    return refuse_values(instance, "fmi3Set" #type, count);                                      \
  }

/// A function that this FMU does not offer; with the parameters behind the instance.
#define PORTWAVE_REFUSED(name, ...)                           \
  int fmi3##name(void* instance __VA_OPT__(, ) __VA_ARGS__) { \
    return refuse(instance, "fmi3" #name);                    \
  }

#pragma GCC visibility push(default)
extern "C" {

const char* fmi3GetVersion() { return "3.0"; }

void* fmi3InstantiateCoSimulation(const char* name, const char* token, const char* resources,
                                  bool /*visible*/, bool /*logs*/, bool /*uses_event_mode*/,
                                  bool /*allows_early_return*/, const Reference* /*intermediate*/,
                                  std::size_t /*intermediates*/, void* environment,
                                  v3::Logger logger, v3::Intermediate /*update*/) {
  try {
    return Instance::make(name, token, resources == nullptr ? "" : resources,
                          std::make_unique<Logger3>(environment, logger));
  } catch (...) {
    return nullptr;
  }
}
void* fmi3InstantiateModelExchange(const char*, const char*, const char*, bool, bool,
                                   void* environment, v3::Logger logger) {
  return no_instance(environment, logger);
}
void* fmi3InstantiateScheduledExecution(const char*, const char*, const char*, bool, bool,
                                        void* environment, v3::Logger logger, void (*)(void*),
                                        void (*)(), void (*)()) {
  return no_instance(environment, logger);
}

void fmi3FreeInstance(void* instance) { delete static_cast<Instance*>(instance); }

int fmi3SetDebugLogging(void* instance, bool /*on*/, std::size_t /*count*/,
                        const char* const* /*categories*/) {
  // Warnings and errors are always told, and nothing else is.
  return Instance::call(instance, "fmi3SetDebugLogging", kAnyMode, [](Instance&) {});
}

int fmi3EnterInitializationMode(void* instance, bool /*has_tolerance*/, double /*tolerance*/,
                                double start, bool /*has_stop*/, double /*stop*/) {
  return Instance::call(instance, "fmi3EnterInitializationMode", kInstantiated, [&](Instance& own) {
    own.run().set_start(start);
    own.mode = kInitialising;
  });
}
int fmi3ExitInitializationMode(void* instance) {
  return Instance::call(instance, "fmi3ExitInitializationMode", kInitialising,
                        [](Instance& own) { own.exit_initialisation(); });
}
int fmi3Terminate(void* instance) {
  return Instance::call(instance, "fmi3Terminate", kStepping,
                        [](Instance& own) { own.terminate(); });
}
int fmi3Reset(void* instance) {
  return Instance::call(instance, "fmi3Reset", kAnyMode, [](Instance& own) { own.reset(); });
}

int fmi3GetFloat64(void* instance, const Reference* which, std::size_t count, double* values,
                   std::size_t numbers) {
  return Instance::call(instance, "fmi3GetFloat64", kWithOutputs, [&](Instance& own) {
    expect_as_many(count, numbers);
    expect_values(which, values, count);
    own.get({which, count}, values);
  });
}
int fmi3SetFloat64(void* instance, const Reference* which, std::size_t count, const double* values,
                   std::size_t numbers) {
  return Instance::call(instance, "fmi3SetFloat64", kBeforeSteps | kStepping, [&](Instance& own) {
    expect_as_many(count, numbers);
    expect_values(which, values, count);
    own.set({which, count}, values);
  });
}

PORTWAVE_NO_VALUES(Float32, float)
PORTWAVE_NO_VALUES(Int8, std::int8_t)
PORTWAVE_NO_VALUES(UInt8, std::uint8_t)
PORTWAVE_NO_VALUES(Int16, std::int16_t)
PORTWAVE_NO_VALUES(UInt16, std::uint16_t)
PORTWAVE_NO_VALUES(Int32, std::int32_t)
PORTWAVE_NO_VALUES(UInt32, std::uint32_t)
PORTWAVE_NO_VALUES(Int64, std::int64_t)
PORTWAVE_NO_VALUES(UInt64, std::uint64_t)
PORTWAVE_NO_VALUES(Boolean, bool)
PORTWAVE_NO_VALUES(String, const char*)
int fmi3GetBinary(void* instance, const Reference*, std::size_t count, std::size_t*,
                  const std::uint8_t**, std::size_t) {
  return refuse_values(instance, "fmi3GetBinary", count);
}
int fmi3SetBinary(void* instance, const Reference*, std::size_t count, const std::size_t*,
                  const std::uint8_t* const*, std::size_t) {
  return refuse_values(instance, "fmi3SetBinary", count);
}
int fmi3GetClock(void* instance, const Reference*, std::size_t count, bool*) {
  return refuse_values(instance, "fmi3GetClock", count);
}
int fmi3SetClock(void* instance, const Reference*, std::size_t count, const bool*) {
  return refuse_values(instance, "fmi3SetClock", count);
}

int fmi3GetFMUState(void* instance, StateHandle* state) {
  return Instance::call(instance, "fmi3GetFMUState", kAnyMode,
                        [&](Instance& own) { own.save(state); });
}
int fmi3SetFMUState(void* instance, StateHandle state) {
  return Instance::call(instance, "fmi3SetFMUState", kAnyMode,
                        [&](Instance& own) { own.restore(state); });
}
int fmi3FreeFMUState(void* instance, StateHandle* state) {
  return Instance::call(instance, "fmi3FreeFMUState", kAnyMode,
                        [&](Instance& own) { own.release(state); });
}
int fmi3SerializedFMUStateSize(void* instance, StateHandle state, std::size_t* size) {
  return Instance::call(instance, "fmi3SerializedFMUStateSize", kAnyMode, [&](Instance& own) {
    expect_values(size, size, 1);
    *size = own.size_of(state);
  });
}
int fmi3SerializeFMUState(void* instance, StateHandle state, std::uint8_t* bytes,
                          std::size_t size) {
  return Instance::call(instance, "fmi3SerializeFMUState", kAnyMode, [&](Instance& own) {
    own.serialise(state, reinterpret_cast<std::byte*>(bytes), size);
  });
}
int fmi3DeserializeFMUState(void* instance, const std::uint8_t* bytes, std::size_t size,
                            StateHandle* state) {
  return Instance::call(instance, "fmi3DeserializeFMUState", kAnyMode, [&](Instance& own) {
    own.deserialise(reinterpret_cast<const std::byte*>(bytes), size, state);
  });
}

int fmi3GetDirectionalDerivative(void* instance, const Reference* unknowns,
                                 std::size_t unknown_count, const Reference* knowns,
                                 std::size_t known_count, const double* seed, std::size_t seeds,
                                 double* out, std::size_t outs) {
  return Instance::call(instance, "fmi3GetDirectionalDerivative", kInitialising | kStepping,
                        [&](Instance& own) {
                          expect_as_many(known_count, seeds);
                          expect_as_many(unknown_count, outs);
                          expect_values(unknowns, out, unknown_count);
                          expect_values(knowns, seed, known_count);
                          own.directional_derivative({unknowns, unknown_count},
                                                     {knowns, known_count}, {seed, seeds}, out);
                        });
}
int fmi3GetAdjointDerivative(void* instance, const Reference* unknowns, std::size_t unknown_count,
                             const Reference* knowns, std::size_t known_count, const double* seed,
                             std::size_t seeds, double* out, std::size_t outs) {
  return Instance::call(instance, "fmi3GetAdjointDerivative", kInitialising | kStepping,
                        [&](Instance& own) {
                          expect_as_many(unknown_count, seeds);
                          expect_as_many(known_count, outs);
                          expect_values(unknowns, seed, unknown_count);
                          expect_values(knowns, out, known_count);
                          own.adjoint_derivative({unknowns, unknown_count}, {knowns, known_count},
                                                 {seed, seeds}, out);
                        });
}

int fmi3EnterStepMode(void* instance) {
  // Without an event mode the instance is in its step mode already.
  return Instance::call(instance, "fmi3EnterStepMode", kStepping, [](Instance&) {});
}
int fmi3DoStep(void* instance, double time, double step, bool /*no_return_before*/,
               bool* event_needed, bool* terminates, bool* returned_early, double* last_time) {
  return Instance::call(instance, "fmi3DoStep", kStepping, [&](Instance& own) {
    for (bool* const flag : {event_needed, terminates, returned_early}) {
      if (flag != nullptr) *flag = false;
    }
    if (last_time != nullptr) *last_time = own.run().time_s();
    // A step that is discarded has not happened (FMI 3).
    const bool ends = own.run().step(time, step, /*is_whole=*/true);
    if (terminates != nullptr) *terminates = ends;
    if (last_time != nullptr) *last_time = own.run().time_s();
  });
}

// Not offered.
PORTWAVE_REFUSED(EnterEventMode)
PORTWAVE_REFUSED(EnterConfigurationMode)
PORTWAVE_REFUSED(ExitConfigurationMode)
PORTWAVE_REFUSED(EvaluateDiscreteStates)
PORTWAVE_REFUSED(EnterContinuousTimeMode)
PORTWAVE_REFUSED(GetNumberOfVariableDependencies, Reference, std::size_t*)
PORTWAVE_REFUSED(GetVariableDependencies, Reference, std::size_t*, Reference*, std::size_t*, int*,
                 std::size_t)
PORTWAVE_REFUSED(GetOutputDerivatives, const Reference*, std::size_t, const std::int32_t*, double*,
                 std::size_t)
PORTWAVE_REFUSED(GetIntervalDecimal, const Reference*, std::size_t, double*, int*)
PORTWAVE_REFUSED(GetIntervalFraction, const Reference*, std::size_t, std::uint64_t*, std::uint64_t*,
                 int*)
PORTWAVE_REFUSED(GetShiftDecimal, const Reference*, std::size_t, double*)
PORTWAVE_REFUSED(GetShiftFraction, const Reference*, std::size_t, std::uint64_t*, std::uint64_t*)
PORTWAVE_REFUSED(SetIntervalDecimal, const Reference*, std::size_t, const double*)
PORTWAVE_REFUSED(SetIntervalFraction, const Reference*, std::size_t, const std::uint64_t*,
                 const std::uint64_t*)
PORTWAVE_REFUSED(SetShiftDecimal, const Reference*, std::size_t, const double*)
PORTWAVE_REFUSED(SetShiftFraction, const Reference*, std::size_t, const std::uint64_t*,
                 const std::uint64_t*)
PORTWAVE_REFUSED(UpdateDiscreteStates, bool*, bool*, bool*, bool*, bool*, double*)
PORTWAVE_REFUSED(CompletedIntegratorStep, bool, bool*, bool*)
PORTWAVE_REFUSED(SetTime, double)
PORTWAVE_REFUSED(SetContinuousStates, const double*, std::size_t)
PORTWAVE_REFUSED(GetContinuousStateDerivatives, double*, std::size_t)
PORTWAVE_REFUSED(GetEventIndicators, double*, std::size_t)
PORTWAVE_REFUSED(GetContinuousStates, double*, std::size_t)
PORTWAVE_REFUSED(GetNominalsOfContinuousStates, double*, std::size_t)
PORTWAVE_REFUSED(GetNumberOfEventIndicators, std::size_t*)
PORTWAVE_REFUSED(GetNumberOfContinuousStates, std::size_t*)
PORTWAVE_REFUSED(ActivateModelPartition, Reference, double)

}  // extern "C"
#pragma GCC visibility pop
