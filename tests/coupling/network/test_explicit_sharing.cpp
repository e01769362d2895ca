// Large islands that are stepped without waves share their rows among threads. Results may not depend on who does which
// rows, and when.

#include <algorithm>
#include <ostream>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/coupling/network/taylor.hpp>
#include <portwave/coupling/system/system.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_explicit_sharing {
namespace {

/// The last body first. Notes the longest loop.
class Backwards final : public ForEach {
 public:
  int longest() const { return longest_; }

 private:
  void run(int count, void (*call)(const void*, int), const void* body) const override {
    longest_ = std::max(longest_, count);
    for (int i = count - 1; i >= 0; --i) call(body, i);
  }
  mutable int longest_ = 0;
};

struct Case {
  std::string name;
  System (*system)();
  Splitting method;
  double step_s;
  int fewest_tasks;
};
std::ostream& operator<<(std::ostream& out, const Case& own) { return out << own.name; }

constexpr Splitting kKicks{.kind = SplittingKind::kick_drift};
constexpr Splitting kSeries{.kind = SplittingKind::taylor, .order = 12};

class ExplicitSharing : public ::testing::TestWithParam<Case> {};

template <class Method>
void check(const Case& own) {
  const System system = own.system();
  Method alone(system, 0.0, own.step_s, own.method), shared(system, 0.0, own.step_s, own.method);
  EXPECT_GE(shared.tasks(), own.fewest_tasks);
  const Backwards backwards;
  for (int n = 0; n < 3; ++n) {
    const StepLedger a = alone.step(ForEach()).energy, b = shared.step(backwards).energy;
    EXPECT_EQ(a.stored_J, b.stored_J);
    EXPECT_EQ(a.dissipated_J, b.dissipated_J);
    EXPECT_EQ(a.supplied_J, b.supplied_J);
    EXPECT_EQ(a.tank_J, b.tank_J);
  }
  EXPECT_EQ(alone.remarks(), shared.remarks());
  EXPECT_GE(backwards.longest(), own.fewest_tasks);
  EXPECT_TRUE(std::ranges::equal(alone.state(), shared.state()));
  // Control: another step is noticed.
  shared.step(backwards);
  EXPECT_FALSE(std::ranges::equal(alone.state(), shared.state()));
}

TEST_P(ExplicitSharing, GivesTheSameBits) {
  const Case& own = GetParam();
  if (own.method.kind == SplittingKind::taylor) {
    check<TaylorMethod>(own);
  } else {
    check<KickDriftMethod>(own);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ExplicitSharing,
    ::testing::Values(Case{"grid", [] { return testing::separable_grid(70, 0.05); }, kKicks, .1, 4},
                      Case{"grid_in_disorder",
                           [] { return testing::separable_grid(70, 0.05, 1237); }, kKicks, .1, 4},
                      Case{"driven_grid", [] { return testing::separable_grid(70, 0.05, 1, 100); },
                           kKicks, .1, 4},
                      Case{"grid_beyond_a_cache", [] { return testing::separable_grid(190, 0.05); },
                           kKicks, .1, 30},
                      Case{"grid_in_halved_steps", [] { return testing::separable_grid(70, 0.05); },
                           kKicks, .6, 4},
                      Case{"driven_line", [] { return testing::separable_line(5000, 250); }, kKicks,
                           1e-3, 4},
                      Case{"driven_line_by_series",
                           [] { return testing::separable_line(5000, 250); }, kSeries, 1e-3, 4}),
    [](const auto& own) { return own.param.name; });

}  // namespace
}  // namespace portwave::test_explicit_sharing
