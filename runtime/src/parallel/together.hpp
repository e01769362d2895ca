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
class StateArchive;
struct QuantityTerm;

/// What the processes that step a system do together. A process that steps it alone has one of these, too:
/// this class, which does nothing beyond what that process does by itself. What happens in every step costs a
/// process alone no call.
///
/// The lanes of other processes are fetched when somebody looks at them; fetching changes nothing that can be
/// seen.
class Together {
 public:
  Together() = default;
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  virtual ~Together() = default;

  bool is_alone() const { return is_alone_; }
  /// Of several processes the one whose program asks for steps.
  virtual bool is_first() const { return true; }
  /// Whether this process has the whole system, and not only a slice of it.
  virtual bool has_whole() const { return true; }
  /// Finds sums of the whole where this process has a slice of the system; null otherwise.
  virtual SlicesTogether* slices() { return nullptr; }

  /// While it lives, all processes carry out the same order of the first one. `value`: of `step` the size, of
  /// `step_towards` the limit.
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

  // Of a step.
  /// Of slices the failure of the lowest part anywhere, by its number in the whole.
  virtual PhaseStatus merged(PhaseStatus own) { return own; }
  /// Freezes the lanes that this process steps, as WaveDiscretisation::freeze_all; likewise.
  virtual PhaseStatus freeze(const WaveDiscretisation& waves, double* record, const double* driven,
                             bool driven_only) {
    return waves.freeze_all(record, driven, driven_only);
  }
  virtual void note_written() {}  ///< the current record was written
  /// So was the next one,
  void note_committed() {
    if (!is_alone_) committed();
  }
  /// which is now the current one.
  void note_accepted() {
    if (!is_alone_) accepted();
  }
  virtual void note_restored() {}  ///< all lanes of the current record were written
  /// All lanes of what was committed last, of its energies, and of what is being committed.
  virtual void fetch() {}
  virtual void fetch_energies() {}
  virtual void fetch_next() {}
  /// The part with most of the last gap, of islands for which counts(island) holds.
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
  /// All processes have to find the same number, a digest of `what`; alone it is not asked for. Errors:
  /// RankError, on all of them.
  virtual void agree([[maybe_unused]] const char* what,
                     [[maybe_unused]] const std::function<std::uint64_t()>& digest) {}
  /// The discretisation could not be made here: of slices, no process goes on.
  virtual void failed_to_discretise() {}
  /// It was made. Errors: SliceDefects where another process has failed.
  virtual void discretised([[maybe_unused]] const WaveDiscretisation& waves) {}

  /// The executor of this process's share of the steps, as the function make_runner.
  virtual Runner make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                             const double* record, LaneCosts& costs) {
    return portwave::make_runner(waves, options, record, costs);
  }
  /// The engine is complete. `settings`: of settable inputs, which go with every order. `now`, `next`: what
  /// a step leads from and to.
  virtual void join([[maybe_unused]] FollowingEngine& engine,
                    [[maybe_unused]] const WaveDiscretisation& waves,
                    [[maybe_unused]] EnergyLedger& ledger,
                    [[maybe_unused]] std::span<double> settings,
                    [[maybe_unused]] const WaveState& now, [[maybe_unused]] const WaveState& next) {
  }
  /// The stepper is complete: from now on the first process tells the others what to do.
  virtual void lead() {}
  /// The engine is about to go: the others are told that the run is over.
  virtual void leave() {}

  // Between steps.
  /// On other processes than the first: carries out its orders until it releases them or the run is over.
  /// `told`: hears what it tells them (RankedStepper::tell_followers); empty: nobody does.
  virtual void follow(
      [[maybe_unused]] const std::function<void(std::span<const std::byte>)>& told) {}
  /// Whether it holds of any process's slice.
  virtual bool any(bool own) { return own; }
  /// Runs `check`. Where that of one slice throws ConfigError, all processes do; SliceDefects where the
  /// defects are elsewhere.
  virtual void check(const std::function<void()>& check) { check(); }
  virtual std::string name_of(const System& system, int part) { return system.name_of_part(part); }
  /// Notes what part `number` is called, in the whole, for `kept_name`. There is one note per `use`.
  void keep_name(int use, std::int64_t number) {
    if (!is_alone_) name_kept(use, number);
  }
  virtual std::string kept_name(const System& system, int number) const {
    return system.name_of_part(number);
  }
  /// The state of the first process was restored: the others take it over.
  virtual void send_state() {}

 protected:
  struct Others {};
  explicit Together(Others /*exist*/) : is_alone_(false) {}

  // Called with others only.
  virtual void begin_order([[maybe_unused]] Order::Kind kind, [[maybe_unused]] double value) {}
  virtual void end_order() {}
  virtual void committed() {}
  virtual void accepted() {}
  virtual void name_kept([[maybe_unused]] int use, [[maybe_unused]] std::int64_t number) {}

 private:
  bool is_alone_ = true;
};

/// The engine of a process, as the orders of the first one use it.
class FollowingEngine {
 public:
  /// Carries out an order. What fails is told by the first process.
  virtual void carry_out(Together::Order::Kind kind, double value) = 0;
  virtual void archive(StateArchive& archive) = 0;
  virtual double read(const QuantityTerm& term) = 0;

 protected:
  ~FollowingEngine() = default;
};

}  // namespace portwave
