// What a run with FMUs must show to be well: all that is measured, and nothing that no FMU can promise.

#include <string>

#include <gtest/gtest.h>

#include "adapters/fmu_pair.hpp"
#include "portwave/runtime/output/summary.hpp"

namespace portwave::test_strict_fmus {
namespace {

using namespace portwave::testing;

constexpr double kSpring_J = 0.5 * 100.0 * 0.2 * 0.2;  // in the spring of FmuPair at the start

/// 200 steps, and what is said of them.
RunSummary run(const FmuPair& pair, int iterations = 100, double tolerance = 1e-10) {
  FmuFolder folder;
  const StepperOptions o = options(kFmuStep, iterations, tolerance);
  const System system = pair.build(folder);
  Stepper stepper(system, o);
  stepper.step(200);
  return summarize("pair", o, stepper, 1.0);
}

std::string said_of(const RunSummary& summary) {
  std::string out;
  for (const std::string& own : summary.shortcomings()) out += own + "; ";
  return out;
}

TEST(StrictFmus, AreWellWhereAllThatIsMeasuredKeptItsLimits) {
  for (const bool rollback : {true, false}) {
    FmuPair pair;
    pair.rollback = rollback;
    const RunSummary summary = run(pair);
    EXPECT_TRUE(summary.is_all_well()) << said_of(summary);
    EXPECT_EQ(summary.certificate.status, CertificateStatus::conditional);
    EXPECT_TRUE(has(summary_text(summary), "All that is measured kept its limits"));
    ASSERT_EQ(summary.metered_J.size(), 2u);
    EXPECT_LT(summary.metered_J[1],
              -0.5 * kSpring_J);  // from the stretched spring to the damper of the mass
    EXPECT_NEAR(summary.metered_J[0], -summary.metered_J[1], 1e-6);
  }
  // The control: an iteration that ends too early.
  const RunSummary early = run({}, 2, 1e-14);
  EXPECT_FALSE(early.is_all_well());
  EXPECT_FALSE(has(early.shortcomings().front(), "certificate")) << early.shortcomings().front();
}

/// A negative damper behind a port. Without a word on its energy it may be a source; what it gives is told.
TEST(StrictFmus, ThatGiveMoreThanTheyHeldAreActive) {
  for (const bool rollback : {true, false}) {
    FmuPair pair;
    pair.rollback = rollback;
    pair.spring_held_J = 1.001 * kSpring_J;
    EXPECT_TRUE(run(pair).is_all_well()) << said_of(run(pair));
    FmuPair lying = pair;
    lying.d = -0.5;
    const RunSummary summary = run(lying);
    EXPECT_EQ(summary.certificate.status, CertificateStatus::violated);
    EXPECT_EQ(summary.worst_passivity_part, "spring");
    EXPECT_FALSE(summary.is_all_well());
    lying.spring_held_J.reset();
    EXPECT_EQ(run(lying).certificate.status, CertificateStatus::conditional);
    EXPECT_LT(run(lying).metered_J[1], -1.5 * kSpring_J);
    pair.spring_held_J = 0.5 * kSpring_J;
    EXPECT_EQ(run(pair).certificate.status, CertificateStatus::violated);
  }
}

TEST(StrictFmus, ThatNoLongerGoBackEndTheRun) {
  FmuPair pair;
  EXPECT_NO_THROW(run(pair));
  pair.spring_library = "spring_tires";
  const std::string text = failure_of([&] { run(pair); });
  EXPECT_TRUE(has(text, "part \"spring\" failed")) << text;
  EXPECT_TRUE(has(text, "no longer goes back")) << text;
}

/// A spring whose force counts as if it pushed where it pulls.
TEST(StrictFmus, ThatAnswerByGivingEnergyAreNoted) {
  FmuFolder folder;
  for (const bool rollback : {true, false}) {
    FmuPartOptions options = part_options(
        folder.add("x.fmu", FmuRecipe{.version = 2, .library = "spring"}), takes_speed(), {});
    options.rollback = rollback;
    const auto is_noted = [&] {
      for (const std::string& note : make_fmu_part(options).notes) {
        if (has(note, "\"power\": \"out\"")) return true;
      }
      return false;
    };
    EXPECT_FALSE(is_noted());
    options.ports[0].counts_outward = true;
    EXPECT_TRUE(is_noted());
  }
}

}  // namespace
}  // namespace portwave::test_strict_fmus
