#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/interconnection.hpp"
#include "portwave/coupling/system.hpp"
#include "portwave/subsystems/step_batch.hpp"

namespace portwave {

/// Where a part lives in the state and wave vectors of a WaveDiscretisation.
struct PartPlace {
  int batch = 0;
  int lane = 0;
  int state = 0;  ///< first place in the state vector
  int wave = 0;   ///< first place in the wave vector
};

/// How a phase of a macro-step ended: ok, or the failing part with the lowest number.
struct [[nodiscard]] PhaseStatus {
  int part = -1;
  StepFault fault = StepFault::none;
  std::string detail;  ///< text of the exception, for StepFault::threw

  bool ok() const { return fault == StepFault::none; }
  /// Keeps the failure of the lower part number.
  void merge(PhaseStatus other);
};

/// A batch of equal-shaped parts and where its lanes begin.
struct BatchPlace {
  std::unique_ptr<StepBatch> batch;
  std::vector<int> parts;  ///< part of each lane
  int state = 0;
  int wave = 0;
  int input = 0;
  int energy = 0;       ///< first place in arrays with one entry per part in lane order
  bool driven = false;  ///< some external input of some lane is driven
};

/// A system cut for one step size and one impedance per scalar port: parts gathered into batches,
/// their one-step solvers prepared, the coupling turned into waves. Vectors of states and waves are
/// ordered batch by batch, lane by lane. The System must outlive it.
class WaveDiscretisation {
 public:
  /// `impedance`: one per scalar port of the system. Errors: ConfigError (step ≤ 0, impedance ≤ 0,
  /// not finite, a singular implicit step).
  WaveDiscretisation(const System& system, double step_s, std::span<const double> impedance);

  const System& system() const { return system_; }
  double step_s() const { return step_s_; }
  std::span<BatchPlace> batches() { return batches_; }
  std::span<const BatchPlace> batches() const { return batches_; }
  const Interconnection& interconnection() const { return *interconnection_; }
  std::span<const PartPlace> places() const { return places_; }

  int state_size() const { return state_size_; }
  int wave_size() const { return wave_size_; }
  int input_size() const { return input_size_; }
  /// Some external input is driven.
  bool driven() const { return !driven_.empty(); }

  /// Impedance by place in the wave vector.
  std::span<const double> impedance() const { return impedance_; }
  /// Place in the wave vector of a scalar port of the system.
  int wave_of_port(int scalar_port) const {
    return wave_of_port_[static_cast<std::size_t>(scalar_port)];
  }
  /// Part of a lane-order index (see BatchPlace::energy).
  std::span<const int> part_of_energy() const { return part_of_energy_; }

  std::vector<double> initial_state() const;
  /// The three acts for lanes of one batch; vectors are the whole system's. A callback's exception
  /// becomes StepFault::threw.
  PhaseStatus freeze(int batch, LaneRange lanes, const double* x, const double* input);
  PhaseStatus scatter(int batch, LaneRange lanes, const double* a, double* b);
  PhaseStatus advance(int batch, LaneRange lanes, const double* a, double* x_next, double* b,
                      StepEnergy* energy);
  /// b = S(a) of every part, on this thread.
  PhaseStatus scatter_all(const double* a, double* b);

  /// ū of the step that starts at `time_s`: every driven channel at its midpoint t + h/2.
  /// A callback's exception becomes StepFault::threw, naming the part and the channel.
  PhaseStatus sample_inputs(double time_s, double* input) const;

 private:
  struct DrivenInput {
    const Signal* signal;
    int place;
    int part;
    int channel;
  };

  void add_batch(const std::vector<int>& parts);
  void prepare_batches();
  bool scatter_unguarded(const double* a, double* b);
  template <class Act>
  PhaseStatus guarded(int batch, LaneRange lanes, Act act);

  const System& system_;
  double step_s_;
  std::vector<BatchPlace> batches_;
  std::vector<PartPlace> places_;
  std::vector<int> part_of_energy_;
  std::vector<int> wave_of_port_;
  std::vector<double> impedance_;
  std::vector<DrivenInput> driven_;
  std::unique_ptr<Interconnection> interconnection_;
  int state_size_ = 0;
  int wave_size_ = 0;
  int input_size_ = 0;
};

}  // namespace portwave
