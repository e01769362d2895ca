#include "portwave/runtime/output/file_recorder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output/files/durable_file.hpp"
#include "output/files/pending_file.hpp"
#include "output/files/row_writer.hpp"
#include "output/recording/hdf5_file.hpp"
#include "output/recording/rank_recording.hpp"
#include "output/recording/result_rows.hpp"
#include "output/recording/result_table.hpp"
#include "output/summary/network_json.hpp"
#include "portwave/runtime/output/checkpoint.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr const char* kSummary = "summary.json";
constexpr const char* kHdf5 = "results.h5";
constexpr const char* kNetwork = "network.json";
/// File names of tables by number; a run may leave them in either form, or none at all.
constexpr std::array kTexts = {"trajectory.csv", "energy.csv", "events.csv", "energy_parts.csv",
                               "energy_junctions.csv"};
constexpr std::array kRows = {"trajectory.rows", "energy.rows", "events.rows", "energy_parts.rows",
                              "energy_junctions.rows"};
/// Files that others derive from the results of a run, and that the next run removes.
constexpr std::array kOfTheRunBefore = {"report.html", "trace.json"};

/// Checks options that a program has set itself; the scenario reader has checked them already.
RecordingOptions checked(RecordingOptions options) {
  Issues issues;
  const auto expect = [&](bool good, std::string where, const char* what) {
    if (!good) issues.push_back({std::move(where), what});
  };
  const auto is_up_to = [](auto value, auto last) {
    return static_cast<int>(value) >= 0 && static_cast<int>(value) <= static_cast<int>(last);
  };
  constexpr const char* kNone = "is not one of the enumerators";
  expect(is_up_to(options.format, ResultFormat::none), "/outputs/format", kNone);
  for (std::size_t i = 0; i < options.quantities.size(); ++i) {
    expect(is_up_to(options.quantities[i].kind, Quantity::Kind::coenergy),
           fmt::format("/outputs/observe/{}", i), kNone);
  }
  expect(options.every_s >= 0.0 && std::isfinite(options.every_s), "/outputs/every_s",
         "must be finite and >= 0");
  expect(options.last_s >= 0.0 && std::isfinite(options.last_s), "/outputs/last_s",
         "must be finite and >= 0");
  expect(!options.per_rank || options.format == ResultFormat::hdf5, "/outputs/per_rank",
         kOfHdf5Alone);
  expect(!options.per_rank || options.last_s == 0.0, "/outputs/per_rank", kNotOfTheLastSeconds);
  throw_if_any(std::move(issues));
  return options;
}

/// The folder. Errors: ConfigError where results in it would destroy files that were read.
std::filesystem::path spared(std::filesystem::path folder, const RecordingOptions& options) {
  FileRecorder::refuse_inputs(folder, options);
  return folder;
}

/// Options of the remaining trajectory where ranks record the quantities.
RecordingOptions without_quantities(RecordingOptions options) {
  if (options.per_rank) options.quantities.clear();
  return options;
}

}  // namespace

void Recorder::archive(const Stepper&, StateArchive&) {}
double Recorder::waited_s() const { return 0.0; }

struct FileRecorder::Impl {
  Impl(std::filesystem::path path, CheckpointFolder* unfinished_files, RecordingOptions given)
      : folder(spared(std::move(path), given), {kSummary, kNetwork}, given.inputs),
        unfinished(unfinished_files),
        format(given.format),
        last_s(given.last_s),
        quantities(given.quantities),
        by_ranks(given.per_rank ? std::make_unique<RankRecording>(given) : nullptr),
        rows(without_quantities(std::move(given))) {
    if (format == ResultFormat::hdf5 && !has_hdf5()) {
      throw std::invalid_argument("portwave was built without HDF5: results can be written as CSV");
    }
    if (format == ResultFormat::none) return;
    // Found out before the work.
    if (format == ResultFormat::hdf5) PendingFile probe(folder.file(kHdf5));
    for (const char* name : {name_of(ResultRows::trajectory), name_of(ResultRows::energy)}) {
      pending.push_back(make_file(name));
    }
  }

  const char* name_of(std::size_t table) const {
    return format == ResultFormat::csv ? kTexts[table] : kRows[table];
  }

  std::unique_ptr<PendingFile> make_file(const char* name) const {
    if (unfinished == nullptr) return std::make_unique<PendingFile>(folder.file(name));
    return std::make_unique<PendingFile>(folder.file(name), unfinished->meanwhile(name),
                                         unfinished->goes_on());
  }

  /// The same; overwrites the rest of a process that stopped there.
  std::unique_ptr<PendingFile> make_anew(const char* name) const {
    if (unfinished == nullptr) return make_file(name);
    return std::make_unique<PendingFile>(folder.file(name), unfinished->meanwhile(name), false);
  }

