#pragma once

// Components as foreign programs are: ports and a step that can be taken back, and nothing else.
// They show how the state of a program is kept in slots.

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::testing {

/// A program that moves a mass on a spring and a damper. Nobody else sees q and v. It takes a force
/// that it holds over a step, and says how far the mass has moved. It can save its state and
/// restore it.
///   m v̇ = −k q − k₃ q³ − c v + F
class MassProgram {
 public:
  struct Parameters {
    double mass_kg = 1.0;
    double stiffness_N_per_m = 0.0;
    double cubic_stiffness_N_per_m3 = 0.0;
    double damping_Ns_per_m = 0.0;
    double start_m = 0.0;
    double start_m_per_s = 0.0;
    int substeps = 1;  ///< implicit midpoint steps of its own per step
    /// Every step ends up to this far from where it should, at random: steps do not repeat.
    double jitter_m = 0.0;
  };
  struct State {
    double q = 0.0, v = 0.0;
  };

  explicit MassProgram(const Parameters& parameters) : p_(parameters) {}

  const State& save() const { return state_; }
  void restore(const State& state) { state_ = state; }

  /// Returns the way that the mass has gone [m].
  double step(double step_s, double force_N) {
    const double h = step_s / p_.substeps;
    double way = 0.0;
    for (int i = 0; i < p_.substeps; ++i) way += substep(h, force_N);
    if (p_.jitter_m != 0.0) {
      noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
      way += p_.jitter_m * (static_cast<double>(noise_ >> 11) * 0x1.0p-52 - 1.0);
    }
    return way;
  }

 private:
  /// With d the increment of q: m(2d/h − 2v)/h = −k(q + d/2) − k₃ ∇̄(q⁴/4) − c d/h + F.
  double substep(double h, double force) {
    const double q = state_.q, v = state_.v;
    double d = 0.0;
    for (int k = 0; k < 50; ++k) {
      const double end = q + d, both = q + end, squares = q * q + end * end;
      const double cubic = 0.25 * p_.cubic_stiffness_N_per_m3 * both * squares;
      const double residual = 2.0 * p_.mass_kg * (d / h - v) / h +
                              p_.stiffness_N_per_m * (q + 0.5 * d) + cubic +
                              p_.damping_Ns_per_m * d / h - force;
      const double slope = 2.0 * p_.mass_kg / (h * h) + 0.5 * p_.stiffness_N_per_m +
                           0.25 * p_.cubic_stiffness_N_per_m3 * (squares + 2.0 * end * both) +
                           p_.damping_Ns_per_m / h;
      const double move = residual / slope;
      d -= move;
      if (std::abs(move) <= 1e-16 * std::abs(d)) break;
    }
    state_ = {q + d, 2.0 * d / h - v};
    return d;
  }

  Parameters p_;
  State state_;
  std::uint64_t noise_ = 1;
};

/// What the programs of a test were asked for.
struct ProgramCalls {
  std::atomic<long> solves = 0;
  std::atomic<int> inside = 0;  ///< calls under way
  std::atomic<int> most = 0;    ///< the most of them at the same time
};

/// One program as a batch of one lane. Its port takes an effort e, the force on the mass being −e,
/// as that of `linear_oscillator`; the flow is f = −(way)/h.
///
/// The record holds a slot and the generation of what is in it. `set_state` fills slot 0 and
/// `advance` the slot that its record does not name. A record whose generation is not that of its
/// slot is of a step that is no more.
class ProgramBatch final : public StepBatch {
 public:
  ProgramBatch(const MassProgram::Parameters& parameters, ProgramCalls* calls)
      : StepBatch(1, 0, 1, 0), p_(parameters), program_(parameters), calls_(calls) {}

  void prepare(double step_s, const double* impedance) override {
    h_ = step_s;
    gamma_ = impedance[0];
    s_ = std::sqrt(2.0 * gamma_ / h_);
  }
  std::size_t record_size() const override { return 2; }
  void set_state(int /*lane*/, const double* /*x*/, double* record) const override {
    keep(0, {p_.start_m, p_.start_m_per_s}, record);
  }
  void get_state(int, const double*, double*) const override {}
  void freeze(LaneRange, double*, const double*) const override {}

  LaneStatus scatter(LaneRange, double* record, const double* a, double* b) const override {
    return solve(record, *a, *b);
  }
  LaneStatus advance(LaneRange, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    const LaneStatus status = solve(record, *a, *b);
    if (!status.ok()) return status;
    if (energy.wanted()) energy.set(0, {});  // it knows nothing of energy
    keep(1 - static_cast<std::size_t>(record[0]), program_.save(), next);
    return {};
  }

 private:
  struct Slot {
    MassProgram::State state;
    double generation = 0.0;
  };

  void keep(std::size_t slot, const MassProgram::State& state, double* record) const {
    slots_[slot] = {state, ++generation_};
    record[0] = static_cast<double>(slot);
    record[1] = generation_;
  }

  /// e + γ f(e) = s a by the secant method; f grows with e, so there is one solution.
  /// Leaves the program at the end of the step.
  LaneStatus solve(const double* record, double a, double& b) const {
    const Count count(calls_);
    if (!std::isfinite(a)) return {0, StepFault::not_finite};
    const Slot& slot = slots_[static_cast<std::size_t>(record[0])];
    if (slot.generation != record[1]) throw std::logic_error("the state of this record is gone");
    double force = 0.0;
    const auto gap = [&](double effort) {
      program_.restore(slot.state);
      force = -program_.step(h_, -effort) / h_;
      return effort + gamma_ * force - s_ * a;
    };
    double before = 0.0, gap_before = gap(before);
    double effort = -gap_before, now = gap(effort);
    for (int k = 0; k < 60 && now != gap_before; ++k) {
      const double scale = std::abs(effort) + gamma_ * std::abs(force) + s_ * std::abs(a);
      if (std::abs(now) <= 1e-15 * scale + 4.0 * gamma_ * p_.jitter_m / h_) break;
      const double next = effort - now * (effort - before) / (now - gap_before);
      before = effort;
      gap_before = now;
      effort = next;
      now = gap(effort);
    }
    // The one without cancellation, of b = a − (2γ/s) f and b = −a + (2/s) e, does not matter here.
    b = a - 2.0 * gamma_ / s_ * force;
    return std::isfinite(b) ? LaneStatus{} : LaneStatus{0, StepFault::not_finite};
  }

  struct Count {
    explicit Count(ProgramCalls* counted) : calls(counted) {
      if (calls == nullptr) return;
      ++calls->solves;
      const int inside = ++calls->inside;
      int most = calls->most.load();
      while (inside > most && !calls->most.compare_exchange_weak(most, inside)) {
      }
    }
    ~Count() {
      if (calls != nullptr) --calls->inside;
    }
    ProgramCalls* calls;
  };

  MassProgram::Parameters p_;
  double h_ = 0.0, gamma_ = 1.0, s_ = 1.0;
  mutable MassProgram program_;  // one, in whatever state the last call has left it
  mutable Slot slots_[2];
  mutable double generation_ = 0.0;
  ProgramCalls* calls_;
};

/// A MassProgram as a part: a port "coupling", and nothing known of what is inside.
class OpaqueMass final : public Component {
 public:
  explicit OpaqueMass(const MassProgram::Parameters& parameters,
                      Capabilities capabilities = {.repeatable = true,
                                                   .thread_safe = true,
                                                   .linearisable = true},
                      ProgramCalls* calls = nullptr)
      : Component(Signature{
            "opaque_mass", {}, {{"coupling", Causality::effort_in, Domain::translation, 1}}, {}}),
        p_(parameters),
        capabilities_(capabilities),
        calls_(calls) {}

  Capabilities capabilities() const override { return capabilities_; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> /*one*/) const override {
    return std::make_unique<ProgramBatch>(p_, calls_);
  }

 private:
  MassProgram::Parameters p_;
  Capabilities capabilities_;
  ProgramCalls* calls_;
};

}  // namespace portwave::testing
