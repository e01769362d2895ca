#include "step/sizes/crossing_search.hpp"

#include <algorithm>
#include <cmath>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/event_watch.hpp"

namespace portwave {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kBisectionsOfStep = 60;
/// Crossings of one level that are closer than this share of a step are not located one by one.
constexpr double kChatter = 0.1;

}  // namespace

CrossingSearch::CrossingSearch(const TriedStates& states, std::span<const Watch> watches,
                               double tolerance_s, const double* record)
    : states_(states), tolerance_s_(tolerance_s) {
  std::size_t most = 0;
  for (const Watch& watch : watches) {
    if (watch.signal >= 0 || watch.of.kind != Sensor::Kind::state) continue;
    levels_.push_back({watch.of.part, watch.of.index, watch.level, watch.wants(true),
                       watch.wants(false), watch.changes_equations});
    most = std::max(most, at(states.size_of(watch.of.part)));
  }
  std::ranges::stable_sort(levels_, {}, &Level::part);
  state_.resize(most);
  accept(0.0, record);
  for (Level& level : levels_) level.passed_s = -kNever;
}

const double* CrossingSearch::state_of(int part, const double* record) {
  states_.get_state(part, record, state_.data());
  return state_.data();
}

CrossingSearch::End CrossingSearch::end_for(double start_s, double step_s, double usual_s,
                                            const double* next) {
  const double round_off =
      8.0 * std::numeric_limits<double>::epsilon() * (std::abs(start_s) + step_s);
  const double tolerance_s = std::max(tolerance_s_, round_off);
  End end;
  if (step_s <= tolerance_s) return end;
  const double* x = nullptr;
  int part = -1;
  for (const Level& level : levels_) {
    if (level.part != part) x = state_of(part = level.part, next);
    const double theta = first_passage(level, x);
    if (!(theta <= 1.0)) continue;
    const double root_s = start_s + theta * step_s;
    if (start_s + step_s - root_s <= tolerance_s) continue;
    if (root_s - level.passed_s < kChatter * usual_s) continue;
    const double aim_s = std::max(root_s + 0.5 * tolerance_s, start_s + 0.5 * tolerance_s);
    if (aim_s < end.time_s) end = {aim_s, level.changes_equations};
  }
  return end;
}

/// By bisection of the polynomial within the step.
double CrossingSearch::first_passage(const Level& level, const double* x) const {
  const int pieces = states_.pieces();
  const auto side_at = [&](double theta) {
    const double value = states_.within(level.part, level.state, x[level.state], theta);
    return side_of(value - level.level);
  };
  int before = level.side;
  for (int piece = 1; piece <= pieces && before != 0; ++piece) {
    double low = static_cast<double>(piece - 1) / pieces,
           high = static_cast<double>(piece) / pieces;
    const int side = piece == pieces ? side_of(x[level.state] - level.level) : side_at(high);
    if (side == 0 || side == before) continue;
    before = side;
    if (!(side > 0 ? level.rising : level.falling)) continue;
    for (int i = 0; i < kBisectionsOfStep; ++i) {
      const double middle = 0.5 * (low + high);
      if (middle <= low || middle >= high) break;
      (side_at(middle) == side ? high : low) = middle;
    }
    return high;
  }
  return kNever;
}

void CrossingSearch::archive(StateArchive& archive) {
  for (Level& level : levels_) {
    archive.values(level.side, level.passed_s);
    archive.expect(is_side(level.side), "the side of a level");
  }
}

void CrossingSearch::accept(double end_s, const double* record) {
  const double* x = nullptr;
  int part = -1;
  for (Level& level : levels_) {
    if (level.part != part) x = state_of(part = level.part, record);
    const int side = side_of(x[level.state] - level.level);
    if (side == 0) continue;
    if (level.side != 0 && side != level.side) level.passed_s = end_s;
    level.side = side;
  }
}

}  // namespace portwave
