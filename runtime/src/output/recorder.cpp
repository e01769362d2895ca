#include "portwave/runtime/output/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "output/durable_file.hpp"
#include "output/pending_file.hpp"
#include "output/row_writer.hpp"
#include "portwave/runtime/output/checkpoint.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr const char* kTrajectory = "trajectory.csv";
constexpr const char* kEnergy = "energy.csv";
constexpr const char* kEvents = "events.csv";
constexpr const char* kSummary = "summary.json";

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

/// What a row of numbers begins with, on its way to the thread that writes it.
constexpr double kTrajectoryRow = 0, kEnergyRow = 1, kUnknownEnergyRow = 2, kEventRow = 3;
constexpr std::size_t kEnergyNumbers = 12;

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

}  // namespace

OutputFolder::OutputFolder(std::filesystem::path path)
    : path_(std::move(path)), created_(make_folder(path_)) {
  lock();
}

void OutputFolder::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // File systems without locks have to do without.
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(lock_);
  throw std::runtime_error(
      fmt::format("another run writes to \"{}\": two would mix their files", path_.string()));
}

OutputFolder::OutputFolder(std::filesystem::path path,
                           std::initializer_list<const char*> names_of_files)
    : OutputFolder(std::move(path)) {
  // Opening is the only sure way to know whether files can be made.
  for (const char* name : names_of_files) PendingFile probe(path_ / name);
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
  std::error_code ignored;
  if (created_) std::filesystem::remove(path_, ignored);
}

void Recorder::archive(const Stepper&, StateArchive&) {}
double Recorder::waited_s() const { return 0.0; }

struct CsvRecorder::Impl {
  Impl(std::filesystem::path path, CheckpointFolder* unfinished_files,
       std::vector<Observable> observed, int record_every, double record_every_s)
      : folder(std::move(path), {kSummary}),
        unfinished(unfinished_files),
        trajectory(make_file(kTrajectory)),
        energy(make_file(kEnergy)),
        observables(std::move(observed)),
        every(std::max(record_every, 1)),
        every_s(record_every_s),
        writer(std::max(2 + observables.size(), kEnergyNumbers),
               [this](std::span<const double> numbers) { write(numbers); }) {
    trajectory->append("time_s");
    for (const Observable& observable : observables) {
      trajectory->append(',');
      trajectory->append(csv_field(observable.label));
    }
    trajectory->append('\n');
    energy->append(
        "step,time_s,stored_J,supplied_J,dissipated_J,mismatch_J,tank_J,"
        "max_passivity_residual_J,iterations,guard_alpha,guard_withheld_J\n");
  }

  std::unique_ptr<PendingFile> make_file(const char* name) const {
    if (unfinished == nullptr) return std::make_unique<PendingFile>(folder.file(name));
    return std::make_unique<PendingFile>(folder.file(name), unfinished->meanwhile(name),
                                         unfinished->goes_on());
  }

  void take_trajectory_row(const Stepper& stepper) {
    double* number = writer.row(2 + observables.size()).data();
    *number++ = kTrajectoryRow;
    *number++ = stepper.time_s();
    for (const Observable& observable : observables) *number++ = observe(stepper, observable);
  }

  /// Rows for the multiples of every_s in the last step.
  void take_rows_within(const Stepper& stepper, double step_s) {
    // What rounding has put beyond the end of the step belongs to it.
    const double end_s = stepper.time_s() + 1e-9 * step_s;
    for (; static_cast<double>(rows) * every_s <= end_s; ++rows) {
      const double time_s = static_cast<double>(rows) * every_s;
      double* number = writer.row(2 + observables.size()).data();
      *number++ = kTrajectoryRow;
      *number++ = time_s;
      for (const Observable& observable : observables) {
        *number++ = observe_at(stepper, observable, std::min(time_s, stepper.time_s()));
      }
    }
  }

  void take_energy_row(const Stepper& stepper, double stored_J, double tank_J) {
    const double numbers[] = {stepper.keeps_ledger() ? kEnergyRow : kUnknownEnergyRow,
                              static_cast<double>(stepper.step_index()),
                              stepper.time_s(),
                              stored_J,
                              row.supplied_J,
                              row.dissipated_J,
                              row.mismatch_J,
                              tank_J,
                              row.max_passivity_residual_J,
                              static_cast<double>(row.iterations),
                              row.alpha,
                              row.withheld_J};
    static_assert(std::size(numbers) == kEnergyNumbers);
    std::ranges::copy(numbers, writer.row(kEnergyNumbers).begin());
    row = {};
  }

  void take_events(const Stepper& stepper) {
    for (const Event& event : stepper.events()) {
      const std::span<double> numbers = writer.row(3);
      numbers[0] = kEventRow;
      numbers[1] = event.time_s;
      numbers[2] = 2.0 * event.watch + (event.rising ? 1.0 : 0.0);
    }
  }