  /// Begins the tables, with facts that only a stepper knows.
  void begin(const Stepper& stepper) {
    if (format == ResultFormat::none) return;
    network = network_json(stepper.system(), quantities) + "\n";
    std::vector<ResultLayout> layouts = rows.layouts(stepper);
    const auto form =
        format == ResultFormat::csv ? ResultTable::Form::csv : ResultTable::Form::doubles;
    std::size_t longest = 0;
    tables.resize(layouts.size());
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (layouts[i].columns.empty()) continue;
      longest = std::max(longest, 1 + layouts[i].columns.size());
      tables[i] = std::make_unique<ResultTable>(
          layouts[i].columns, i < pending.size() ? std::move(pending[i]) : make_file(name_of(i)),
          form, layouts[i].time, last_s);
    }
    names = std::move(layouts);
    pending.clear();
    whose = &stepper;
    rows.begin(stepper);
    writer =
        std::make_unique<RowWriter>(longest, [this](std::span<const double> some) { write(some); });
  }

  /// The trajectory of ranks, before the first step or the first one after a checkpoint.
  void begin_ranks(const Stepper& stepper, bool is_initial) {
    if (by_ranks == nullptr) return;
    const std::filesystem::path meanwhile =
        unfinished == nullptr ? std::filesystem::path() : unfinished->meanwhile("").parent_path();
    by_ranks->begin(stepper, folder.file(""), meanwhile, is_initial);
  }

  /// On the thread of the writer.
  void write(std::span<const double> numbers) {
    while (!numbers.empty()) {
      ResultTable& table = *tables[static_cast<std::size_t>(numbers[0])];
      table.append(numbers.subspan(1, table.width()));
      numbers = numbers.subspan(1 + table.width());
    }
  }

  template <typename Act>
  void for_each_table(Act act) {
    for (std::size_t i = 0; i < tables.size(); ++i) {
      if (tables[i] != nullptr) act(i, *tables[i]);
    }
  }

  /// Brings all rows to the disk; with HDF5 into its file.
  void close(const std::string& title) {
    if (writer != nullptr) writer->drain();
    for_each_table([](std::size_t, ResultTable& table) { table.close(); });
    if (!network.empty()) {
      described = make_anew(kNetwork);
      described->append(network);
      described->close();
    }
    if (format != ResultFormat::hdf5) return;
    if (by_ranks != nullptr && whose != nullptr) by_ranks->make_files(*whose, title);
    std::vector<SpilledTable> spilled;
    for_each_table([&](std::size_t i, ResultTable& table) {
      spilled.push_back({names[i], table.file().path_meanwhile(), {}, {}});
      if (i == ResultRows::trajectory && by_ranks != nullptr) take_ranks(spilled.back());
    });
    hdf5 = make_anew(kHdf5);
    write_hdf5(hdf5->path_meanwhile(), spilled, title);
    hdf5->close();
  }

  /// All columns instead of the time alone.
  void take_ranks(SpilledTable& trajectory) const {
    const SpilledTable& whole = by_ranks->table();
    if (whole.files.empty() && whole.rows.empty()) return;  // there are no others
    trajectory.layout = whole.layout;
    trajectory.files = whole.files;
    if (whole.files.empty()) trajectory.rows = whole.rows;
  }

  /// Those of ranks that the results consist of, and those of an earlier run.
  void add_files_of_ranks(std::vector<std::string>& published,
                          std::vector<std::string>& obsolete) const {
    std::vector<std::string> own;
    if (by_ranks != nullptr && hdf5 != nullptr) own = by_ranks->files();
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder.file(""), ignored)) {
      const std::string name = entry.path().filename().string();
      if (RankRecording::is_name_of_file(name) && std::ranges::count(own, name) == 0) {
        obsolete.push_back(name);
      }
    }
    published.insert(published.end(), own.begin(), own.end());
  }

  /// Files that take their names, and those that an earlier run may have left.
  struct Names {
    std::vector<std::string> published, obsolete;
  };
  Names names_of_files() const {
    Names out;
    add_files_of_ranks(out.published, out.obsolete);
    for (std::size_t i = 0; i < kTexts.size(); ++i) {
      const bool is_text = format == ResultFormat::csv && i < tables.size() && tables[i] != nullptr;
      (is_text ? out.published : out.obsolete).emplace_back(kTexts[i]);
    }
    (hdf5 != nullptr ? out.published : out.obsolete).emplace_back(kHdf5);
    (described != nullptr ? out.published : out.obsolete).emplace_back(kNetwork);
    for (const char* name : kOfTheRunBefore) out.obsolete.emplace_back(name);
    return out;
  }

  void publish() {
    folder.keep();
    if (format == ResultFormat::csv) {
      for_each_table([](std::size_t, ResultTable& table) { table.file().publish(); });
    }
    if (hdf5 != nullptr) {
      if (by_ranks != nullptr && whose != nullptr) {
        refer_to_nothing();
        by_ranks->publish(*whose);
      }
      hdf5->publish();
    }
    if (described != nullptr) described->publish();
  }

  std::vector<std::string> by_ranks_files() const {
    return by_ranks == nullptr ? std::vector<std::string>() : by_ranks->files();
  }
  /// Files of an earlier run must not refer to files of this one.
  void refer_to_nothing() const { remove_if_there(folder.file(kHdf5)); }

  /// All at once, so that whoever goes on with the run brings that to its end.
  void publish_checkpointed(const std::string& json) {
    const std::unique_ptr<PendingFile> summary = make_anew(kSummary);
    summary->append(json);
    summary->close();
    folder.keep();
    Names files = names_of_files();
    files.obsolete.emplace_back(kSummary);
    files.published.emplace_back(kSummary);
    if (!by_ranks_files().empty()) refer_to_nothing();
    unfinished->publish(files.published, files.obsolete, json);
  }

  OutputFolder folder;           // before the files, so that they are gone when it is tidied up
  CheckpointFolder* unfinished;  // null: nobody will go on with the run
  ResultFormat format;
  double last_s;
  std::vector<Quantity> quantities;
  std::string network;                      // what is known of it only when there is a stepper
  std::unique_ptr<RankRecording> by_ranks;  // null: no trajectory of ranks
  const Stepper* whose = nullptr;           // the one that is recorded
  ResultRows rows;
  std::vector<std::unique_ptr<PendingFile>>
      pending;  // of the tables that every run has, until begin
  std::vector<ResultLayout> names;
  std::vector<std::unique_ptr<ResultTable>> tables;  // by number; null where a run has none
  std::unique_ptr<PendingFile> hdf5, described;      // results.h5, network.json
  std::unique_ptr<RowWriter> writer;                 // the last one: its thread uses the tables
};

