#pragma once

#include <functional>
#include <span>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

// What is damped together in single steps.

namespace portwave {

/// Whether no state stores anything, as far as some show it: the travel of a switch does not, that of a contact does.
bool is_without_energy(const Subsystem& physics);

/// The scalar port of a part without stages that one of its component is.
int port_of_physics(const Component& component, int scalar_port);

/// Null: it does not store, or takes no damped steps one by one at little cost.
const Subsystem* storage_of(const Part& part);

/// Which parts rigid joints tie together, found when somebody asks.
class RigidTies {
 public:
  /// Both must outlive it.
  RigidTies(const System& system, const std::function<bool(int part)>& may_take)
      : system_(system), may_take_(may_take) {}

  bool may_take(int part) const;
  /// The parts that are tied to one of `parts`, and these, in order; empty where some of them may not be taken.
  std::vector<int> with(std::span<const int> parts);

 private:
  void find();
  int root(int group);

  const System& system_;
  const std::function<bool(int part)>& may_take_;
  std::vector<int> group_;   // by part: a constraint; −1: none
  std::vector<int> parent_;  // of constraints
  std::vector<std::vector<int>> tied_;
};

}  // namespace portwave
