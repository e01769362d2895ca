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
    if (watch.signal >= 0) continue;
    if (watch.of.kind != Sensor::Kind::state) {
      if (!states.knows_quantities()) continue;
      QuantityLevel& own = others_.emplace_back();
      own.of = watch.of;
      own.level = {
          -1, -1, watch.level, watch.wants(true), watch.wants(false), watch.changes_equations};
      continue;
    }
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
  for (QuantityLevel& own : others_) {
    own.side_at_end = side_of(states_.quantity(own.of, 1.0) - own.level.level);
  }
  if (step_s <= tolerance_s) return end;
  const auto take = [&](const Level& level, double theta) {
    if (!(theta <= 1.0)) return;
    const double root_s = start_s + theta * step_s;
    if (start_s + step_s - root_s <= tolerance_s) return;
    if (root_s - level.passed_s < kChatter * usual_s) return;
    const double aim_s = std::max(root_s + 0.5 * tolerance_s, start_s + 0.5 * tolerance_s);
    if (aim_s < end.time_s) end = {aim_s, level.changes_equations};
  };
  const double* x = nullptr;
  int part = -1;
  for (const Level& level : levels_) {
    if (level.part != part) x = state_of(part = level.part, next);
    take(level, first_passage(level, x));
  }
  for (QuantityLevel& own : others_) take(own.level, first_passage(own));
  return end;
}

/// Ports may jump between two steps: the side before is that at the start of the step.
double CrossingSearch::first_passage(QuantityLevel& own) const {
  const auto side_at = [&](double theta) {
    return side_of(states_.quantity(own.of, theta) - own.level.level);
  };
  const int at_start = side_at(0.0);
  return first_passage(own.level, at_start != 0 ? at_start : own.level.side, side_at);
}

double CrossingSearch::first_passage(const Level& level, const double* x) const {
  return first_passage(level, level.side, [&](double theta) {
    const double value = theta < 1.0
                             ? states_.within(level.part, level.state, x[level.state], theta)
                             : x[level.state];
    return side_of(value - level.level);
  });
}

/// By bisection of the polynomial within the step.
template <class SideAt>
double CrossingSearch::first_passage(const Level& level, int before, const SideAt& side_at) const {
  const int pieces = states_.pieces();
  for (int piece = 1; piece <= pieces && before != 0; ++piece) {
    double low = static_cast<double>(piece - 1) / pieces,
           high = static_cast<double>(piece) / pieces;
    const int side = side_at(high);
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
  for (QuantityLevel& own : others_) {
    archive.values(own.level.side, own.level.passed_s);
    archive.expect(is_side(own.level.side), "the side of a level");
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
  for (QuantityLevel& own : others_) {
    if (own.side_at_end == 0) continue;
    if (own.level.side != 0 && own.side_at_end != own.level.side) own.level.passed_s = end_s;
    own.level.side = own.side_at_end;
  }
}

}  // namespace portwave
