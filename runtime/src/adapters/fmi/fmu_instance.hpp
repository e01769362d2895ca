#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/fmi/fmu.hpp"
#include "portwave/runtime/adapters/fmu.hpp"

namespace portwave::fmi {

/// A function of an FMU did not succeed. The message names it, the time and what the FMU logged.
class FmuFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Variables that are read or written together, in order: runs of one type are one call.
class VariableList {
 public:
  VariableList() = default;
  /// Errors: std::logic_error for variables that are no numbers or arrays.
  explicit VariableList(std::span<const Variable* const> variables);

  struct Run {
    VariableType type;
    std::size_t first = 0;
    std::vector<Reference> references;
  };
  const std::vector<Run>& runs() const { return runs_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

struct StartValue {
  const Variable* variable = nullptr;
  FmuValue value = 0.0;  ///< in the variable's own unit
};

/// One running instance of an FMU, of either version. One thread at a time.
///
/// After `error` or `fatal` an instance is lost: every further call throws. After `discard` its state may be
/// set again.
class Instance {
 public:
  /// Instantiated, with start values set, initialised at a time [s].
  /// Errors: FmuFault; ConfigError if there is no instance.
  static std::unique_ptr<Instance> create(std::shared_ptr<const Fmu> fmu, const std::string& name,
                                          std::span<const StartValue> start, double start_s);
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const Fmu& fmu() const { return *fmu_; }
  /// Values of integers and truth values are converted. Errors: FmuFault.
  virtual void get(const VariableList& list, double* values) = 0;
  virtual void set(const VariableList& list, const double* values) = 0;
  virtual void step(double time_s, double step_s) = 0;
  /// Saves to a new handle.
  virtual void save(StateHandle& state) = 0;
  virtual void restore(StateHandle state) = 0;
  virtual void release(StateHandle& state) = 0;

 protected:
  Instance(std::shared_ptr<const Fmu> fmu, std::string name);
  /// Throws FmuFault unless the status is ok or a warning. `when`: such as " at 0.2 s".
  void expect_ok(int status, const char* function, const std::string& when = {});
  void expect_alive() const;
  bool is_dead() const { return dead_; }
  bool was_fatal() const { return fatal_; }
  /// Keeps what the FMU logs, if it is more than news.
  void note(int status, const char* message);
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<const Fmu> fmu_;
  std::string name_;
  std::string log_;  ///< since the last call that succeeded
  bool dead_ = false, fatal_ = false;
};

}  // namespace portwave::fmi
