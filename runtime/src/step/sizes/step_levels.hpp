#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "step/waves/interface_solvers.hpp"
#include "step/waves/tuner.hpp"

namespace portwave {

/// The preparations of a run: of every step size in use the impedances, and while another size is in force the step
/// maps and the interface solver. What belongs to one size is in one place, and goes with it. With steps of one size
/// there is one level. The method is chosen for the first one; others take impedances by the chosen rules.
class StepLevels {
 public:
  /// Parts that are damped in single steps. A level is made of them as they are without that, whatever they are now, so
  /// that it does not depend on when it is made, and arranged then.
  enum class SingleSteps { without, arranged, as_they_were };
  /// What the current level has in force.
  struct InForce {
    WaveDiscretisation& waves;
    InterfaceSolvers* interface;  ///< null: no island may take the interface update
    /// `arranged`: with the new level in force. Errors then: ConfigError.
    std::function<void(SingleSteps)> put;
  };

  /// The first level is current. `anytime`: as in choose_method. Errors: ConfigError of Tuner.
  StepLevels(const System& stepped, double step_s, const WaveCoupling& method,
             const Anytime& anytime);

  double step_s() const { return current_->step_s; }
  Tuner& tuner() { return current_->tuner; }
  const Tuner& tuner() const { return current_->tuner; }

  /// Makes another step size current and puts what it has in force in place of that of the current level; what is
  /// missing is built. Some sizes that have not been in use for long are discarded. Errors: ConfigError, nothing
  /// having changed.
  void switch_to(double step_s, const InForce& own);
  /// Every level has these impedances from now on, by scalar port; they are in force already.
  void leave(std::span<const double> by_port);
  void set_iterations(int iterations);
  /// A part was exchanged. Errors: ConfigError, nothing having changed.
  void component_changed(int part) { current_->tuner.component_changed(part); }
  /// A part was exchanged before step `steps`: what is prepared for other step sizes goes.
  void leave_others_after_change(std::int64_t steps);
  /// The exchange stands: step maps of other sizes are out of date, and discarded.
  void leave_others();
  /// Impedances by the rules of the method, for the parts as they are now; by scalar port.
  /// Errors: ConfigError, nothing having changed.
  std::vector<double> chosen_anew() const;
  /// The current level has these impedances, which are in force; other levels are discarded.
  void accept(const std::vector<double>& by_port);
  /// Interface solvers of other sizes are made again when they are needed.
  void forget_solvers();
  int count() const { return static_cast<int>(levels_.size()); }
  /// All prepared step sizes with the results of tuning and their solvers, the current one last. Reading: each is put
  /// in force in turn; others are discarded. Returns whether step maps in force are others now. Errors: ConfigError; what
  /// is in force then fits, but need not be what it was.
  bool archive(StateArchive& archive, const InForce& own);

 private:
  struct Level {
    double step_s;
    Tuner tuner;
    // While another one is in force:
    WaveDiscretisation::Preparation maps;
    std::unique_ptr<InterfaceSolver> solver;  // null: none has been made
    std::int64_t last_use = 0;
  };

  std::list<Level>::iterator make(double step_s, const WaveDiscretisation& waves);
  void put_in_force(std::list<Level>::iterator next, const InForce& own);
  void drop_others();
  void forget_oldest();

  const System& system_;
  std::list<Level> levels_;
  std::list<Level>::iterator current_;
  std::int64_t uses_ = 0;
};

}  // namespace portwave
