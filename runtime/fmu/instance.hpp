#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/standard/fmi_interface.hpp"
#include "export/model_run.hpp"
#include "portwave/runtime/step/step_report.hpp"
#include "portwave/subsystems/base/error.hpp"

/// An exported FMU from within: what the functions of FMI 2 and 3 share.
namespace portwave::fmu {

using exported::ModelRun;
using exported::RunState;
using fmi::Reference;

/// Where an instance is in the standard's state machine, as a set of bits.
enum Mode : unsigned {
  kInstantiated = 1,
  kInitialising = 2,
  kStepping = 4,
  kTerminated = 8,
  kBeforeSteps = kInstantiated | kInitialising,
  kWithOutputs = kInitialising | kStepping | kTerminated,
  kAnyMode = kInstantiated | kWithOutputs,
};

/// What an instance tells its importer.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void tell(int status, const char* category, const std::string& text) = 0;
};

/// A saved state, which the importer knows by its address.
struct SavedState {
  RunState run;
  Mode mode = kInstantiated;
};

class Instance {
 public:
  /// Null where it cannot be made: why is told.
  static Instance* make(const char* name, const char* token, std::string_view resources,
                        std::unique_ptr<Listener> listener);

  /// Calls `act` if the instance is in one of the modes, and turns what is thrown into a status: refusals and
  /// steps that fail are discarded, and the run stands; all else is an error.
  template <class Act>
  static int call(void* instance, const char* function, unsigned modes, const Act& act) {
    if (instance == nullptr) return fmi::kError;
    auto& own = *static_cast<Instance*>(instance);
    return own.guarded(function, [&] {
      own.expect(modes);
      act(own);
    });
  }
  template <class Act>
  int guarded(const char* function, const Act& act) noexcept {
    try {
      try {
        act();
        return fmi::kOk;
      } catch (const exported::Refusal& refusal) {
        return tell(fmi::kDiscard, fmt::format("{}: {}", function, refusal.what()));
      } catch (const StepError& error) {
        return tell(fmi::kDiscard, text_of(function, error));
      } catch (const std::bad_alloc&) {
        return tell(fmi::kError, "not enough memory");
      } catch (const std::exception& error) {
        return tell(fmi::kError, fmt::format("{}: {}", function, error.what()));
      }
    } catch (...) {  // no memory for the message either, or nothing that is known
      return fmi::kError;
    }
  }

  ModelRun& run() { return run_; }
  Mode mode = kInstantiated;

  void get(std::span<const Reference> which, double* values);
  /// All of them or none.
  void set(std::span<const Reference> which, const double* values);
  /// Of the last step. Errors: as ModelRun's; std::out_of_range.
  void directional_derivative(std::span<const Reference> unknowns,
                              std::span<const Reference> knowns, std::span<const double> seed,
                              double* out);
  void adjoint_derivative(std::span<const Reference> unknowns, std::span<const Reference> knowns,
                          std::span<const double> seed, double* out);
  void exit_initialisation();
  void terminate();
  void reset();

  // States belong to the instance, which frees those that are left. Errors: std::invalid_argument for one that is
  // not of this instance, and for bytes that are no state of this FMU.
  void save(void** state);
  void restore(const void* state);
  void release(void** state);
  std::size_t size_of(const void* state) const;
  void serialise(const void* state, std::byte* bytes, std::size_t size) const;
  void deserialise(const std::byte* bytes, std::size_t size, void** state);

 private:
  Instance(ModelRun run, std::unique_ptr<Listener> listener)
      : run_(std::move(run)), listener_(std::move(listener)) {}

  int tell(int status, const std::string& text) noexcept;
  void expect(unsigned modes) const;
  std::size_t place(Reference which) const;
  std::vector<std::size_t> places(std::span<const Reference> which) const;
  SavedState& saved(const void* state) const;
  void* keep(SavedState state);
  std::vector<std::byte> bytes_of(const void* state) const;
  static std::string text_of(const char* function, const StepError& error);

  ModelRun run_;
  std::unique_ptr<Listener> listener_;
  std::unordered_map<const void*, std::unique_ptr<SavedState>> states_;
};

/// Of a function that this FMU does not offer, as its description says: an error.
int refuse(void* instance, const char* function);
/// Of variables of a type that this FMU has none of: fine if there are none, else an error.
int refuse_values(void* instance, const char* function, std::size_t count);
/// Errors: std::invalid_argument for null pointers where there are values.
void expect_values(const void* which, const void* values, std::size_t count);

}  // namespace portwave::fmu
