#include "output/recording/result_rows.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

using Kind = TableColumn::Kind;

constexpr std::size_t kPartColumns = 5, kEnergyColumns = 15;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TableColumn time_column() { return {"time_s", "s"}; }

/// Whether some steps are damped: then files say what that takes.
bool is_damped(const Stepper& stepper) {
  return stepper.waves() != nullptr && stepper.waves()->may_damp();
}

std::vector<TableColumn> energy_columns(bool has_damping, bool has_deadline) {
  const auto joules = [](const char* name) { return TableColumn{name, "J", Kind::known_number}; };
  std::vector<TableColumn> columns = {{"step", "", Kind::integer},
                                      time_column(),
                                      joules("stored_J"),
                                      joules("supplied_J"),
                                      joules("dissipated_J"),
                                      joules("mismatch_J"),
                                      joules("impact_J"),
                                      joules("tank_J"),
                                      joules("max_passivity_residual_J"),
                                      {"iterations", "", Kind::integer},
                                      {"guard_alpha", ""},
                                      {"guard_withheld_J", "J"},
                                      {"guard_tolerated_J", "J"},
                                      {"residual", ""},
                                      {"step_s", "s"}};
  if (has_damping) columns.push_back(joules("numerical_dissipation_J"));
  if (has_deadline) columns.push_back({"slack_s", "s"});
  return columns;
}

std::vector<TableColumn> event_columns(std::span<const Watch> watches) {
  std::vector<std::string> names, directions;
  for (const Watch& watch : watches) {
    for (const std::string& direction : {watch.falling, watch.rising}) {
      names.push_back(watch.name);
      directions.push_back(direction);
    }
  }
  return {time_column(),
          {"event", "", Kind::text, std::move(names)},
          {"direction", "", Kind::text, std::move(directions)}};
}

std::vector<TableColumn> part_columns(const System& system, bool has_damping) {
  std::vector<TableColumn> columns = {time_column()};
  for (const Part& part : system.parts()) {
    const auto add = [&](const char* what) {
      columns.push_back({fmt::format("{}.{}", part.name, what), "J"});
    };
    for (const char* what :
         {"stored_J", "supplied_J", "through_ports_J", "dissipated_J", "impact_J"}) {
      add(what);
    }
    if (has_damping) add("numerical_dissipation_J");
  }
  return columns;
}

/// "A.coupling~B.coupling", of many ports the first and how many more.
std::string label_of(const System& system, const Junction& junction) {
  constexpr std::size_t kNamed = 3;
  std::string label;
  for (std::size_t i = 0; i < std::min(junction.waves.size(), kNamed); ++i) {
    label += (i == 0 ? "" : "~") + system.port_label(junction.waves[i]);
  }
  if (junction.waves.size() > kNamed) label += fmt::format("~+{}", junction.waves.size() - kNamed);
  return label;
}

std::vector<TableColumn> junction_columns(const System& system) {
  std::vector<TableColumn> columns = {time_column()};
  for (const Junction& junction : system.junctions()) {
    columns.push_back({label_of(system, junction) + ".mismatch_J", "J"});
    for (const int port : junction.waves) {
      columns.push_back({system.port_label(port) + ".through_J", "J"});
    }
  }
  return columns;
}

}  // namespace

std::string_view to_string(ResultFormat format) {
  constexpr std::string_view kNames[] = {"csv", "hdf5", "none"};
  return kNames[static_cast<std::size_t>(format)];
}

void ResultRows::Sums::add(const StepReport& report) {
  const StepLedger& step = report.energy;
  supplied_J += step.supplied_J;
  dissipated_J += step.dissipated_J;
  numerical_dissipation_J += step.numerical_dissipation_J;
  mismatch_J += step.mismatch_J;
  impact_J += step.impact_J;
  alpha = std::min(alpha, step.alpha);
  withheld_J += step.withheld_J;
  tolerated_J += step.tolerated_J;
  max_passivity_residual_J =
      empty ? step.max_passivity_residual_J
            : std::max(max_passivity_residual_J, step.max_passivity_residual_J);
  if (report.begins_window) iterations += report.iterations;
  residual = std::max(residual, report.residual);
  step_s = empty ? report.step_s : std::min(step_s, report.step_s);
  slack_s = empty ? report.slack_s : std::min(slack_s, report.slack_s);
  empty = false;
}

namespace {

RecordingOptions with_rows(RecordingOptions options) {
  options.every = std::max(options.every, 1);
  return options;
}

}  // namespace

ResultRows::ResultRows(RecordingOptions options)
    : options_(with_rows(std::move(options))), quantities_(options_, trajectory) {}

std::vector<ResultLayout> ResultRows::layouts(const Stepper& stepper) const {
  if (options_.energies && stepper.waves() == nullptr) {
    throw std::invalid_argument(
        fmt::format("energies of parts are those of wave coupling: the method \"{}\" couples "
                    "without waves",
                    to_string(stepper.method().method.kind())));
  }
  if (options_.energies && !stepper.keeps_ledger()) {
    throw std::invalid_argument("energies of parts are not known without a ledger");
  }
  const bool has_damping = is_damped(stepper);
  std::vector<ResultLayout> tables = {
      {"trajectory", trajectory_columns(options_)},
      {"energy", energy_columns(has_damping, stepper.deadline().has_value()), 1},
      {"events", {}},
      {"energy_parts", {}},
      {"energy_junctions", {}}};
  if (!stepper.watches().empty()) tables[events].columns = event_columns(stepper.watches());
  if (options_.energies) {
    tables[energy_parts].columns = part_columns(stepper.system(), has_damping);
    tables[energy_junctions].columns = junction_columns(stepper.system());
  }
  return tables;
}

