#pragma once

#include <cstddef>
#include <cstdint>

/// The binary interfaces of FMI 2.0 and 3.0 as far as co-simulation needs them: types, numbers and signatures
/// as the standards define them (fmi-standard.org), written for this program. Names of functions are those of
/// the standard without the prefix fmi2 or fmi3.
namespace portwave::fmi {

using Reference = std::uint32_t;  ///< of a variable ("value reference")
using StateHandle = void*;        ///< a saved state, owned by the instance that made it

/// What a function of an FMU returns. `pending` exists in FMI 2 alone.
enum Status : int {
  kOk = 0,
  kWarning = 1,
  kDiscard = 2,
  kError = 3,
  kFatal = 4,
  kPending = 5,
};

namespace v2 {

using Boolean = int;
constexpr int kCoSimulation = 1;
constexpr int kTerminated = 3;  ///< a kind of status

/// It may be called with any further arguments, in the manner of printf.
using Logger = void (*)(void* environment, const char* instance, int status, const char* category,
                        const char* message, ...);

struct Callbacks {
  Logger logger;
  void* (*allocate)(std::size_t count, std::size_t size);
  void (*release)(void* memory);
  void (*step_finished)(void* environment, int status);  ///< null: steps end before they return
  void* environment;
};

struct Functions {
  const char* (*GetVersion)();
  void* (*Instantiate)(const char* name, int kind, const char* guid, const char* resources,
                       const Callbacks* callbacks, Boolean visible, Boolean logs);
  void (*FreeInstance)(void* instance);
  int (*SetupExperiment)(void* instance, Boolean has_tolerance, double tolerance, double start,
                         Boolean has_stop, double stop);
  int (*EnterInitializationMode)(void* instance);
  int (*ExitInitializationMode)(void* instance);
  int (*Terminate)(void* instance);
  int (*GetReal)(void* instance, const Reference* which, std::size_t count, double* values);
  int (*SetReal)(void* instance, const Reference* which, std::size_t count, const double* values);
  int (*GetInteger)(void* instance, const Reference* which, std::size_t count, int* values);
  int (*SetInteger)(void* instance, const Reference* which, std::size_t count, const int* values);
  int (*GetBoolean)(void* instance, const Reference* which, std::size_t count, Boolean* values);
  int (*SetBoolean)(void* instance, const Reference* which, std::size_t count,
                    const Boolean* values);
  int (*DoStep)(void* instance, double time, double step, Boolean no_return_before);
  /// Asked where a step was discarded. Null: it does not say why.
  int (*GetBooleanStatus)(void* instance, int kind, Boolean* value);
  /// Null where the model has no texts.
  int (*SetString)(void* instance, const Reference* which, std::size_t count,
                   const char* const* values);
  // Null where the FMU cannot save its state.
  int (*GetFMUstate)(void* instance, StateHandle* state);
  int (*SetFMUstate)(void* instance, StateHandle state);
  int (*FreeFMUstate)(void* instance, StateHandle* state);
  // Null where it cannot write it as bytes.
  int (*SerializedFMUstateSize)(void* instance, StateHandle state, std::size_t* size);
  int (*SerializeFMUstate)(void* instance, StateHandle state, std::byte* bytes, std::size_t size);
  int (*DeSerializeFMUstate)(void* instance, const std::byte* bytes, std::size_t size,
                             StateHandle* state);
};

}  // namespace v2

namespace v3 {

using Logger = void (*)(void* environment, int status, const char* category, const char* message);
using Intermediate = void (*)(void* environment, double time, bool wants_inputs, bool may_get,
                              bool step_finished, bool can_return_early, bool* early,
                              double* early_time);

template <class Number>
using Get = int (*)(void* instance, const Reference* which, std::size_t count, Number* values,
                    std::size_t numbers);
template <class Number>
using Set = int (*)(void* instance, const Reference* which, std::size_t count, const Number* values,
                    std::size_t numbers);

struct Functions {
  const char* (*GetVersion)();
  void* (*InstantiateCoSimulation)(const char* name, const char* token, const char* resources,
                                   bool visible, bool logs, bool uses_event_mode,
                                   bool allows_early_return, const Reference* intermediate,
                                   std::size_t intermediates, void* environment, Logger logger,
                                   Intermediate update);
  void (*FreeInstance)(void* instance);
  int (*EnterInitializationMode)(void* instance, bool has_tolerance, double tolerance, double start,
                                 bool has_stop, double stop);
  int (*ExitInitializationMode)(void* instance);
  int (*Terminate)(void* instance);
  int (*DoStep)(void* instance, double time, double step, bool no_return_before, bool* event_needed,
                bool* terminates, bool* returned_early, double* last_time);
  Get<double> GetFloat64;
  Set<double> SetFloat64;
  // Of the following those that the variables in use need.
  Get<float> GetFloat32;
  Set<float> SetFloat32;
  Get<std::int8_t> GetInt8;
  Set<std::int8_t> SetInt8;
  Get<std::uint8_t> GetUInt8;
  Set<std::uint8_t> SetUInt8;
  Get<std::int16_t> GetInt16;
  Set<std::int16_t> SetInt16;
  Get<std::uint16_t> GetUInt16;
  Set<std::uint16_t> SetUInt16;
  Get<std::int32_t> GetInt32;
  Set<std::int32_t> SetInt32;
  Get<std::uint32_t> GetUInt32;
  Set<std::uint32_t> SetUInt32;
  Get<std::int64_t> GetInt64;
  Set<std::int64_t> SetInt64;
  Get<std::uint64_t> GetUInt64;
  Set<std::uint64_t> SetUInt64;
  Set<const char*> SetString;
  Get<bool> GetBoolean;
  Set<bool> SetBoolean;
  // Where there are structural parameters.
  int (*EnterConfigurationMode)(void* instance);
  int (*ExitConfigurationMode)(void* instance);
  // Where there is an event mode.
  int (*EnterEventMode)(void* instance);
  int (*UpdateDiscreteStates)(void* instance, bool* needs_update, bool* terminates,
                              bool* nominals_changed, bool* values_changed, bool* has_next_event,
                              double* next_event);
  int (*EnterStepMode)(void* instance);
  // Where there are clocks.
  int (*GetClock)(void* instance, const Reference* which, std::size_t count, bool* ticks);
  int (*SetClock)(void* instance, const Reference* which, std::size_t count, const bool* ticks);
  /// Null where it is missing; qualifiers: 0 not known yet, 1 unchanged, 2 changed.
  int (*GetIntervalDecimal)(void* instance, const Reference* which, std::size_t count,
                            double* intervals, int* qualifiers);
  int (*GetShiftDecimal)(void* instance, const Reference* which, std::size_t count, double* shifts);
  // Null where the FMU cannot save its state.
  int (*GetFMUState)(void* instance, StateHandle* state);
  int (*SetFMUState)(void* instance, StateHandle state);
  int (*FreeFMUState)(void* instance, StateHandle* state);
  // Null where it cannot write it as bytes.
  int (*SerializedFMUStateSize)(void* instance, StateHandle state, std::size_t* size);
  int (*SerializeFMUState)(void* instance, StateHandle state, std::byte* bytes, std::size_t size);
  int (*DeserializeFMUState)(void* instance, const std::byte* bytes, std::size_t size,
                             StateHandle* state);
};

}  // namespace v3
}  // namespace portwave::fmi