  /// On the thread of the writer: the texts of these rows.
  void write(std::span<const double> numbers) {
    while (!numbers.empty()) {
      const double kind = numbers[0];
      std::size_t size = 3;
      if (kind == kTrajectoryRow) {
        size = 2 + observables.size();
        write_trajectory_row(numbers.subspan(1, size - 1));
      } else if (kind == kEventRow) {
        events->append(numbers[1]);
        events->append(event_texts[static_cast<std::size_t>(numbers[2])]);
      } else {
        size = kEnergyNumbers;
        write_energy_row(numbers.subspan(1, size - 1), kind == kEnergyRow);
      }
      numbers = numbers.subspan(size);
    }
  }

  void write_trajectory_row(std::span<const double> numbers) {
    trajectory->append(numbers[0]);
    for (const double value : numbers.subspan(1)) {
      trajectory->append(',');
      trajectory->append(value);
    }
    trajectory->append('\n');
  }

  /// In the order of take_energy_row.
  void write_energy_row(std::span<const double> numbers, bool is_known) {
    constexpr std::size_t kTime = 1, kIterations = 8;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i > 0) energy->append(',');
      if (i == 0 || i == kIterations) {
        energy->append(static_cast<std::int64_t>(numbers[i]));
      } else if (is_known || i == kTime || i > kIterations) {
        energy->append(numbers[i]);  // else empty: nobody knows
      }
    }
    energy->append('\n');
  }

  void begin_events(const Stepper& stepper) {
    if (stepper.watches().empty()) return;
    events = make_file(kEvents);
    events->append("time_s,event,direction\n");
    for (const Watch& watch : stepper.watches()) {
      for (const std::string& direction : {watch.falling, watch.rising}) {
        event_texts.push_back(fmt::format(",{},{}\n", csv_field(watch.name), csv_field(direction)));
      }
    }
  }

  std::vector<PendingFile*> files() {
    std::vector<PendingFile*> all = {trajectory.get(), energy.get()};
    if (events) all.push_back(events.get());
    return all;
  }

  void close() {
    writer.drain();
    for (PendingFile* file : files()) file->close();
  }

  void publish() {
    folder.keep();
    for (PendingFile* file : files()) file->publish();
  }

  /// All at once, so that whoever goes on with the run brings that to its end.
  void publish_checkpointed(const std::string& json) {
    PendingFile summary(folder.file(kSummary), unfinished->meanwhile(kSummary), false);
    summary.append(json);
    summary.close();
    folder.keep();
    std::vector<std::string> names = {kTrajectory, kEnergy};
    std::vector<std::string> obsolete = {kSummary};
    (events ? names : obsolete).push_back(kEvents);
    names.push_back(kSummary);
    unfinished->publish(names, obsolete, json);
  }

  OutputFolder folder;           // before the files, so that they are gone when it is tidied up
  CheckpointFolder* unfinished;  // null: nobody will go on with the run
  std::unique_ptr<PendingFile> trajectory;
  std::unique_ptr<PendingFile> energy;
  std::unique_ptr<PendingFile> events;   // where something is watched
  std::vector<std::string> event_texts;  // by watch, falling and rising: what follows the time
  std::vector<Observable> observables;
  int every;
  double every_s;
  std::int64_t rows = 1;  // of the trajectory, with every_s
  LedgerRow row;
  RowWriter writer;  // the last to be made: its thread uses all the others
};

CsvRecorder::CsvRecorder(std::filesystem::path folder, std::vector<Observable> observables,
                         int every, double every_s)
    : impl_(std::make_unique<Impl>(std::move(folder), nullptr, std::move(observables), every,
                                   every_s)) {}

CsvRecorder::CsvRecorder(CheckpointFolder& folder, std::vector<Observable> observables, int every,
                         double every_s)
    : impl_(std::make_unique<Impl>(folder.results(), &folder, std::move(observables), every,
                                   every_s)) {}

CsvRecorder::~CsvRecorder() = default;

void CsvRecorder::record_initial(const Stepper& stepper) {
  impl_->begin_events(stepper);
  impl_->take_trajectory_row(stepper);
  impl_->take_energy_row(stepper, stepper.energy().initial_J, stepper.energy().initial_tank_J);
}

void CsvRecorder::record(const Stepper& stepper, const StepReport& report) {
  impl_->row.add(report);
  if (impl_->events) impl_->take_events(stepper);
  if (impl_->every_s > 0.0) impl_->take_rows_within(stepper, report.step_s);
  if (stepper.step_index() % impl_->every != 0) return;
  if (impl_->every_s == 0.0) impl_->take_trajectory_row(stepper);
  impl_->take_energy_row(stepper, report.energy.stored_J, report.energy.tank_J);
}

void CsvRecorder::archive(const Stepper& stepper, StateArchive& archive) {
  if (archive.reads()) impl_->begin_events(stepper);
  impl_->writer.drain();
  for (PendingFile* file : impl_->files()) file->archive(archive);
  archive.values(impl_->rows, impl_->row);
}

double CsvRecorder::waited_s() const { return impl_->writer.waited_s(); }

void CsvRecorder::finish() {
  impl_->close();
  impl_->publish();
}

void CsvRecorder::finish(const RunSummary& summary) {
  finish(summary_json(summary).dump(2) + "\n");
}

void CsvRecorder::finish(const std::string& json) {
  impl_->close();
  if (impl_->unfinished != nullptr) return impl_->publish_checkpointed(json);
  const std::filesystem::path path = impl_->folder.file(kSummary);
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
