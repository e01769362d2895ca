#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "adapters/fmi/file/fmu.hpp"
#include "adapters/fmi/instance/fmu_instance.hpp"
#include "portwave/runtime/adapters/fmu.hpp"

namespace portwave::fmi {

struct StartValue {
  const Variable* variable = nullptr;
  FmuValue value = 0.0;  ///< in the variable's own unit; of an array all elements
};

/// What an instance is to look after from its start.
struct Shown {
  VariableList watched;  ///< outputs of which means over steps are wanted
  VariableList clocked;  ///< outputs that change at the ticks of clocks
};

/// Where the code of an FMU runs, and how long it may take for a call.
struct Isolation {
  bool in_a_process = false;
  double time_limit_s = 10.0;  ///< in a process only
};

/// An instance with start values set, initialised at a time [s].
/// Errors: FmuFault; ConfigError if its code cannot be loaded.
std::unique_ptr<Instance> start_instance(const std::shared_ptr<const Fmu>& fmu,
                                         const std::string& name, std::span<const StartValue> start,
                                         double start_s, const Isolation& isolation = {},
                                         const Shown& shown = {});

/// A state of a program that was saved.
struct SavedState {
  StateHandle handle = nullptr;
  std::uint64_t generation = 0;  ///< 0: nothing was saved
  double time_s = 0.0;
  // Steps of one size since a time: times are multiples, not sums, of which rounding would grow.
  double since_s = 0.0, step_s = 0.0;
  std::int64_t steps = 0;
};

/// An instance that goes back to states it had: it knows in which of them it is. Lock `mutex` around calls.
class Program {
 public:
  /// Initialised, at the state `initial()`, which is saved if `saves`. Errors: as start_instance; FmuFault.
  Program(const std::shared_ptr<const Fmu>& fmu, const std::string& name,
          std::span<const StartValue> start, double start_s, const Isolation& isolation,
          const Shown& shown, bool saves);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Instance& instance() { return *instance_; }
  const SavedState& initial() const { return initial_; }

  void save(SavedState& state, double time_s);
  void restore(const SavedState& state);
  /// From wherever it is.
  void step(double time_s, double step_s);
  void release(SavedState& state);
  /// A saved state with its times, as bytes that any instance of the FMU takes. Errors: FmuFault.
  std::vector<std::byte> to_bytes(const SavedState& state, const Fmu& fmu);
  /// Puts such a state in place of one. Errors: FmuFault, nothing having changed, also for bytes of another FMU.
  void adopt(SavedState& state, std::span<const std::byte> bytes, const Fmu& fmu);

  std::mutex mutex;

 private:
  std::unique_ptr<Instance> instance_;
  SavedState initial_;
  std::uint64_t newest_ = 0;  ///< generation
  std::uint64_t at_ = 0;      ///< the generation it is at; 0: none that was saved
};

}  // namespace portwave::fmi
