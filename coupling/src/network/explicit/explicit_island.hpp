#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "portwave/coupling/network/network_peers.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// The state of an island between two steps. Which states are where is a matter of the method.
struct IslandState {
  AlignedVector u;         ///< momenta, shifted; 0 in gaps
  AlignedVector position;  ///< undamped ones; all states that are not dead
  AlignedVector decaying;  ///< shifted so that they decay to 0
  AlignedVector dead;
  double tank_J = 0.0;    ///< T: H + T is what has been supplied, less what was dissipated
  double stored_J = 0.0;  ///< H: states are known to its rounding

  std::size_t bytes() const {
    return (u.capacity() + position.capacity() + decaying.capacity() + dead.capacity()) *
           sizeof(double);
  }
};

/// Energies of a step of an island [J].
struct IslandEnergies {
  double changed_J = 0.0, supplied_J = 0.0, dissipated_J = 0.0;
  double size_J = 0.0;  ///< of the terms that these were made of
  int halvings = 0;
  int depth = 0;  ///< the shortest steps were of h/2^depth
};

/// An input that could not be sampled.
struct InputFault {
  int input = 0;  ///< of the network
  bool threw = false;
  std::string detail;
};

/// An island of a network that is stepped without iteration, its balance of energy being exact: a step whose
/// balance is not met is taken as two halves. Memory is taken at construction, and by the first halving of
/// each depth.
class ExplicitIsland {
 public:
  static constexpr int kMostHalvings = 10;

  virtual ~ExplicitIsland() = default;

  virtual bool has_inputs() const = 0;
  /// Bodies of the largest loop that threads can share within the island; 1: none.
  virtual int tasks() const { return 1; }
  /// Attempts share their loops in this way from now on; null: they are run by the calling thread.
  virtual void share_with(const ForEach* /*each*/) {}
  /// Whether ranks can share the rows of the island; otherwise one of them steps it.
  virtual bool can_share_rows() const { return false; }
  /// Ranks share them from now on: all of them make each attempt together. Of its states each has its own rows, and
  /// those of others that it reads. Precondition: `can_share_rows`.
  virtual void share_among(NetworkPeers& /*peers*/) {}
  /// The rows of other ranks, too. All ranks call it. Precondition: they share them.
  virtual void complete(IslandState& /*state*/) {}
  /// Steps to come are of this size [s].
  virtual void set_step(double step_s) = 0;
  /// States of the whole system to and from the island.
  virtual void load(const double* x, IslandState& state) const = 0;
  virtual void store(const IslandState& state, double* x) const = 0;
  /// Of an archive: where states are kept with gaps, what stands there is nothing, and must be 0.
  virtual void clear_gaps(IslandState& /*state*/) const {}

  /// In steps of h/2^depth and shorter, displacements that jump (Signal::rate_of) rise at a constant rate instead of
  /// that with their moments, which swings: the balance of kicks and drifts meets its work at no step size.
  void take_jumps_as_ramps_from(int depth) { ramps_from_ = depth; }
  /// Samples the inputs for a step of h/2^depth from `start_s` on. Throws InputFault.
  virtual void sample(double start_s, int depth) = 0;
  /// One step of h/2^depth with the inputs sampled. False where its balance is not met: `to` is then no state.
  /// Energies are added.
  virtual bool attempt(const IslandState& from, IslandState& to, int depth,
                       IslandEnergies& energies) = 0;
  /// Whether steps of h are off by more than their balance shows. They are halved untried, but for steps that are chosen by
  /// their errors, which show it.
  virtual bool is_too_long(double /*h*/) const { return false; }
  /// Whether an input that was sampled for a step of h/2^depth changes suddenly between two samples, so that it is not known
  /// when. Such steps are halved untried, as far as that tells more: to a hundredth of a step of the run.
  bool is_sudden(int depth) const { return is_sudden_ && depth < kResolved; }
  /// A step of h as two halves, which are halved in turn where need be. False where that does not help
  /// either. Samples inputs by itself. Throws InputFault. `once_more`: what would do is halved again.
  bool halve(const IslandState& from, IslandState& to, double start_s, double step_s,
             bool once_more, IslandEnergies& energies);

  /// Whether an attempt tells its error; otherwise a step is compared with two of half its size.
  virtual bool tells_error() const { return false; }
  /// Of the last attempt, by state of the whole system. Precondition: `tells_error`.
  virtual void error(double* /*x*/) {}

  /// What to say where no halving helps: rates and how to go on.
  virtual std::string advice() const = 0;
  virtual double cost_ns() const = 0;
  virtual std::size_t bytes() const = 0;  ///< without what halvings take
  std::size_t bytes_of_halvings() const;

 protected:
  bool are_ramps(int depth) const { return depth >= ramps_from_; }

  static constexpr int kResolved =
      6;                    ///< halvings until it is known well enough when inputs change
  bool is_sudden_ = false;  ///< of the last samples

 private:
  static constexpr int kRampsFrom = 7;

  bool halve(const IslandState& from, IslandState& to, double start_s, double step_s, int depth,
             bool once_more, IslandEnergies& energies);

  int ramps_from_ = kRampsFrom;
  std::array<IslandState, kMostHalvings> halfway_;
};

/// Whether most of what a function does over a step happens between two of its values there, or about one of them.
class SuddenChange {
 public:
  /// Values in order of time.
  void see(double value) {
    if (count_ > 0) {
      const double change = std::abs(value - last_);
      most_ = std::max(most_, change);
      // Two of two are all of it, and say nothing.
      most_of_two_ = std::max(most_of_two_, change + before_);
      all_ += change;
      before_ = change;
    }
    size_ = std::max(size_, std::abs(value));
    last_ = value;
    ++count_;
  }
  bool is_sudden() const {
    if (most_ > std::max(kSeen * size_, kMost * (all_ - most_))) return true;
    return count_ > kFew &&
           most_of_two_ > std::max(kSeen * size_, kMostOfTwo * (all_ - most_of_two_));
  }

 private:
  static constexpr double kSeen = 1e-3, kMost = 2.0, kMostOfTwo = 4.0;
  static constexpr int kFew = 5;  // values
  int count_ = 0;
  double last_ = 0.0, before_ = 0.0, most_ = 0.0, most_of_two_ = 0.0, all_ = 0.0, size_ = 0.0;
};

/// States that decay by themselves and act on nothing, such as a spring and damper whose end is free.
struct DeadStates {
  std::vector<int> states;  ///< of the network
  std::vector<double> rate, stiffness;

  /// What a step of h leaves of each.
  AlignedVector kept(double h) const;
  /// Their exact flow over a step. Returns the energy that is gone.
  double decay(const AlignedVector& kept, const AlignedVector& from, AlignedVector& to) const;
};

}  // namespace portwave
