// Controls: every check of the differential test can fail. A run is made up from the reference
// itself, which passes, and then spoilt in one way at a time.

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "differential/families.hpp"
#include "differential/judge.hpp"
#include "differential/parts.hpp"

namespace portwave::differential {
namespace {

/// Two masses with a spring between them, one driven.
Network small_network() {
  Network network;
  network.family = "control";
  network.step_s = 0.1;
  network.steps = 40;
  BlockSpec block;
  block.masses = 2;
  block.damper = 0.05;
  block.spring = 3.0;
  block.drives = 1;
  network.parts.push_back(chain_block(block));
  network.parts[0].drives[0] = {Drive::Kind::constant, 0.3, 0.0, 0.0, 0.0, 0.0};
  network.parts[0].start[1] = 0.5;
  block.spring = 0.0;
  block.drives = 0;
  network.parts.push_back(chain_block(block));
  network.joints.push_back({JointKind::connection, {{0, 1}, {1, 0}}, 0.0, {}, {}});
  network.joints.push_back({JointKind::free, {{0, 0}}, 0.0, {}, {}});
  network.joints.push_back({JointKind::resistive, {{1, 1}}, 0.2, {}, {}});
  return network;
}

/// What an engine would hand over that is the reference, rounded to double.
EngineRun perfect_run(const Network& network, const Expectation& expectation) {
  EngineRun run;
  const auto rounded = [](std::vector<LongVector> rows) {
    for (LongVector& row : rows) row = row.cast<double>().cast<long double>().eval();
    return rows;
  };
  run.course = {rounded(expectation.course.x), rounded(expectation.course.e),
                rounded(expectation.course.f)};
  const Account account = account_of(network, run.course);
  long double stored = 0.0L;
  for (const long double h : account.initial) stored += h;
  run.stored.push_back(static_cast<double>(stored));
  for (std::size_t n = 0; n < account.steps.size(); ++n) {
    long double supplied = 0.0L, dissipated = account.end_dissipated[n];
    for (const PartEnergies& part : account.steps[n]) {
      stored += part.change;
      supplied += part.supplied;
      dissipated += part.dissipated;
    }
    run.stored.push_back(static_cast<double>(stored));
    run.supplied.push_back(static_cast<double>(supplied));
    run.dissipated.push_back(static_cast<double>(dissipated));
    run.evaluations.push_back(1);
  }
  run.status = network.active ? "violated" : "holds";
  return run;
}

std::vector<Finding> findings_of(const Network& network,
                                 const std::function<void(EngineRun&)>& spoil) {
  const Expectation expectation = expect(network);
  EngineRun run = perfect_run(network, expectation);
  spoil(run);
  return judge(network, expectation, run, nullptr);
}

bool has(const std::vector<Finding>& findings, Defect defect) {
  for (const Finding& finding : findings) {
    if (finding.defect == defect) return true;
  }
  return false;
}

TEST(DifferentialJudge, AcceptsTheReferenceItselfInEveryFamily) {
  for (const std::string& family : families()) {
    for (std::uint64_t seed = 0; seed < 7; ++seed) {
      const Network network = make_case(family, seed);
      if (network.states() > 150) continue;
      const Expectation expectation = expect(network);
      if (!expectation.well_posed) continue;
      const auto findings = judge(network, expectation, perfect_run(network, expectation), nullptr);
      EXPECT_TRUE(findings.empty()) << family << " " << seed << " " << to_string(findings[0].defect)
                                    << ": " << findings[0].text;
    }
  }
}

TEST(DifferentialJudgeControl, NoticesAPerturbedState) {
  const auto findings =
      findings_of(small_network(), [](EngineRun& run) { run.course.x[20][1] += 1e-6; });
  EXPECT_TRUE(has(findings, Defect::state));
  EXPECT_TRUE(has(findings, Defect::balance));
}

TEST(DifferentialJudgeControl, NoticesAPerturbedPort) {
  const auto of_effort =
      findings_of(small_network(), [](EngineRun& run) { run.course.e[20][1] *= 1.0L + 1e-3L; });
  const auto of_flow =
      findings_of(small_network(), [](EngineRun& run) { run.course.f[20][1] *= 1.0L + 1e-3L; });
  for (const auto& findings : {of_effort, of_flow}) {
    EXPECT_TRUE(has(findings, Defect::port));
    EXPECT_TRUE(has(findings, Defect::balance));
  }
}

TEST(DifferentialJudgeControl, NoticesATrajectoryThatIsNotANumber) {
  EXPECT_TRUE(
      has(findings_of(small_network(), [](EngineRun& run) { run.course.x[5][0] = std::nan(""); }),
          Defect::state));
}

TEST(DifferentialJudgeControl, NoticesEnergyFromNowhere) {
  const auto findings = findings_of(small_network(), [](EngineRun& run) {
    for (std::size_t n = 0; n < run.course.x.size(); ++n) {
      run.course.x[n] *= 1.0L + 1e-3L * static_cast<long double>(n);
    }
  });
  EXPECT_TRUE(has(findings, Defect::created));
}

TEST(DifferentialJudgeControl, NoticesALedgerThatIsOffByAMillionth) {
  for (const auto column : {&EngineRun::supplied, &EngineRun::dissipated}) {
    EXPECT_TRUE(has(
        findings_of(small_network(), [column](EngineRun& run) { (run.*column)[20] *= 1.0 + 1e-6; }),
        Defect::ledger));
  }
  EXPECT_TRUE(
      has(findings_of(small_network(), [](EngineRun& run) { run.stored[20] *= 1.0 + 1e-6; }),
          Defect::ledger));
}

TEST(DifferentialJudgeControl, NoticesFalseVerdictsAndMissedSteps) {
  EXPECT_TRUE(has(findings_of(small_network(), [](EngineRun& run) { run.status = "violated"; }),
                  Defect::verdict));
  EXPECT_TRUE(has(findings_of(small_network(), [](EngineRun& run) { run.status = "conditional"; }),
                  Defect::conditional));
  EXPECT_TRUE(has(findings_of(small_network(), [](EngineRun& run) { run.not_converged = 1; }),
                  Defect::missed));
  EXPECT_TRUE(has(findings_of(small_network(), [](EngineRun& run) { run.refused = "no"; }),
                  Defect::refused));
  EXPECT_TRUE(
      has(findings_of(small_network(), [](EngineRun& run) { run.failed = "no"; }), Defect::failed));
}

TEST(DifferentialJudgeControl, NoticesAGuardThatActs) {
  const Network network = small_network();
  const Expectation expectation = expect(network);
  const EngineRun unguarded = perfect_run(network, expectation);
  EngineRun run = unguarded;
  run.course.x[30][0] += 1e-6;
  EXPECT_TRUE(has(judge(network, expectation, run, &unguarded), Defect::guard));
  EXPECT_FALSE(has(judge(network, expectation, unguarded, &unguarded), Defect::guard));
}

TEST(DifferentialJudgeControl, AsksForActivePartsToBeNoticed) {
  Network network = small_network();
  network.parts[0].R(2, 2) = -0.01;
  network.parts[0].active = network.active = true;
  EXPECT_TRUE(findings_of(network, [](EngineRun&) {}).empty());
  EXPECT_TRUE(
      has(findings_of(network, [](EngineRun& run) { run.status = "holds"; }), Defect::control));
}

/// q' = p, p' = −ω²q: each midpoint step turns (ωq, p) by 2 atan(hω/2).
TEST(DifferentialReference, TurnsAnOscillatorByTheAngleOfTheMidpointRule) {
  Network network;
  network.step_s = 0.3;
  network.steps = 50;
  PartData part = PartData::zero(2, 1, 0);
  part.J << 0.0, 1.0, -1.0, 0.0;
  part.Q.diagonal() << 4.0, 1.0;
  part.G << 0.0, 1.0;
  part.start << 0.5, 0.0;
  network.parts.push_back(part);
  network.joints.push_back({JointKind::free, {{0, 0}}, 0.0, {}, {}});
  const Course course = run_reference(network);
  const long double angle = 2.0L * std::atan(0.3L);
  for (std::size_t n = 0; n < course.x.size(); ++n) {
    EXPECT_NEAR(static_cast<double>(course.x[n][0]),
                static_cast<double>(0.5L * std::cos(angle * static_cast<long double>(n))), 1e-14);
    EXPECT_NEAR(static_cast<double>(course.x[n][1]),
                static_cast<double>(-std::sin(angle * static_cast<long double>(n))), 1e-14);
  }
}

}  // namespace
}  // namespace portwave::differential
