#include "portwave/runtime/output/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "output/pending_file.hpp"
#include "portwave/runtime/output/summary.hpp"

namespace portwave {
namespace {

constexpr const char* kEvents = "events.csv";

/// Creates the folder and its parents; false when it was there.
bool make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const bool created = std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw std::runtime_error(
        fmt::format("cannot create folder \"{}\": {}", folder.string(), error.message()));
  }
  return created;
}

/// As a field of a CSV line: quoted when it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

/// Energies of the steps since the last row.
struct LedgerRow {
  double supplied_J = 0.0;
  double dissipated_J = 0.0;
  double mismatch_J = 0.0;
  double alpha = 1.0;
  double withheld_J = 0.0;
  double max_passivity_residual_J = 0.0;
  std::int64_t iterations = 0;
  bool empty = true;

  void add(const StepReport& report) {
    const StepLedger& energy = report.energy;
    supplied_J += energy.supplied_J;
    dissipated_J += energy.dissipated_J;
    mismatch_J += energy.mismatch_J;
    alpha = std::min(alpha, energy.alpha);
    withheld_J += energy.withheld_J;
    max_passivity_residual_J =
        empty ? energy.max_passivity_residual_J
              : std::max(max_passivity_residual_J, energy.max_passivity_residual_J);
    if (report.begins_window) iterations += report.iterations;
    empty = false;
  }
};

void remove_if_there(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
  const std::error_code error(errno, std::generic_category());
  throw std::runtime_error(
      fmt::format("cannot replace \"{}\": {}", path.string(), error.message()));
}

}  // namespace

OutputFolder::OutputFolder(std::filesystem::path path)
    : path_(std::move(path)), created_(make_folder(path_)) {}

OutputFolder::OutputFolder(std::filesystem::path path,
                           std::initializer_list<const char*> names_of_files)
    : OutputFolder(std::move(path)) {
  // Opening is the only sure way to know whether files can be made.
  for (const char* name : names_of_files) PendingFile probe(path_ / name);
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (created_) std::filesystem::remove(path_, ignored);
}

struct CsvRecorder::Impl {
  Impl(std::filesystem::path path, std::vector<Observable> observed, int record_every,
       double record_every_s)
      : folder(std::move(path), {"summary.json"}),
        trajectory(folder.file("trajectory.csv")),
        energy(folder.file("energy.csv")),
        observables(std::move(observed)),
        every(std::max(record_every, 1)),
        every_s(record_every_s) {
    trajectory.append("time_s");
    for (const Observable& observable : observables) {
      trajectory.append(',');
      trajectory.append(csv_field(observable.label));
    }
    trajectory.append('\n');
    energy.append(
        "step,time_s,stored_J,supplied_J,dissipated_J,mismatch_J,tank_J,"
        "max_passivity_residual_J,iterations,guard_alpha,guard_withheld_J\n");
  }

  void write_trajectory_row(const Stepper& stepper) {
    trajectory.append(stepper.time_s());
    for (const Observable& observable : observables) {
      trajectory.append(',');
      trajectory.append(observe(stepper, observable));
    }
    trajectory.append('\n');
  }

  /// Rows for the multiples of every_s in the last step.
  void write_rows_within(const Stepper& stepper, double step_s) {
    // What rounding has put beyond the end of the step belongs to it.
    const double end_s = stepper.time_s() + 1e-9 * step_s;
    for (; static_cast<double>(rows) * every_s <= end_s; ++rows) {
      const double time_s = static_cast<double>(rows) * every_s;
      trajectory.append(time_s);
      for (const Observable& observable : observables) {
        trajectory.append(',');
        trajectory.append(observe_at(stepper, observable, std::min(time_s, stepper.time_s())));
      }
      trajectory.append('\n');
    }
  }

  void write_energy_row(const Stepper& stepper, double stored_J, double tank_J) {
    energy.append(stepper.step_index());
    energy.append(',');
    energy.append(stepper.time_s());
    for (const double value : {stored_J, row.supplied_J, row.dissipated_J, row.mismatch_J, tank_J,
                               row.max_passivity_residual_J}) {
      energy.append(',');
      if (stepper.keeps_ledger()) energy.append(value);  // else empty: nobody knows
    }
    energy.append(',');
    energy.append(row.iterations);
    for (const double value : {row.alpha, row.withheld_J}) {
      energy.append(',');
      energy.append(value);
    }
    energy.append('\n');
    row = {};
  }

  void begin_events(const Stepper& stepper) {
    if (stepper.watches().empty()) return;
    events.emplace(folder.file(kEvents));
    events->append("time_s,event,direction\n");
    for (const Watch& watch : stepper.watches()) {
      for (const std::string& direction : {watch.falling, watch.rising}) {
        event_texts.push_back(fmt::format(",{},{}\n", csv_field(watch.name), csv_field(direction)));
      }
    }
  }

  void write_events(const Stepper& stepper) {
    for (const Event& event : stepper.events()) {
      events->append(event.time_s);
      events->append(
          event_texts[2 * static_cast<std::size_t>(event.watch) + (event.rising ? 1 : 0)]);
    }
  }

  void close() {
    trajectory.close();
    energy.close();
    if (events) events->close();
  }

  void publish() {
    folder.keep();
    trajectory.publish();
    energy.publish();
    if (events) events->publish();
  }

  OutputFolder folder;  // before the files, so that they are gone when it is tidied up
  PendingFile trajectory;
  PendingFile energy;
  std::optional<PendingFile> events;     // where something is watched
  std::vector<std::string> event_texts;  // by watch, falling and rising: what follows the time
  std::vector<Observable> observables;
  int every;
  double every_s;
  std::int64_t rows = 1;  // of the trajectory, with every_s
  LedgerRow row;
};

CsvRecorder::CsvRecorder(std::filesystem::path folder, std::vector<Observable> observables,
                         int every, double every_s)
    : impl_(std::make_unique<Impl>(std::move(folder), std::move(observables), every, every_s)) {}

CsvRecorder::~CsvRecorder() = default;

void CsvRecorder::record_initial(const Stepper& stepper) {
  impl_->write_trajectory_row(stepper);
  impl_->write_energy_row(stepper, stepper.energy().initial_J, stepper.energy().initial_tank_J);
  impl_->begin_events(stepper);
}

void CsvRecorder::record(const Stepper& stepper, const StepReport& report) {
  impl_->row.add(report);
  if (impl_->events) impl_->write_events(stepper);
  if (impl_->every_s > 0.0) impl_->write_rows_within(stepper, report.step_s);
  if (stepper.step_index() % impl_->every != 0) return;
  if (impl_->every_s == 0.0) impl_->write_trajectory_row(stepper);
  impl_->write_energy_row(stepper, report.energy.stored_J, report.energy.tank_J);
}

void CsvRecorder::finish() {
  impl_->close();
  impl_->publish();
}

void CsvRecorder::finish(const RunSummary& summary) {
  finish(summary_json(summary).dump(2) + "\n");
}

void CsvRecorder::finish(const std::string& json) {
  impl_->close();
  const std::filesystem::path path = impl_->folder.file("summary.json");
  PendingFile file(path);
  file.append(json);
  file.close();
  remove_if_there(path);
  if (!impl_->events) remove_if_there(impl_->folder.file(kEvents));
  impl_->publish();
  file.publish();
}

void write_file_atomically(const std::filesystem::path& path, const std::string& text) {
  PendingFile file(path);
  file.append(text);
  file.close();
  file.publish();
}

}  // namespace portwave
