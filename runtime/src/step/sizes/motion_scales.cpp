#include "step/sizes/motion_scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/sizes/part_kinds.hpp"

namespace portwave {

MotionScales::MotionScales(const System& system, std::span<const NetworkBlock> blocks)
    : energies_(blocks.size()) {
  std::map<std::pair<int, std::string>, int> kinds;
  for (const NetworkBlock& block : blocks) {
    const Part& part = system.parts()[at(block.part)];
    start_.insert(start_.end(), part.initial_state.begin(), part.initial_state.end());
    const int island = system.island_of_part(block.part);
    const auto [it, is_new] =
        kinds.try_emplace({island, kind_name(*part.component)}, static_cast<int>(kinds.size()));
    if (is_new) kinds_.push_back({.island = island});
    part_of_block_.push_back(block.part);
    kind_of_block_.push_back(it->second);
  }
  for (std::vector<double>* own : {&island_J_, &moved_J_, &apart_J_}) {
    own->assign(at(system.island_count()), 0.0);
  }
}

double MotionScales::amplitude() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::ranges::fill(moved_J_, 0.0);
  std::ranges::fill(apart_J_, 0.0);
  for (Kind& kind : kinds_) kind.next_J = kind.scale_J;
  for (std::size_t i = 0; i < energies_.size(); ++i) {
    const NetworkTrials::Energies& own = energies_[i];
    if (!std::isfinite(own.error_J + own.motion_J)) {
      worst_part_ = part_of_block_[i];
      return kInfinity;
    }
    Kind& kind = kinds_[at(kind_of_block_[i])];
    kind.next_J = std::max(kind.next_J, own.motion_J);
    double &moved = moved_J_[at(kind.island)], &apart = apart_J_[at(kind.island)];
    moved = std::max(moved, own.motion_J);
    apart = std::max(apart, own.error_J);
  }
  for (std::size_t i = 0; i < island_J_.size(); ++i) {
    if (apart_J_[i] <= kRoughlyEqual * moved_J_[i]) {
      island_J_[i] = std::max(island_J_[i], moved_J_[i]);
    }
  }
  for (Kind& kind : kinds_) {
    const double of_island = std::max(island_J_[at(kind.island)], moved_J_[at(kind.island)]);
    kind.next_J = std::max({kind.next_J, kLeastShareOfMotion * of_island, kLeastMotion_J});
  }
  double worst = 0.0;
  worst_part_ = -1;
  for (std::size_t i = 0; i < energies_.size(); ++i) {
    const NetworkTrials::Energies& own = energies_[i];
    const double scale_J = kinds_[at(kind_of_block_[i])].next_J;
    if (own.error_J <= own.rounding_J || own.error_J <= worst * worst * scale_J) continue;
    const double over = (std::sqrt(own.error_J) - std::sqrt(own.rounding_J)) / std::sqrt(scale_J);
    if (over <= worst) continue;
    worst = over;
    worst_part_ = part_of_block_[i];
  }
  return worst;
}

void MotionScales::accept() {
  for (Kind& kind : kinds_) {
    kind.scale_J = kind.next_J;
    double& largest = island_J_[at(kind.island)];
    largest = std::max(largest, kind.scale_J);
  }
}

std::size_t MotionScales::bytes() const {
  return start_.capacity() * sizeof(double) +
         energies_.capacity() * sizeof(NetworkTrials::Energies) +
         2 * kind_of_block_.capacity() * sizeof(int);
}

void MotionScales::archive(StateArchive& archive) {
  archive.array(start_);
  archive.array(island_J_);
  for (Kind& kind : kinds_) archive.value(kind.scale_J);
  archive.expect_finite(start_, "a state at the start");
  archive.expect_finite(island_J_, "an energy of motion");
}

}  // namespace portwave