FileRecorder::FileRecorder(std::filesystem::path folder, RecordingOptions options)
    : impl_(std::make_unique<Impl>(std::move(folder), nullptr, checked(std::move(options)))) {}

FileRecorder::FileRecorder(CheckpointFolder& folder, RecordingOptions options)
    : impl_(std::make_unique<Impl>(folder.results(), &folder, checked(std::move(options)))) {}

FileRecorder::~FileRecorder() = default;

void FileRecorder::refuse_inputs(const std::filesystem::path& folder,
                                 const RecordingOptions& options) {
  std::vector<std::string> names = {kSummary, kHdf5, kNetwork};
  names.insert(names.end(), kTexts.begin(), kTexts.end());
  names.insert(names.end(), kOfTheRunBefore.begin(), kOfTheRunBefore.end());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (RankRecording::is_name_of_file(name)) names.push_back(name);
  }
  for (const std::string& name : names) refuse_to_overwrite(options.inputs, folder / name);
}

void FileRecorder::record_initial(const Stepper& stepper) {
  impl_->begin(stepper);
  if (impl_->writer == nullptr) return;
  impl_->begin_ranks(stepper, true);
  impl_->rows.take_initial(stepper, *impl_->writer);
}

void FileRecorder::record(const Stepper& stepper, const StepReport& report) {
  if (impl_->writer == nullptr) return;
  impl_->whose = &stepper;
  if (impl_->by_ranks != nullptr) impl_->by_ranks->take(stepper, report);
  impl_->rows.take(stepper, report, *impl_->writer);
}

void FileRecorder::archive(const Stepper& stepper, StateArchive& archive) {
  if (archive.reads()) impl_->begin(stepper);
  if (impl_->writer == nullptr) return;
  impl_->writer->drain();
  impl_->for_each_table([&](std::size_t, ResultTable& table) { table.archive(archive); });
  impl_->rows.archive(stepper, archive);
  if (impl_->by_ranks == nullptr) return;
  impl_->by_ranks->archive(stepper, archive);
  if (archive.reads()) impl_->begin_ranks(stepper, false);
}

double FileRecorder::waited_s() const {
  const double own_s = impl_->writer != nullptr ? impl_->writer->waited_s() : 0.0;
  return own_s + (impl_->by_ranks != nullptr ? impl_->by_ranks->waited_s() : 0.0);
}

void FileRecorder::finish() {
  impl_->close("");
  impl_->publish();
}

void FileRecorder::finish(const RunSummary& summary) {
  finish(summary_json(summary).dump(2) + "\n");
}

void FileRecorder::finish(const std::string& json) {
  const nlohmann::json summary = nlohmann::json::parse(json, nullptr, false);
  impl_->close(summary.is_object() ? summary.value("scenario", std::string()) : std::string());
  if (impl_->unfinished != nullptr) return impl_->publish_checkpointed(json);
  const std::filesystem::path path = impl_->folder.file(kSummary);
  PendingFile file(path);
  file.append(json);
  file.close();
  remove_if_there(path);
  for (const std::string& name : impl_->names_of_files().obsolete) {
    remove_if_there(impl_->folder.file(name.c_str()));
  }
  impl_->publish();
  file.publish();
}

std::unique_ptr<Follower> make_recording_follower(RecordingOptions options) {
  return std::make_unique<RankRecording>(checked(std::move(options)));
}

void write_file_atomically(const std::filesystem::path& path, const std::string& text) {
  remove_left_behind(path);
  PendingFile file(path);
  file.append(text);
  file.close();
  file.publish();
}

}  // namespace portwave
