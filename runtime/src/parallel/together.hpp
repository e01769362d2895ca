#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

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
  /// The discretisation could not be made here: of slices, no process goes on.
  virtual void failed_to_discretise() {}
  /// It was made. Errors: SliceDefects where another process has failed.
  virtual void discretised([[maybe_unused]] const WaveDiscretisation& waves) {}

  // Between steps.
  /// Whether it holds of any process's slice.
  virtual bool any(bool own) { return own; }
  /// Runs `check`. Where that of one slice throws, all processes do.
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

}  // namespace portwave
