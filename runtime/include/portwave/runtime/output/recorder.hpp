#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A recorded quantity: a state ("A.q1") or a port variable ("A.coupling.effort",
/// ".flow", ".incident", ".outgoing", with "[entry]" for ports of dimension > 1), or a signal of
/// the signal graph ("pid"), as sampled for the step to come.
struct Quantity {
  enum class Kind { state, effort, flow, incident, outgoing, storage, signal, coenergy };
  std::string label;
  Kind kind = Kind::state;
  int part = 0;  ///< no meaning for a signal
  /// State (also of a co-energy variable), scalar port of the system, or number of the signal; the storage of the part includes
  /// that of this many parts after it.
  int index = 0;
  std::string unit;
};

/// Resolves "part.state", "part.port.effort|flow|incident|outgoing" or "part.storage". The
/// entry of a wider port is written "part.port.effort[1]" or "part.port[1].effort". On failure
/// appends an issue with the nearest name and returns false. `method`: one that couples without
/// waves has no incident and outgoing ones.
bool resolve_quantity(const System& system, const std::string& label, const std::string& where,
                      Quantity& out, Issues& issues,
                      MethodKind method = WaveUpdate::douglas_rachford);

/// The same for the system of a stepper, or the name of a signal of its signal graph. Find once and read
/// many times by `observe`. Errors: std::out_of_range with the nearest name.
Quantity find_quantity(const Stepper& stepper, const std::string& label);

/// Errors: std::invalid_argument for a wave where the method couples without waves.
double observe(const Stepper& stepper, const Quantity& quantity);
/// At a time within the last step, by the polynomials of its stages; waves as at its end. Only for
/// steppers whose steps choose their size.
double observe_at(const Stepper& stepper, const Quantity& quantity, double time_s);

/// File format of a run's tables.
enum class ResultFormat {
  csv,   ///< a text file for each
  hdf5,  ///< results.h5, a group for each
  none,  ///< no tables: the summary alone
};

std::string_view to_string(ResultFormat format);

/// Selection of the tables of a run (docs/reference/scenario.md, "outputs").
struct RecordingOptions {
  std::vector<Quantity> quantities = {};
  int every = 1;  ///< one row per this many steps, ≥ 1
  double every_s =
      0.0;  ///< steps that choose their size: rows at the multiples of it [s]; 0: `every`
  /// For each quantity also the smallest and the largest value since the row before, that row's included.
  bool envelope = false;
  /// Only rows of the last this many seconds of the run, held in memory until it ends; 0: all.
  double last_s = 0.0;
  /// Also the energies of each part and each junction. Wave coupling with a ledger only.
  bool energies = false;
  ResultFormat format = ResultFormat::csv;
  /// HDF5 of several ranks: each rank writes the quantities of its parts to a file of its own,
  /// results.rank-R.h5, and results.h5 refers to these. All of them need the folder. Not with `last_s`.
  bool per_rank = false;
  /// Files that the run has read, which its results must not replace. Reading a scenario fills it in: the
  /// scenario file, tables, matrices and plugins.
  std::vector<std::filesystem::path> inputs = {};
};

class StateArchive;
struct RunSummary;

/// Receives a run in progress: files, memory, a live view. The stepping program calls
///   record_initial    once, before the first step;
///   record            after every step, with its report;
///   finish            once, after the last step, or when the run was interrupted or has failed, with
///                     its summary.
/// A recorder destroyed without `finish` leaves nothing half done, except for the needs of checkpoints.
/// It reads from the stepper, and changes nothing. One thread calls it.
/// Errors: std::runtime_error, which ends the run.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record_initial(const Stepper& stepper) = 0;
  virtual void record(const Stepper& stepper, const StepReport& report) = 0;
  virtual void finish(const RunSummary& summary) = 0;
  /// For checkpoints, between two steps. Writing: moves recorded data where it outlives the process, and
  /// archives the recorder's position. Reading, in place of record_initial: goes back to that position;
  /// recording continues as if uninterrupted. A recorder that keeps nothing does nothing here.
  virtual void archive(const Stepper& stepper, StateArchive& archive);
  /// Time that steps have waited for it so far [s], because it takes in less than the run writes.
  virtual double waited_s() const;
};

/// Refuses to overwrite files that were read: where `place` is one of the files `read`, or a folder that
/// one of them is in. Files are told apart by device and number, so that links, relative paths and other
/// names of a file do not hide it. Errors: ConfigError naming the file and the remedy.
void refuse_to_overwrite(std::span<const std::filesystem::path> read,
                         const std::filesystem::path& place);

/// Writes `text` to `path` by way of a temporary file in the same folder and a rename.
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

}  // namespace portwave
