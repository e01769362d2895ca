// Cases that take the way of a user: a scenario file, a run with its recorder, and the files that
// it leaves.

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "differential/families.hpp"
#include "differential/judge.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::differential {
namespace {

/// What trajectory.csv and energy.csv say of a run of the case's scenario file.
EngineRun recorded_run(const Network& network, const testing::TemporaryFolder& folder) {
  testing::write_text(folder / "case.json", scenario_of(network).dump(1));
  EngineRun run;
  {
    const Scenario scenario = load_scenario(folder / "case.json");
    Stepper stepper(scenario.system, scenario.options);
    FileRecorder recorder(folder / "out", scenario.recording);
    recorder.record_initial(stepper);
    for (std::int64_t n = 0; n < scenario.steps; ++n) {
      const StepReport report = stepper.step();
      recorder.record(stepper, report);
      run.evaluations.push_back(report.iterations);
    }
    recorder.finish();
    run.status = to_string(stepper.certificate().status);
    run.not_converged = stepper.iterations().not_converged;
    run.method = stepper.method().reason;
  }
  const testing::CsvTable trajectory = testing::read_csv(folder / "out/trajectory.csv");
  for (std::size_t n = 0; n < trajectory.rows.size(); ++n) {
    LongVector x(network.states()), e(network.ports()), f(network.ports());
    Eigen::Index state = 0, port = 0;
    for (std::size_t i = 0; i < network.parts.size(); ++i) {
      for (int k = 0; k < network.parts[i].states(); ++k) {
        x[state++] = trajectory.rows[n][trajectory.column(fmt::format("s{}.x{}", i, k))];
      }
      for (int j = 0; j < network.parts[i].ports(); ++j, ++port) {
        e[port] = trajectory.rows[n][trajectory.column(fmt::format("s{}.p{}.effort", i, j))];
        f[port] = trajectory.rows[n][trajectory.column(fmt::format("s{}.p{}.flow", i, j))];
      }
    }
    run.course.x.push_back(x);
    run.course.e.push_back(e);
    run.course.f.push_back(f);
  }
  // The first row of energy.csv leaves cells of no meaning empty.
  std::istringstream energy(testing::read_text(folder / "out/energy.csv"));
  std::string line;
  std::getline(energy, line);
  const auto column = [names = line](const std::string& name) {
    std::istringstream in(names);
    std::size_t k = 0;
    for (std::string field; std::getline(in, field, ','); ++k) {
      if (field == name) return k;
    }
    ADD_FAILURE() << "no column " << name;
    return k;
  };
  const std::size_t stored = column("stored_J"), supplied = column("supplied_J"),
                    dissipated = column("dissipated_J");
  for (bool first = true; std::getline(energy, line); first = false) {
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    run.stored.push_back(std::stod(cells[stored]));
    if (first) continue;
    run.supplied.push_back(std::stod(cells[supplied]));
    run.dissipated.push_back(std::stod(cells[dissipated]));
  }
  return run;
}

TEST(DifferentialRecorded, FilesOfARunFollowTheReferenceToo) {
  const testing::TemporaryFolder folder;
  for (const char* family :
       {"trees", "loops", "islands", "descriptors", "units", "from_rest", "kernels"}) {
    for (std::uint64_t seed = 2000; seed < 2007; ++seed) {
      const Network network = make_case(family, seed);
      const Expectation expectation = expect(network);
      if (!expectation.well_posed) continue;
      const EngineRun run = recorded_run(network, folder);
      for (const Finding& finding : judge(network, expectation, run, nullptr)) {
        ADD_FAILURE() << family << " " << seed << " " << to_string(finding.defect) << ": "
                      << finding.text;
      }
      const EngineRun direct = run_engine(network);
      ASSERT_EQ(direct.course.x.size(), run.course.x.size());
      EXPECT_EQ(direct.course.x.back(), run.course.x.back()) << family << " " << seed;
      EXPECT_EQ(direct.course.e.back(), run.course.e.back()) << family << " " << seed;
    }
  }
}

}  // namespace
}  // namespace portwave::differential
