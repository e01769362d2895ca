#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <Eigen/Core>
#include <Eigen/LU>

#include "adapters/fmi/fmu_setup.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::fmi {

/// Reads what the ports of an FMU answer, and sets what they take, in SI units.
class PortAccess {
 public:
  explicit PortAccess(const PartSetup& setup);

  std::size_t ports() const { return ports_->size(); }
  /// u of the ports and of the other inputs, the latter in the units of the FMU.
  void set_inputs(Instance& instance, const double* u, const double* others);
  /// Before a step whose inputs are set: what the mean of the answers needs from its beginning.
  void begin(Instance& instance);
  /// In its place where the answers are still those that were read last.
  void begin_as_read() { began_ = read_; }
  /// After it: ȳ, the mean answers over the step.
  void end(Instance& instance, double step_s, double* mean);
  /// How far rounding may have moved the means that `end` gave: increments of large integrals are small.
  const std::vector<double>& roundings() const { return roundings_; }
  /// At a state: the integrals there, which `take_integrals` tells once the instance has finished.
  void ask_integrals(Instance& instance) { instance.ask(answers_, read_.data()); }
  void take_integrals(double* integrals);
  void set_integrals(const double* integrals) { start_.assign(integrals, integrals + ports()); }

 private:
  const std::vector<PortVariables>* ports_;
  bool watches_;  ///< means come from the instance where there is no integral
  VariableList inputs_, answers_;
  // One per port; start_: of the step, began_: the answers there, in the FMU's units.
  std::vector<double> sent_, read_, start_, began_, roundings_, means_;
};

constexpr double kNoRollback = 1e-3;  // steps that differ by more do not repeat at all

/// What first steps of a program tell, which are taken back.
struct FirstSteps {
  /// How far repeated steps differ, relative to what they answer; 0: bit by bit.
  double worst = 0.0;
  bool drifts = false;  ///< each time by the same amount: some of its state stays behind
  /// What the part can give through its ports in one step, by the affine model ȳ = ȳ₀ + Y u of it:
  /// h/4 ȳ₀ᵀ sym(Y)⁻¹ ȳ₀. For short steps that is the energy of what lies behind the ports, such as m v²/2 or k x²/2.
  double available_J = 0.0;
  double least_response = 0.0;  ///< as least_response tells
};

/// û = u · of_u and ŷ = ȳ · of_y at each port.
void wave_factors(const PartSetup& setup, double step_s, const double* impedance,
                  Eigen::VectorXd& of_u, Eigen::VectorXd& of_y);

/// One FMU as a batch of one lane, whose states are kept by the FMU itself in two slots (StepBatch). All
/// is solved in wave units: û + ŷ = a, where û = u/s and ŷ = γȳ/s for ports that take effort, û = γu/s
/// and ŷ = ȳ/s for those that take flow, and s = √(2γ/h).
///
/// An affine model of the answers, ŷ ≈ ŷ₀ + Ŷ(û − û₀), predicts each solve, and evaluations correct it. At every
/// state the first evaluation is at the input of the last commit, whatever the wave: what the model is there
/// depends on the record alone, and so do `scatter` and `advance`, bit by bit. `inexact_scatter` goes on with what
/// its own evaluations since have told; where the model has proved right, it asks the FMU nothing.
///
/// A record holds the slot and its generation, the model in SI units at its state, the one of inexact scatters,
/// the integrals at its state, the other inputs, and the outputs that are shown.
class FmuBatch final : public StepBatch, public StateBytes {
 public:
  FmuBatch(const PartSetup& setup, std::shared_ptr<Program> program, double floor);
  ~FmuBatch() override;

  void prepare(double step_s, const double* impedance) override;
  double scatter_cost_ns() const override { return kStepCost_ns; }
  double advance_cost_ns() const override { return kStepCost_ns; }
  std::size_t record_size() const override { return layout_.size; }
  void set_state(int lane, const double* x, double* record) const override;
  void get_state(int lane, const double* record, double* x) const override;
  void freeze(LaneRange lanes, double* record, const double* input) const override;
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override;
  LaneStatus inexact_scatter(LaneRange lanes, double* record, const double* a,
                             double* b) const override;
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override;
  std::vector<std::byte> write_states(const double* record) const override;
  void read_states(std::span<const std::byte> bytes, double* record) const override;

 private:
  static constexpr double kStepCost_ns = 2e4;  // a guess; it is measured where steps repeat
  struct Layout {
    Layout(std::size_t ports, std::size_t inputs, std::size_t outputs);
    std::size_t model, warm, integrals, inputs, outputs, size;
  };
  /// What a model knows.
  enum Knowledge : int { kNothing = 0, kSlopes = 1, kAnswers = 2 };
  /// The affine model in wave units, as it changes during a solve.
  struct Model {
    Eigen::VectorXd u0, y0;
    Eigen::MatrixXd Y;
    Knowledge knows = kNothing;
    double trust = 1.0;    ///< relative error of the increments that it tells
    double largest = 0.0;  ///< waves of the run so far
  };
  struct Work;
  enum class Aim { exact, inexact };

  StepFault solve(double* record, const double* a, Aim aim, double* b) const;
  StepFault iterate(const double* record, const double* a, Aim aim, double* b) const;
  StepFault begin(double* record) const;
  void load(const double* from) const;
  void store(double* to) const;
  void learn(const Eigen::VectorXd& u, const Eigen::VectorXd& y, double scale) const;
  bool evaluate(const double* record, const Eigen::VectorXd& u, Eigen::VectorXd& y) const;
  [[noreturn]] void refuse_answer(double time_s) const;
  bool measure_slopes(const double* record) const;
  void outgoing(const double* a, const Eigen::VectorXd& u, const Eigen::VectorXd& y,
                double* b) const;
  void expect_repeats(const double* record) const;
  void keep(std::size_t slot, const SavedState& when, double* record) const;
  /// When the state is after a step from another one: its times alone.
  SavedState after(const SavedState& from) const;
  const SavedState& slot_of(const double* record) const;

  const PartSetup& setup_;
  std::shared_ptr<Program> program_;
  double floor_;
  Layout layout_;
  double h_ = 0.0;
  Eigen::VectorXd wave_of_u_, wave_of_y_;  // factors
  VariableList shown_;
  // One thread at a time has the lane.
  mutable SavedState slots_[2];
  mutable PortAccess access_;
  mutable std::unique_ptr<Work> work_;
};

/// Takes steps of a program from its initial state, takes them back, and takes them again. Errors: FmuFault.
FirstSteps try_first_steps(const PartSetup& setup, Program& program, double step_s);

}  // namespace portwave::fmi