void ResultRows::begin(const Stepper& stepper) {
  has_events_ = !stepper.watches().empty();
  has_deadline_ = stepper.deadline().has_value();
  has_damping_ = is_damped(stepper);
  if (options_.energies) {
    parts_.assign(stepper.system().parts().size(), {});
    ports_.assign(stepper.system().scalar_ports().size(), 0.0);
  }
  quantities_.begin(stepper);
}

void ResultRows::take_energy(const Stepper& stepper, double stored_J, double tank_J,
                             RowWriter& writer) {
  const auto known = [is_known = stepper.keeps_ledger()](double value) {
    return is_known ? value : kUnknown;
  };
  double numbers[1 + kEnergyColumns + 2] = {static_cast<double>(energy),
                                            static_cast<double>(stepper.step_index()),
                                            stepper.time_s(),
                                            known(stored_J),
                                            known(sums_.supplied_J),
                                            known(sums_.dissipated_J),
                                            known(sums_.mismatch_J),
                                            known(sums_.impact_J),
                                            known(tank_J),
                                            known(sums_.max_passivity_residual_J),
                                            static_cast<double>(sums_.iterations),
                                            sums_.alpha,
                                            sums_.withheld_J,
                                            sums_.tolerated_J,
                                            sums_.residual,
                                            sums_.step_s};
  std::size_t size = 1 + kEnergyColumns;
  if (has_damping_) numbers[size++] = known(sums_.numerical_dissipation_J);
  if (has_deadline_) numbers[size++] = sums_.slack_s;
  const auto row = std::span(numbers).first(size);
  std::ranges::copy(row, writer.row(row.size()).begin());
  sums_ = {};
}

void ResultRows::take_events(const Stepper& stepper, RowWriter& writer) {
  for (const Event& event : stepper.events()) {
    const double number = 2.0 * event.watch + (event.rising ? 1.0 : 0.0);
    std::ranges::copy(
        std::initializer_list<double>{static_cast<double>(events), event.time_s, number, number},
        writer.row(4).begin());
  }
}

void ResultRows::add_energies(const Stepper& stepper) {
  const WaveView& waves = *stepper.waves();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PartEnergies step = waves.energies_of(static_cast<int>(i));
    parts_[i].supplied_J += step.supplied_J;
    parts_[i].through_ports_J += step.through_ports_J;
    parts_[i].dissipated_J += step.dissipated_J;
    parts_[i].numerical_dissipation_J += step.numerical_dissipation_J;
    parts_[i].impact_J += step.impact_J;
  }
  if (stepper.step_index() == 0) return;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports_[i] += waves.energy_through(static_cast<int>(i));
  }
}

void ResultRows::take_energies(const Stepper& stepper, RowWriter& writer) {
  const std::size_t columns = kPartColumns + (has_damping_ ? 1 : 0);
  double* number = writer.row(2 + columns * parts_.size()).data();
  *number++ = static_cast<double>(energy_parts);
  *number++ = stepper.time_s();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    *number++ = stepper.storage(static_cast<int>(i));
    *number++ = parts_[i].supplied_J;
    *number++ = parts_[i].through_ports_J;
    *number++ = parts_[i].dissipated_J;
    *number++ = parts_[i].impact_J;
    if (has_damping_) *number++ = parts_[i].numerical_dissipation_J;
    parts_[i] = {};
  }
  const std::span<const Junction> junctions = stepper.system().junctions();
  number = writer.row(2 + junctions.size() + ports_.size()).data();
  *number++ = static_cast<double>(energy_junctions);
  *number++ = stepper.time_s();
  for (const Junction& junction : junctions) {
    double& mismatch = *number++;
    mismatch = 0.0;
    for (const int port : junction.waves) {
      mismatch -= ports_[at(port)];
      *number++ = ports_[at(port)];
    }
  }
  std::ranges::fill(ports_, 0.0);
}

void ResultRows::take_initial(const Stepper& stepper, RowWriter& writer) {
  quantities_.take_initial(stepper, writer);
  const ImpulseEnergies& jumped = stepper.impulses().at_start;
  sums_.supplied_J = jumped.supplied_J;
  sums_.impact_J = jumped.impact_J;
  take_energy(stepper, stepper.energy().initial_J + jumped.changed_J,
              stepper.energy().initial_tank_J, writer);
  if (options_.energies) {
    add_energies(stepper);
    take_energies(stepper, writer);
  }
}

void ResultRows::take(const Stepper& stepper, const StepReport& report, RowWriter& writer) {
  sums_.add(report);
  if (has_events_) take_events(stepper, writer);
  if (options_.energies) add_energies(stepper);
  quantities_.take(stepper, report.step_s, writer);
  if (stepper.step_index() % options_.every != 0) return;
  take_energy(stepper, report.energy.stored_J, report.energy.tank_J, writer);
  if (options_.energies) take_energies(stepper, writer);
}

void ResultRows::archive(const Stepper& stepper, StateArchive& archive) {
  archive.values(quantities_.rows(), sums_);
  archive.expect(quantities_.is_after(stepper.time_s()), "the number of rows");
  archive.expect_counts({sums_.iterations}, "the number of iterations since the last row");
  archive.array(quantities_.smallest());
  archive.array(quantities_.largest());
  archive.array(parts_);
  archive.array(ports_);
}

}  // namespace portwave
