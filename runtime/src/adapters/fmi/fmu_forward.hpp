#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "adapters/fmi/fmu_batch.hpp"
#include "adapters/fmi/fmu_forecast.hpp"
#include "adapters/fmi/fmu_setup.hpp"
#include "portwave/subsystems/core/final_steps.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::fmi {

/// An instance that takes one step after the other, from the start.
class ForwardProgram {
 public:
  /// `looks_first`: answers are read once new inputs are set, before the step. Where inputs do not change them at once,
  /// nothing is read there: solvers of some FMUs are disturbed by it. Errors: as start_instance.
  ForwardProgram(const PartSetup& setup, bool looks_first);

  /// A step with these inputs of the ports [SI units] and others [the FMU's]. `shown`: the outputs after it.
  /// Errors: FmuFault.
  void step(double step_s, const double* u, const double* others, PortStep& out, double* shown);
  /// Whether these inputs change the answers at once, of whatever size. Errors: FmuFault.
  bool feels(const double* u, const double* others);
  /// What inputs of the ports change of the answers at once: ports × ports. Needs no step. Errors: FmuFault.
  void feel_through(Eigen::MatrixXd& through);
  /// The answers and the outputs now.
  void read(double* answers, double* shown);
  /// The other inputs, as they were set last.
  void read_others(double* others) const;
  std::int64_t steps() const { return steps_; }

 private:
  double time_s(double step_s) const;

  const PartSetup& setup_;
  bool looks_first_;
  Program program_;
  PortAccess access_;
  VariableList answers_, shown_;
  std::int64_t steps_ = 0;
  std::vector<double> u_, others_, largest_, read_, integrals_, ends_;  // ends_: answers [SI units]
  Eigen::MatrixXd felt_;
};

/// All that trial instances tell of a part before it runs, for steps of one size.
struct Trials {
  Trials(std::size_t ports, std::size_t others) : first(ports, others), forecast(ports, others) {}

  AffineAnswer first;  ///< what the first step answers
  Forecast forecast;
  bool looks_first = false;  ///< inputs change answers at once: steps look at them (ForwardProgram)
  bool feeds_through = false;  ///< those of ports do, and what they change can be felt
  double difference =
      0.0;  ///< of a first step that another instance repeats, relative to the answers
  double available_J = 0.0;            ///< as FirstSteps
  double least_response = 0.0;         ///< as least_response tells, of the first step
  std::vector<double> answers, shown;  ///< at the start
  bool is_finite = true;
  bool is_silent = false;  ///< it answers nothing as yet, but for rounding
};

/// Errors: FmuFault of a first step, as start_instance.
Trials try_forward(const PartSetup& setup, double step_s);

/// Trials of a part by step size, each made once. Thread-safe.
class TrialRuns {
 public:
  explicit TrialRuns(const PartSetup& setup) : setup_(setup) {}
  std::shared_ptr<const Trials> of(double step_s);

 private:
  const PartSetup& setup_;
  std::mutex mutex_;
  double step_s_ = 0.0;
  std::shared_ptr<const Trials> last_;
};

/// One FMU that cannot go back, as a batch of one lane. `scatter` and `advance` answer by what is foretold of the
/// step (Forecast), and do not touch the FMU: they may be called as often as anybody likes. Once all is agreed upon,
/// `take` steps the FMU, and tells by how much it was mistaken.
///
/// A record holds how many steps lie behind it, the affine answer of the next one, what that was told to its
/// neighbours, the other inputs, and the outputs that are shown.
class ForwardBatch final : public StepBatch, public FinalSteps {
 public:
  ForwardBatch(const PartSetup& setup, TrialRuns& trials);
  ~ForwardBatch() override;

  void prepare(double step_s, const double* impedance) override;
  double scatter_cost_ns() const override;
  double advance_cost_ns() const override;
  std::size_t record_size() const override { return layout_.size; }
  void set_state(int lane, const double* x, double* record) const override;
  void get_state(int lane, const double* record, double* x) const override;
  void freeze(LaneRange lanes, double* record, const double* input) const override;
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override;
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override;
  LaneStatus take(LaneRange lanes, const double* record, double* next,
                  FinalStep* energies) const override;

 private:
  struct Layout {
    Layout(std::size_t ports, std::size_t inputs, std::size_t outputs);
    std::size_t at, y, slopes, told, inputs, outputs, size;
  };
  /// What changes with calls.
  struct Work;

  void store(const AffineAnswer& answer, double* record) const;
  StepFault solve(const double* record, const double* a, double* b) const;
  StepFault solve_affine(const double* answer, const double* others, const double* a) const;
  bool solve_first(const double* record, const double* a) const;
  void expect_finite(const PortStep& step, double time_s) const;

  const PartSetup& setup_;
  TrialRuns& trials_;
  std::shared_ptr<const Trials> known_;
  Layout layout_;
  double h_ = 0.0;
  Eigen::VectorXd wave_of_u_, wave_of_y_;  // factors, as of FmuBatch
  // One thread at a time has the lane.
  mutable std::unique_ptr<Work> work_;
};

}  // namespace portwave::fmi
