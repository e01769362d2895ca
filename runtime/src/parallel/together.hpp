#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "parallel/runner.hpp"
#include "parallel/step_arrays.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

class FollowingEngine;
class NetworkPeers;
class StateArchive;
struct QuantityTerm;

/// The joint work of the processes that step a system. A process that steps it alone has such an object, too:
/// one of this base class, which adds nothing to the work of that process. The notes that every step makes
/// cost a process alone no virtual call.
///
/// The lanes of other processes are fetched when somebody reads them. Fetching has no effect that can be
/// seen.
class Together {
 public:
  Together() = default;
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  virtual ~Together() = default;

  bool is_alone() const { return is_alone_; }
  /// Whether this is the process whose program asks for steps.
  virtual bool is_first() const { return true; }
  /// Whether this process has the whole system, and not only a slice of it.
  virtual bool has_whole() const { return true; }
  /// Finds sums over the whole system if this process has a slice of it; null otherwise.
  virtual SlicesTogether* slices() { return nullptr; }

  /// While an Order exists, all processes carry out the same order of the first one. `value`: the size for
  /// `step`, the limit for `step_towards`.
  class Order {
   public:
    enum class Kind { step, step_towards, settings_changed };
    Order(Together& together, Kind kind, double value = 0.0) : together_(together) {
      if (!together_.is_alone_) together_.begin_order(kind, value);
    }
    ~Order() {
      if (!together_.is_alone_) together_.end_order();
    }
    Order(const Order&) = delete;
    Order& operator=(const Order&) = delete;

   private:
    Together& together_;
  };

  // Within a step.
  /// With slices: the failure of the lowest-numbered part on any of them, by its number in the whole system.
  virtual PhaseStatus merged(PhaseStatus own) { return own; }
  /// Freezes the lanes that this process steps, as WaveDiscretisation::freeze_all does. Returns the failure
  /// of the lowest-numbered part on any process.
  virtual PhaseStatus freeze(const WaveDiscretisation& waves, double* record, const double* driven,
                             bool driven_only) {
    return waves.freeze_all(record, driven, driven_only);
  }
  virtual void note_written() {}  ///< own lanes of the current record were written
  /// Own lanes of the next record were written.
  void note_committed() {
    if (!is_alone_) committed();
  }
  /// The next record has become the current one.
  void note_accepted() {
    if (!is_alone_) accepted();
  }
  virtual void note_restored() {}  ///< all lanes of the current record were written
  /// These fetch all lanes: of the state committed last, of its energies, of the state being committed.
  virtual void fetch() {}
  virtual void fetch_energies() {}
  virtual void fetch_next() {}
  /// The part with the largest share of the last gap, among the islands for which counts(island) holds.
  virtual InterfaceResidual::Share largest_share(const System& system,
                                                 const InterfaceResidual& residual,
                                                 const std::function<bool(int island)>& counts) {
    InterfaceResidual::Share largest;
    for (int island = 0; island < system.island_count(); ++island) {
      if (counts(island)) largest.take(residual.largest_share(island));
    }
    return largest;
  }

  // While an engine is built.
  /// Checks that all processes find the same digest of `what`. A process alone does not compute it. Errors:
  /// RankError, on all processes.
  virtual void agree([[maybe_unused]] const char* what,
                     [[maybe_unused]] const std::function<std::uint64_t()>& digest) {}
  /// The discretisation could not be made here. With slices, no process then goes on.
  virtual void failed_to_discretise() {}
  /// The discretisation was made here. Errors: SliceDefects if another process has failed.
  virtual void discretised([[maybe_unused]] const WaveDiscretisation& waves) {}

  /// The executor of this process's share of the steps. Alone: that of portwave::make_runner.
  virtual Runner make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                             const double* record, LaneCosts& costs) {
    return portwave::make_runner(waves, options, record, costs);
  }
  /// The engine is complete. `settings`: the values of settable inputs, which are sent with every order.
  /// `now`, `next`: the states before and after a step.
  virtual void join([[maybe_unused]] FollowingEngine& engine,
                    [[maybe_unused]] const WaveDiscretisation& waves,
                    [[maybe_unused]] EnergyLedger& ledger,
                    [[maybe_unused]] std::span<double> settings,
                    [[maybe_unused]] const WaveState& now, [[maybe_unused]] const WaveState& next) {
  }
  /// Of an engine without waves: those with whom its steps may be shared; null: it steps alone.
  virtual NetworkPeers* network_peers() { return nullptr; }
  /// Such an engine is complete, and shares its steps. `settings`: as for `join`.
  virtual void join([[maybe_unused]] FollowingEngine& engine,
                    [[maybe_unused]] std::span<double> settings) {}
  /// The stepper is complete: from now on the first process tells the others what to do.
  virtual void lead() {}
  /// The engine is about to go: the others are told that the run is over.
  virtual void leave() {}

  // Between steps.
  /// On all processes but the first: carries out the orders of the first one until it releases them or the
  /// run is over. `told` receives its messages (RankedStepper::tell_followers); empty: nobody does.
  virtual void follow(
      [[maybe_unused]] const std::function<void(std::span<const std::byte>)>& told) {}
  /// Whether `own` is true on any slice; without slices, `own`.
  virtual bool any(bool own) { return own; }
  /// Runs `check`. If it throws ConfigError on one slice, all processes throw: SliceDefects if the defects
  /// are on other slices.
  virtual void check(const std::function<void()>& check) { check(); }
  virtual std::string name_of(const System& system, int part) { return system.name_of_part(part); }
  /// Notes the name of part `number` of the whole system for `kept_name`. Each `use` has one such note.
  void keep_name(int use, std::int64_t number) {
    if (!is_alone_) name_kept(use, number);
  }
  virtual std::string kept_name(const System& system, int number) const {
    return system.name_of_part(number);
  }
  /// The state of the first process was restored: the others take it over.
  virtual void send_state() {}
  /// An impulse acts on the state of the first process: the others carry it out, too (FollowingEngine::take_jump).
  virtual void send_jump([[maybe_unused]] std::span<const std::byte> bytes) {}

 protected:
  struct Others {};
  explicit Together(Others /*exist*/) : is_alone_(false) {}

  // Called only if there are other processes.
  virtual void begin_order([[maybe_unused]] Order::Kind kind, [[maybe_unused]] double value) {}
  virtual void end_order() {}
  virtual void committed() {}
  virtual void accepted() {}
  virtual void name_kept([[maybe_unused]] int use, [[maybe_unused]] std::int64_t number) {}

 private:
  bool is_alone_ = true;
};

/// The interface of a process's engine to the orders of the first process.
class FollowingEngine {
 public:
  /// Carries out an order. The first process reports failures.
  virtual void carry_out(Together::Order::Kind kind, double value) = 0;
  virtual void archive(StateArchive& archive) = 0;
  virtual void take_jump(std::span<const std::byte> bytes) = 0;
  virtual double read(const QuantityTerm& term) = 0;
  /// Of an engine without waves: takes part where the first process fetches the state of the whole.
  virtual void fetch_state() {}

 protected:
  ~FollowingEngine() = default;
};

}  // namespace portwave
