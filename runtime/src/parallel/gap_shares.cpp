#include "parallel/gap_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace portwave {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
/// ln ρ that count: no gap is expected to stand still for ever, nor to vanish at once.
constexpr double kSlowest = -1e-4, kFastest = -25.0;
/// Weights of a new sample in running means.
constexpr double kOfFactor = 0.3, kOfCost = 0.25;
/// A longer evaluation was not spent computing.
constexpr double kMostOfCost = 4.0;
constexpr double kMostEvaluations = 1000.0;
/// Steps after which nothing is known any more of a group without an evaluation.
constexpr int kForgotten = 16;

double expected(double log_factor) { return std::clamp(log_factor, kFastest, kSlowest); }

}  // namespace

GapShares::GapShares(std::vector<double> shares, int threads, std::vector<int> tasks)
    : shares_(std::move(shares)),
      groups_(shares_.size()),
      threads_(std::max(threads, 1)),
      tasks_(std::move(tasks)) {
  tasks_.resize(shares_.size(), 1);
  heap_.reserve(shares_.size());
}

void GapShares::begin(double round_s) {
  for (int i = 0; i < size(); ++i) {
    Group& group = at(i);
    group.evaluations.store(0, kRelaxed);
    group.goes_on.store(true, kRelaxed);
    if (!group.is_measured) group.cost_s.store(share(i) * round_s, kRelaxed);
    const double grown = 1.0 + group.left_out;
    const double factor = std::max(std::exp(expected(group.log_factor.load(kRelaxed))), 1e-3);
    const bool is_known = group.is_known && group.left_out < kForgotten;
    rate(group, is_known ? grown * grown * group.first_J / factor
                         : std::numeric_limits<double>::infinity());
  }
  sort();
}

void GapShares::sort() {
  heap_.clear();
  for (int i = 0; i < size(); ++i) {
    if (goes_on(i)) heap_.push_back(i);
  }
  std::ranges::make_heap(heap_, [this](int a, int b) { return comes_after(a, b); });
}

/// Its gap is `gap_J` now.
void GapShares::rate(Group& group, double gap_J) {
  group.gap_J = gap_J;
  const double falls = -std::expm1(expected(group.log_factor.load(kRelaxed)));
  group.gain.store(gap_J * falls / std::max(group.cost_s.load(kRelaxed), 1e-12), kRelaxed);
}

bool GapShares::comes_after(int one, int other) const {
  return gain(one) != gain(other) ? gain(one) < gain(other) : one > other;
}

int GapShares::take_best() {
  if (heap_.empty()) return -1;
  std::ranges::pop_heap(heap_, [this](int a, int b) { return comes_after(a, b); });
  const int best = heap_.back();
  heap_.pop_back();
  return best;
}

void GapShares::put_back(int group) {
  heap_.push_back(group);
  std::ranges::push_heap(heap_, [this](int a, int b) { return comes_after(a, b); });
}

void GapShares::note(int index, double gap_J, bool goes_on, double took_s) {
  Group& group = at(index);
  if (!std::isfinite(gap_J)) gap_J = 0.0;  // nothing is gained where it has grown beyond all bounds
  const int before_this = group.evaluations.load(kRelaxed);
  group.evaluations.store(before_this + 1, kRelaxed);
  if (before_this == 0) {
    group.is_known = true;
    group.first_J = gap_J;
  } else if (const double before = group.gap_J; before > 0.0 && gap_J > 0.0) {
    const double own = group.log_factor.load(kRelaxed);
    const double fell = std::clamp(std::log(gap_J / before), kFastest, -kFastest);
    group.log_factor.store(own + kOfFactor * (fell - own), kRelaxed);
  }
  group.goes_on.store(goes_on, kRelaxed);
  if (took_s > 0.0) {
    const double usual = group.cost_s.load(kRelaxed);
    const double took = group.is_measured ? std::min(took_s, kMostOfCost * usual) : took_s;
    group.cost_s.store(group.is_measured ? usual + kOfCost * (took - usual) : took, kRelaxed);
    group.is_measured = true;
  }
  rate(group, gap_J);
}

void GapShares::note(int group, std::span<const int> islands,
                     std::span<const IslandOutcome> outcomes, bool goes_on, double took_s) {
  double gap_J = 0.0;
  for (const int island : islands) {
    const IslandOutcome& own = outcomes[static_cast<std::size_t>(island)];
    if (!own.converged) gap_J += own.gap.energy_J;
  }
  note(group, gap_J, goes_on, took_s);
}

void GapShares::end(const StepPlan& plan) {
  int most = 0;
  double rounds = 0.0;
  for (int i = 0; i < size(); ++i) {
    const int own = evaluations(i);
    at(i).left_out = own > 0 ? 0 : at(i).left_out + 1;
    most = std::max(most, own);
    rounds += share(i) * own;
  }
  if (plan.deadline == nullptr) return;
  plan.deadline->took(DeadlineScheduler::Solve::none,
                      (rounds - most) * plan.deadline->iteration_s());
}

bool GapShares::gains_most(int index) const {
  const double own = gain(index);
  for (int other = 0; other < size(); ++other) {
    if (other != index && goes_on(other) && gain(other) >= own) return false;
  }
  return own > 0.0;
}

bool GapShares::leaves_to_others(int index, double left_s) const {
  const double own = gain(index);
  if (!(own > 0.0)) return false;  // its gap is none: nothing is known of those of others
  const double all_s = threads_ * left_s;
  double used_s = 0.0;
  for (int other = 0; other < size() && used_s < all_s; ++other) {
    if (other == index || !goes_on(other)) continue;
    if (evaluations(other) == 0) {  // what it will need shows then
      used_s += cost_s(other);
      continue;
    }
    const double larger = gain(other) / own;
    if (!(larger > 1.0)) continue;
    const double needed = std::log(larger) / -expected(at(other).log_factor.load(kRelaxed));
    const double most_s = std::min(threads_, tasks_[static_cast<std::size_t>(other)]) * left_s;
    used_s += std::min(std::clamp(needed, 1.0, kMostEvaluations) * cost_s(other), most_s);
  }
  return used_s >= all_s;
}

std::vector<double> shares_of(std::vector<double> costs) {
  constexpr double kLeast = 1e-3;  // a part may declare that it costs nothing
  double sum = 0.0;
  for (double& cost : costs) sum += cost = std::max(cost, kLeast);
  for (double& cost : costs) cost /= sum;
  return costs;
}

std::vector<double> shares_of_groups(const Partition& partition, int groups) {
  std::vector<double> costs(static_cast<std::size_t>(groups), 0.0);
  for (const Partition::Task& task : partition.tasks) {
    costs[static_cast<std::size_t>(task.island_group)] += task.cost_ns;
  }
  return shares_of(std::move(costs));
}

}  // namespace portwave
