#include "readings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <vector>

#include "arrays.hpp"

namespace nb = nanobind;

namespace {

/// Rows, columns, values and shape of a sparse matrix.
nb::tuple triplets_of(const portwave::SparseMatrix& matrix) {
  std::vector<double> rows, columns, values;
  for (int j = 0; j < matrix.outerSize(); ++j) {
    for (portwave::SparseMatrix::InnerIterator it(matrix, j); it; ++it) {
      rows.push_back(static_cast<double>(it.row()));
      columns.push_back(j);
      values.push_back(it.value());
    }
  }
  return nb::make_tuple(array_of(rows), array_of(columns), array_of(values),
                        nb::make_tuple(matrix.rows(), matrix.cols()));
}

}  // namespace

nb::dict as_dict(const portwave::EnergyTotals& totals) {
  nb::dict out;
  out["initial_J"] = totals.initial_J;
  out["final_J"] = totals.final_J;
  out["supplied_J"] = totals.supplied_J;
  out["dissipated_J"] = totals.dissipated_J;
  out["numerical_dissipation_J"] = totals.numerical_dissipation_J;
  out["mismatch_J"] = totals.mismatch_J;
  out["impact_J"] = totals.impact_J;
  out["tank_J"] = totals.tank_J;
  return out;
}

nb::dict as_dict(const portwave::DeadlineScheduler::Statistics& own) {
  nb::dict out;
  out["steps"] = own.steps;
  out["misses"] = own.misses;
  out["preempted_misses"] = own.preempted_misses;
  out["worst_slack_s"] = own.worst_slack_s;
  out["slack_p01_s"] = own.slack_p01_s;
  out["slack_p50_s"] = own.slack_p50_s;
  out["slack_p99_s"] = own.slack_p99_s;
  out["guard_misses"] = own.guard_misses;
  out["late_misses"] = own.late_misses;
  out["trial_misses"] = own.trial_misses;
  out["unused_share"] = own.unused_share;
  out["jitter_s"] = own.jitter_s();
  return out;
}

nb::dict as_dict(const portwave::Impulses& all) {
  nb::list first;
  for (const portwave::Impulse& own : all.first) {
    nb::dict one;
    one["time_s"] = own.time_s;
    one["cause"] = own.cause;
    one["joint"] = own.joint;
    one["jumps"] = own.jumps;
    one["impact_J"] = own.energies.impact_J;
    one["supplied_J"] = own.energies.supplied_J;
    first.append(one);
  }
  nb::dict out;
  out["count"] = all.count;
  out["impact_J"] = all.in_all.impact_J;
  out["supplied_J"] = all.in_all.supplied_J;
  out["first"] = first;
  return out;
}

nb::dict as_dict(const portwave::Linearisation& own) {
  nb::dict out;
  out["E"] = triplets_of(own.E);
  out["A"] = triplets_of(own.A);
  out["B"] = triplets_of(own.B);
  out["C"] = triplets_of(own.C);
  out["D"] = triplets_of(own.D);
  out["state"] = array_of(own.state);
  out["input"] = array_of(own.input);
  out["output"] = array_of(own.output);
  out["rate"] = array_of(own.rate);
  out["state_names"] = own.state_names;
  out["input_names"] = own.input_names;
  out["recover"] = triplets_of(own.recover);
  out["is_explicit"] = own.is_explicit;
  return out;
}
