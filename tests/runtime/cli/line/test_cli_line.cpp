// The command line itself: help, and what is refused.
#ifdef PORTWAVE_CLI

#include <gtest/gtest.h>

#include "support/files/cli_process.hpp"

namespace portwave::test_cli_line {
namespace {

using testing::contains;
using testing::kPair;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::Words;

TEST(CliLine, HelpAndVersionAreData) {
  for (const Words& line :
       {Words{"--help"}, Words{"run", "--help"}, Words{"study", "--help"},
        Words{"study", "budget", "--help"}, Words{"study", "scaling", "--help"},
        Words{"study", "rate", "--help"}, Words{"study", "order", "--help"},
        Words{"study", "tolerance", "--help"}, Words{"study", "iteration", "--help"},
        Words{"tune", "--help"}, Words{"list", "-h"}, Words{"generate", "--help"},
        Words{"generate", "grid", "--help"}}) {
    const ProcessResult result = portwave_cli(line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(contains(result.out, "Usage")) << said(result);
    EXPECT_EQ(result.err, "");
  }
  const ProcessResult help = portwave_cli({"--help"});
  for (const char* verb :
       {"run", "validate", "list", "schema", "tune", "study", "generate", "Examples:"}) {
    EXPECT_TRUE(contains(help.out, verb)) << verb;
  }
  const ProcessResult version = portwave_cli({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("portwave 0.") || version.out.starts_with("portwave 1."))
      << said(version);
}

TEST(CliLine, RefusesWhatItDoesNotKnow) {
  struct Case {
    Words line;
    const char* says;
  };
  for (const Case& bad : {
           Case{{}, "Usage"},
           Case{{"rnu", kPair}, "Did you mean \"run\"?"},
           Case{{"validat", kPair}, "Did you mean \"validate\"?"},
           Case{{"--quiet", "lst"}, "Did you mean \"list\"?"},
           Case{{"xyzzy"},
                "Commands: run, report, validate, check, list, tune, schema, study, generate, "
                "import, fmu"},
           Case{{"study"},
                "\"portwave study\" needs one of: budget, rate, delay, order, tolerance"},
           Case{{"study", "budgte", kPair}, "Did you mean \"budget\"?"},
           Case{{"study", "budgte", kPair}, "See \"portwave study --help\"."},
           Case{{"run"}, "SCENARIO is required: a scenario file (JSON)"},
           Case{{"run", kPair, "--thread", "2"}, "Did you mean \"--threads\"?"},
           Case{{"run", kPair, "--jsno"}, "Did you mean \"--json\"?"},
           Case{{"run", kPair, "another.json"}, "unexpected argument \"another.json\""},
           Case{{"run", kPair, "--threads", "0"}, "--threads"},
           Case{{"run", kPair, "--threads", "two"}, "--threads"},
           Case{{"run", kPair, "--threads", "100000"}, "--threads"},
           Case{{"run", kPair, "--threads"}, "portwave: --threads: needs a value\n"},
           Case{{"run", kPair, "--threads", "1", "--threads", "2"},
                "portwave: --threads: is given more than once\n"},
           Case{{"run", kPair, "--steps", "-1"}, "--steps"},
           Case{{"run", kPair, "--steps", "1.5"}, "--steps"},
           Case{{"run", kPair, "--threads", "0x2"}, "must be an integer"},
           Case{{"run", kPair, "--threads", " 2"}, "must be an integer"},
           Case{{"run", kPair, "--threads", "two"}, "must be an integer"},
           Case{{"run", kPair, "--threads", "99999999999999999999"}, "not in 1 to 1024"},
           Case{{"run", kPair, "--steps", "0"}, "not in 1 to"},
           Case{{"run", kPair, "--steps", "1e3"}, "must be an integer"},
           Case{{"study", "budget", kPair, "--steps", "0"}, "not in 1 to"},
           Case{{"run", kPair, "--certify", "ful"}, "--certify"},
           Case{{"run", kPair, "--certify", "FULL"},
                "not one of none, energy, full. Did you mean \"full\"?"},
           Case{{"run", kPair, "--grain", "0"}, "neither auto, part nor an integer from 1"},
           Case{{"run", kPair, "--grain", "parts"}, "neither auto, part nor an integer from 1"},
           Case{{"run", kPair, "--grain", ""}, "--grain"},
           Case{{"run", kPair, "--executor", "asyn"}, "Did you mean \"async\"?"},
           Case{{"run", kPair, "--executor", ""}, "not one of auto, serial, async, graph"},
           Case{{"run", kPair, "--deadline-us", "0"}, "not in 0.001 to"},
           Case{{"run", kPair, "--deadline-us", "-3"}, "not in 0.001 to"},
           Case{{"run", kPair, "--deadline-us", "nan"}, "must be a number"},
           Case{{"run", kPair, "--deadline-us", "inf"}, "--deadline-us"},
           Case{{"run", kPair, "--deadline-us", "1e999"}, "--deadline-us"},
           Case{{"run", kPair, "--deadline-us", "200us"}, "must be a number"},
           Case{{"run", kPair, "--deadline", "200"}, "Did you mean \"--deadline-us\"?"},
           Case{{"run", kPair, "--pace", "0"}, "not in 1e-06 to"},
           Case{{"run", kPair, "--pace", "real"}, "must be a number"},
           Case{{"study", "scalin", kPair}, "Did you mean \"scaling\"?"},
           Case{{"study", "scaling", kPair, "--threads", "1,0"}, "not in 1 to 1024"},
           Case{{"study", "scaling", kPair, "--threads", "1,,2"}, "empty entry"},
           Case{{"study", "scaling", kPair, "--repetitions", "0"}, "--repetitions"},
           Case{{"study", "scaling", kPair, "--steps", "0"}, "--steps"},
           Case{{"study", "scaling", "--generate", "rng", "--sizes", "3"},
                "Did you mean \"ring\"?"},
           Case{{"list", ""}, "no type of part \"\""},
           Case{{"run", kPair, "--out", ""}, "--out"},
           Case{{"run", kPair, "--set", "method/iterations=3"}, "/json/pointer=value"},
           Case{{"run", kPair, "--set", "/method/iterations"}, "/json/pointer=value"},
           Case{{"study", "budget", kPair, "--budgets", "3,x"}, "--budgets"},
           Case{{"study", "budget", kPair, "--budgets", "3,x"}, "must be an integer"},
           Case{{"study", "budget", kPair, "--budgets", "3,-1"}, "--budgets"},
           Case{{"study", "budget", kPair, "--budgets", "0,"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", ",0"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", "0,,3"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", "3 8"}, "--budgets"},
           Case{{"generate"}, "needs one of: chain, ring, grid, star, imbalanced."},
           Case{{"generate", "gird"}, "Did you mean \"grid\"?"},
           Case{{"generate", "xyzzy"}, "Commands: chain, ring, grid, star, imbalanced"},
           Case{{"generate", "grid", "--row", "3"}, "Did you mean \"--rows\"?"},
           Case{{"generate", "chain", "--out", ""}, "--out"},
           Case{{"schema", "extra"}, "unexpected argument \"extra\""},
       }) {
    const ProcessResult result = portwave_cli(bad.line);
    EXPECT_EQ(result.exit_code, 2) << bad.says << "\n" << said(result);
    EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
    EXPECT_EQ(result.out, "") << bad.says;
  }
}

TEST(CliLine, TellsEverythingWrongAtOnce) {
  const ProcessResult result = portwave_cli(
      {"run", kPair, "--threads", "0", "--grain", "coarse", "--executor", "wave", "--deadline-us",
       "soon", "--pace", "-1", "--certify", "al", "--steps", "1.5", "--set", "name=x"});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  for (const char* option : {"--threads: ", "--grain: ", "--executor: ", "--deadline-us: ",
                             "--pace: ", "--certify: ", "--steps: ", "--set: "}) {
    EXPECT_TRUE(contains(result.err, std::string("portwave: ") + option)) << said(result);
  }
  const ProcessResult missing = portwave_cli({"run", "--threads", "0"});
  EXPECT_EQ(missing.exit_code, 2);
  for (const char* says : {"SCENARIO is required", "--threads: 0 is not in 1 to 1024"}) {
    EXPECT_TRUE(contains(missing.err, says)) << said(missing);
  }
}

TEST(CliLine, HelpSaysWhatTheClockChanges) {
  const ProcessResult help = portwave_cli({"run", "--help"});
  for (const char* says : {"--grain", "--executor", "--deadline-us", "--pace", "none|energy|full",
                           "auto|serial|async|graph", "depend on"}) {
    EXPECT_TRUE(contains(help.out, says)) << says << "\n" << said(help);
  }
}

}  // namespace
}  // namespace portwave::test_cli_line

#endif
