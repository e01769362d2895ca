// portwave generate
#ifdef PORTWAVE_CLI

#include <gtest/gtest.h>

#include <portwave/runtime/generate/generate.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_generate {
namespace {

using testing::contains;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const std::vector<Words>& all_kinds() {
  static const std::vector<Words> lines = {
      {"generate", "chain", "--blocks", "3"},
      {"generate", "chain", "--blocks", "3", "--masses", "2", "--vary", "0.2", "--seed", "7"},
      {"generate", "ring", "--blocks", "3"},
      {"generate", "grid", "--rows", "2", "--columns", "3"},
      {"generate", "star", "--limbs", "3"},
      {"generate", "imbalanced", "--parts", "3", "--factor", "10"},
  };
  return lines;
}

TEST(CliGenerate, WritesScenariosThatRun) {
  for (const Words& line : all_kinds()) {
    const TemporaryFolder folder;
    const std::string file = (folder / "network.json").string();
    const ProcessResult generated = portwave_cli(line + Words{"--out", file});
    ASSERT_EQ(generated.exit_code, 0) << said(generated);
    EXPECT_EQ(generated.out, "");
    EXPECT_TRUE(contains(generated.err, file)) << said(generated);
    EXPECT_EQ(names_in(folder.path()), Words{"network.json"});
    const ProcessResult valid = portwave_cli({"validate", file});
    EXPECT_EQ(valid.exit_code, 0) << said(valid);
    const ProcessResult run = portwave_cli({"run", file, "--steps", "5", "--certify", "full"});
    EXPECT_EQ(run.exit_code, 0) << said(run);
    EXPECT_TRUE(contains(run.err, "holds")) << said(run);

    const ProcessResult again = portwave_cli(line);
    EXPECT_EQ(again.exit_code, 0) << said(again);
    EXPECT_EQ(again.err, "");
    EXPECT_EQ(again.out, read_text(file));
  }
}

TEST(CliGenerate, PassesItsOptionsOn) {
  const ProcessResult result = portwave_cli(
      {"generate", "chain", "--blocks", "4", "--masses", "2", "--vary", "0.1", "--seed", "9",
       "--step", "0.002", "--duration", "3", "--iterations", "5", "--impedance", "0.25"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.out,
            generate_scenario(
                network::Chain{.blocks = 4, .masses = 2, .vary = 0.1, .seed = 9},
                {.step_s = 0.002, .duration_s = 3.0, .iterations = 5, .impedance_Ns_per_m = 0.25}));
}

TEST(CliGenerate, TellsEverythingThatIsWrongAtOnce) {
  const TemporaryFolder folder;
  const ProcessResult result = portwave_cli(
      {"generate", "chain", "--blocks", "many", "--masses", "0", "--vary", "1.5", "--seed", "-1",
       "--step", "0x1", "--iterations", "2.5", "--out", (folder / "chain.json").string()});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_EQ(result.out, "");
  for (const char* word :
       {"--blocks: must be an integer, got \"many\"", "--masses: must be an integer from 1",
        "--vary: must be a number >= 0 and < 1", "--seed: must be an integer, got \"-1\"",
        "--step: must be a number, got \"0x1\"", "--iterations: must be an integer, got \"2.5\""}) {
    EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
  }
  EXPECT_EQ(names_in(folder.path()), Words{});
}

TEST(CliGenerate, TellsWhatIsMissing) {
  struct Case {
    Words line;
    std::string says;
  };
  for (const Case& bad : {
           Case{{"chain"}, "--blocks: is required"},
           Case{{"ring"}, "--blocks: is required"},
           Case{{"grid"}, "--rows: is required\n--columns: is required"},
           Case{{"star"}, "--limbs: is required"},
           Case{{"imbalanced"}, "--parts: is required"},
           Case{{"grid", "--rows", "99999999999", "--columns", "1"},
                "--rows: must be an integer within range"},
           Case{{"chain", "--blocks", "400000"}, "larger than 64 MiB"},
           Case{{"chain", "--blocks", "2", "--blocks", "3"}, "--blocks"},
           Case{{"chain", "--blocks", "2", "--rows", "3"}, "unknown option \"--rows\""},
       }) {
    const ProcessResult result = portwave_cli(Words{"generate"} + bad.line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliGenerate, FileThatCannotBeWrittenIsExitCodeThree) {
  const TemporaryFolder folder;
  const std::string file = (folder / "missing" / "chain.json").string();
  const ProcessResult result = portwave_cli({"generate", "chain", "--blocks", "2", "--out", file});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, file)) << said(result);
}

}  // namespace
}  // namespace portwave::test_cli_generate

#endif
