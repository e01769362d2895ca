#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/fmi/instance/fmu_library.hpp"

namespace portwave::fmi {

/// A function of an FMU did not succeed. The message names it, the time and what the FMU logged.
class FmuFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Numbers that are read or written together, in order: runs of one kind are one call. Elements of an array are a run
/// of their own.
class VariableList {
 public:
  VariableList() = default;
  /// Errors: std::logic_error for variables that are no numbers, clocks or elements of arrays.
  explicit VariableList(std::span<const Variable* const> variables);
  /// Another variable at the end.
  void add(const Variable& variable);
  /// All elements of an array.
  void add_all(const Variable& array, std::size_t elements);
  void clear() {
    runs_.clear();
    size_ = 0;
  }

  struct Run {
    VariableType type = VariableType::float64;
    bool is_discrete = false;
    bool is_within = false;  ///< its values are told within steps
    ClockMask clocks = 0;    ///< at whose ticks they are set or change
    std::size_t first = 0;   ///< place in the list
    std::vector<Reference> references;
    // Of elements of an array:
    std::string array;                  ///< its name; empty: no array
    std::size_t elements = 0;           ///< of the whole array
    std::vector<std::uint64_t> places;  ///< which of them

    bool is_array() const { return !array.empty(); }
    std::size_t size() const { return is_array() ? places.size() : references.size(); }
  };
  void add_run(Run run);
  const std::vector<Run>& runs() const { return runs_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

/// What an FMU has logged since its last call that succeeded. Plain memory, so that another process can read it.
class FmuLog {
 public:
  /// Keeps a message, if it is more than news.
  void note(int status, const char* message);
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::string text() const;

 private:
  static constexpr std::uint32_t kCapacity = 4096;
  std::uint32_t size_ = 0;
  char text_[kCapacity] = {};
};

/// One running instance of an FMU, of either version. One thread at a time.
///
/// After `error` or `fatal` an instance is lost: every further call throws the same. After `discard` its state may be
/// set again. Of one in a process of its own, calls may be told together: they have happened, and their faults have
/// come, with the next `get` or `finish`.
class Instance {
 public:
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  virtual void set_text(Reference which, const std::string& text) = 0;
  /// Sets structural parameters, before anything else. Errors: FmuFault, also if they are others then.
  virtual void configure(const VariableList& list, const double* values) = 0;
  virtual void initialise(double start_s) = 0;
  /// Values of integers and truth values are converted. Errors: FmuFault.
  virtual void get(const VariableList& list, double* values) = 0;
  virtual void set(const VariableList& list, const double* values) = 0;
  virtual void step(double time_s, double step_s) = 0;
  /// Of the variables that are watched: their means over the last step.
  virtual void ask_means(double* means) = 0;
  /// Saves to a new handle.
  virtual void save(StateHandle& state) = 0;
  virtual void restore(StateHandle state) = 0;
  virtual void release(StateHandle& state) = 0;
  /// A saved state as bytes, which any instance of the FMU makes a state of its own of.
  virtual std::vector<std::byte> to_bytes(StateHandle state) = 0;
  virtual StateHandle from_bytes(std::span<const std::byte> bytes) = 0;
  /// As get, but the values may be there only after `finish` or the next get.
  virtual void ask(const VariableList& list, double* values) { get(list, values); }
  /// All that was called has happened. Errors: FmuFault.
  virtual void finish() {}
  /// Its process has ended.
  virtual bool is_gone() const { return false; }

 protected:
  Instance() = default;
};

/// A clock that an instance ticks, or listens to.
struct ClockUse {
  std::string name;
  Reference reference = 0;
  ClockMask bit = 0;
  bool is_output = false;      ///< it ticks by itself, in events
  bool asks_interval = false;  ///< the FMU tells interval and shift when it is initialised
  double interval_s = 0.0, shift_s = 0.0;
};

/// Which abilities of an FMU (FMI 3) an instance uses.
struct InstanceUses {
  bool events = false;        ///< event mode
  bool early_return = false;  ///< steps may end early; the rest is then taken
  bool intermediate = false;  ///< values within steps serve means
  bool any_step = false;      ///< a step may be taken in pieces
  std::vector<ClockUse> clocks;
  VariableList watched;  ///< variables of which means are wanted
  VariableList clocked;  ///< variables that change at ticks, and are held in between
};

/// What an instance is made from.
struct InstanceOrigin {
  std::string file;  ///< name of the FMU's file
  std::string name;  ///< of the instance
  std::string token, resources;
  InstanceUses uses = {};
  std::shared_ptr<const void> keeps = {};  ///< what must outlive the instance
};

/// An instance in this process, which is not initialised yet. It logs to `log`, which outlives it; null: to a log
/// of its own. Errors: FmuFault.
std::unique_ptr<Instance> instantiate(const Functions& functions, InstanceOrigin origin,
                                      FmuLog* log = nullptr);

}  // namespace portwave::fmi
