#pragma once

#include <span>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How long the input of a switch asked it to be closed and open since the start [s], and what its steps made of
/// that: each is closed or open as a whole.
struct SwitchTimes {
  double closed_s = 0.0;
  double open_s = 0.0;
  double moved_s = 0.0;  ///< in which it was not as its input asked
  double lag_s = 0.0;  ///< asked to be closed and not made up for yet; negative: closed for longer

  /// Mean distance of its changes from those of its input, as a share of the mean time between two of these; 0
  /// for no more than a step in all, which is a change or two.
  double moved_share(double step_s) const;
};

/// Facet of a batch of switches with an input. Its inputs are shares of a step (closed_share).
class SwitchSteps {
 public:
  virtual ~SwitchSteps() = default;
  virtual SwitchTimes switch_times(int lane, const double* record) const = 0;
};

/// Whether a switch is closed in a step for `share` of which its input asks for that, having a lag, as a share of
/// the step, from those before: what is lost to one change is given to the next, so that the time for which it is
/// closed is right in the mean wherever changes lie within steps.
bool closes_in_step(double share, double lag);

/// The share of the time from `begin_s` on for which an input closes an ideal switch. Changes of expressions and
/// knots of tables are found; between those the input may cross the threshold once. For callbacks, which may be
/// called some fifty times, once in all. An end belongs to the time before it, as in Signal::in_step.
double closed_share(const Signal& input, double begin_s, double length_s,
                    std::span<const double> set_values = {});

}  // namespace portwave
