// Bad scenarios as users meet them: the program's exit code, what it says and what it leaves.
#ifdef PORTWAVE_CLI

#include <string_view>

#include <gtest/gtest.h>

#include "support/files/subprocess.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_scenario_process {
namespace {

using testing::base_scenario;
using testing::base_text;
using testing::edited;
using testing::ProcessResult;
using testing::scenario_defects;
using testing::ScenarioDefect;
using testing::TemporaryFolder;
using testing::write_text;

/// A scenario file in a folder of its own, beside which "out" may appear.
class Trial {
 public:
  explicit Trial(const std::string& text) { write_text(file(), text); }

  std::string file() const { return (folder_ / "scenario.json").string(); }
  ProcessResult validate() const {
    return testing::run_process({PORTWAVE_CLI, "validate", file()});
  }
  ProcessResult run() const {
    return testing::run_process(
        {PORTWAVE_CLI, "run", file(), "--steps", "1", "--out", (folder_ / "out").string()});
  }
  bool left_something() const { return testing::names_in(folder_.path()).size() > 1; }

 private:
  TemporaryFolder folder_;
};

// Each line of `text` must be in `err`, the first behind its place.
void expect_says(const std::string& err, const std::string& where, std::string_view text) {
  std::string before = where.empty() ? ": " : " " + where + ": ";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string wanted = before + std::string(line);
    EXPECT_NE(err.find(wanted), std::string::npos) << wanted << "\nin: " << err;
    text.remove_prefix(std::min(end + 1, text.size()));
    before = "  ";
  }
}

void expect_refused(const Trial& trial, const Issues& errors) {
  for (const ProcessResult& result : {trial.validate(), trial.run()}) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    for (const Issue& error : errors) expect_says(result.err, error.where, error.what);
    const std::string count =
        std::to_string(errors.size()) + (errors.size() == 1 ? " error;" : " errors;");
    EXPECT_NE(result.err.find(count), std::string::npos) << result.err;
  }
  EXPECT_FALSE(trial.left_something());
}

TEST(ScenarioProcess, EveryDefectIsRefusedWithItsMessage) {
  for (const ScenarioDefect& defect : scenario_defects()) {
    SCOPED_TRACE(defect.name);
    expect_refused(Trial(edited(base_scenario(), defect.edits).dump()), defect.errors);
  }
}

TEST(ScenarioProcess, FilesThatAreTooLongOrTooShort) {
  const Trial large("{}");
  std::filesystem::resize_file(large.file(), (std::uintmax_t{64} << 20) + 1);  // a hole, no disk
  expect_refused(large, {{"", "is larger than 64 MiB"}});
  const std::string cut = base_text().substr(0, base_text().find("\"sines\""));
  expect_refused(Trial(cut), {{"",
                               "line 14, column 81: the file ends too early inside "
                               "/subsystems/1/inputs/force"}});
}

TEST(ScenarioProcessControl, TheBaseRuns) {
  const Trial trial(base_text());
  EXPECT_EQ(trial.validate().exit_code, 0);
  EXPECT_FALSE(trial.left_something());
  const ProcessResult result = trial.run();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(trial.left_something());
}

}  // namespace
}  // namespace portwave::test_scenario_process

#endif  // PORTWAVE_CLI
