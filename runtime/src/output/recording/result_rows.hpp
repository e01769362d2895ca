#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "output/files/row_writer.hpp"
#include "output/recording/quantity_rows.hpp"
#include "output/recording/result_table.hpp"
#include "portwave/runtime/output/recorder.hpp"

namespace portwave {

/// A table that a run fills, without a place to go to.
struct ResultLayout {
  std::string name;
  std::vector<TableColumn> columns;
  std::size_t time = 0;  ///< the column with the time of a row
};

/// Takes rows of results from a stepper: each begins with the number of its table. What it does
/// between `begin` and the end of a run allocates nothing.
class ResultRows {
 public:
  enum Table : std::size_t { trajectory, energy, events, energy_parts, energy_junctions };

  explicit ResultRows(RecordingOptions options);

  /// The tables of a run, in order of their numbers; of those that it does not have no columns.
  /// Errors: std::invalid_argument where energies of parts are asked for and not known.
  std::vector<ResultLayout> layouts(const Stepper& stepper) const;
  /// Before the first step or the first one after `archive`; rows have the widths of `layouts`.
  void begin(const Stepper& stepper);

  void take_initial(const Stepper& stepper, RowWriter& writer);
  void take(const Stepper& stepper, const StepReport& report, RowWriter& writer);
  /// The stepper's position, which is known before.
  void archive(const Stepper& stepper, StateArchive& archive);

 private:
  /// Energies of the steps since the last row.
  struct Sums {
    double supplied_J = 0.0;
    double dissipated_J = 0.0;
    double numerical_dissipation_J = 0.0;
    double mismatch_J = 0.0;
    double impact_J = 0.0;
    double alpha = 1.0;
    double withheld_J = 0.0;
    double tolerated_J = 0.0;
    double max_passivity_residual_J = 0.0;
    std::int64_t iterations = 0;
    double residual = 0.0;
    double step_s = 0.0;
    double slack_s = 0.0;
    bool empty = true;

    void add(const StepReport& report);
    friend constexpr std::array<std::size_t, 1> archive_flags(const Sums*) {
      return {offsetof(Sums, empty)};
    }
  };

  void take_energy(const Stepper& stepper, double stored_J, double tank_J, RowWriter& writer);
  void take_events(const Stepper& stepper, RowWriter& writer);
  void add_energies(const Stepper& stepper);
  void take_energies(const Stepper& stepper, RowWriter& writer);

  RecordingOptions options_;
  QuantityRows quantities_;
  Sums sums_;
  bool has_events_ = false;
  bool has_deadline_ = false;
  bool has_damping_ = false;
  // With energies: sums since the last row, part by part, and by scalar port.
  std::vector<PartEnergies> parts_;
  std::vector<double> ports_;
};

}  // namespace portwave
