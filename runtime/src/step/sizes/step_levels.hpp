#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "step/waves/tuner.hpp"

namespace portwave {

/// The preparations of a run: the impedances of every step size in use, and their step maps
/// while another size is in force. With steps of one size there is one level. The method is chosen
/// for the first one; others take impedances by the chosen rules.
class StepLevels {
 public:
  /// The first level is current. `anytime`: as in choose_method. Errors: ConfigError of Tuner.
  StepLevels(const System& stepped, double step_s, const WaveCoupling& method,
             const Anytime& anytime);

  double step_s() const { return current_->step_s; }
  Tuner& tuner() { return current_->tuner; }
  const Tuner& tuner() const { return current_->tuner; }

  /// Makes another step size current and puts its step maps in force in `waves`, which has those of the
  /// current level; missing ones are built. Some sizes that have not been in use for long are
  /// discarded. Errors: ConfigError, nothing having changed.
  void switch_to(double step_s, WaveDiscretisation& waves);
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
  bool has(double step_s) const;
  /// Forgets one that is not in force.
  void drop(double step_s);
  int count() const { return static_cast<int>(levels_.size()); }
  /// Callbacks for each step size as it is archived.
  struct Visit {
    std::function<void(double step_s, bool is_new)>
        switched;                              ///< reading: it has been put in force
    std::function<void(double step_s)> tuned;  ///< after what tuning has made of it
  };
  /// All prepared step sizes with the results of tuning, the current one last. Reading: each is put in force
  /// in `waves` in turn; others are discarded. Errors: ConfigError.
  void archive(StateArchive& archive, WaveDiscretisation& waves, const Visit& visit);

 private:
  struct Level {
    double step_s;
    Tuner tuner;
    WaveDiscretisation::Preparation maps;  // empty while in force
    std::int64_t last_use = 0;
  };

  std::list<Level>::iterator find_or_make(double step_s, const WaveDiscretisation& waves);
  void forget_oldest();

  const System& system_;
  std::list<Level> levels_;
  std::list<Level>::iterator current_;
  std::int64_t uses_ = 0;
};

}  // namespace portwave
