#include <algorithm>
#include <array>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/files/temporary_folder.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_scenario_errors {
namespace {

using testing::base_scenario;
using testing::base_text;
using testing::edited;
using testing::issues_of;
using testing::Json;
using testing::lines_of;
using testing::parse;
using testing::replaced;
using testing::report_of;
using testing::scenario_defects;
using testing::ScenarioDefect;
using testing::TemporaryFolder;
using testing::write_text;

using Lines = std::vector<std::string>;

Lines sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(ScenarioErrors, EveryDefectIsNamedWithItsPlace) {
  for (const ScenarioDefect& defect : scenario_defects()) {
    const Json scenario = edited(base_scenario(), defect.edits);
    EXPECT_EQ(lines_of(issues_of(scenario.dump())), lines_of(defect.errors)) << defect.name;
  }
}

TEST(ScenarioErrorsControl, TheBaseHasNoDefect) {
  EXPECT_EQ(lines_of(issues_of(base_text())), Lines{});
  EXPECT_GT(scenario_defects().size(), 100U);
}

// A defect in every section that the case at hand leaves alone.
std::pair<Json, Lines> defects_elsewhere(const Json& edits) {
  struct Elsewhere {
    std::string pointer;
    Json value;
    std::string error;
  };
  const std::vector<Elsewhere> all = {
      {"/time/step_s", 0, "must be a number > 0, got 0"},
      {"/subsystems/0/inputs/force/value", "x", "must be a number, got the string \"x\""},
      {"/couplings/2/note", 1, "unknown key \"note\".\nkeys: \"kind\", \"ports\", \"for\"."},
      {"/method/relaxation", 2, "must be a number > 0 and < 2, got 2"},
      {"/outputs/every", 0, "must be an integer from 1 to 2147483647, got 0"}};
  const auto section = [](const std::string& pointer) {
    return pointer.substr(0, pointer.find('/', 1));
  };
  Json more = Json::array();
  Lines errors;
  for (const Elsewhere& each : all) {
    const bool is_taken = std::any_of(edits.begin(), edits.end(), [&](const Json& edit) {
      return section(edit[0].get<std::string>()) == section(each.pointer);
    });
    if (is_taken) continue;
    more.push_back({each.pointer, each.value});
    errors.push_back(each.pointer + ": " + each.error);
  }
  return {more, errors};
}

TEST(ScenarioErrors, NoDefectHidesAnother) {
  for (const ScenarioDefect& defect : scenario_defects()) {
    const auto [more, errors] = defects_elsewhere(defect.edits);
    Json edits = more;
    edits.insert(edits.end(), defect.edits.begin(), defect.edits.end());
    Lines expected = lines_of(defect.errors);
    expected.insert(expected.end(), errors.begin(), errors.end());
    const Json scenario = edited(base_scenario(), edits);
    EXPECT_EQ(sorted(lines_of(issues_of(scenario.dump()))), sorted(expected)) << defect.name;
  }
}

TEST(ScenarioErrors, ComeInTheOrderOfTheFile) {
  const Json scenario = edited(base_scenario(), Json::parse(R"([
    ["/outputs/every", 0], ["/outputs/observe/1", "B.q9"], ["/time/step_s", 0],
    ["/couplings/1/resistance", -1], ["/subsystems/2/parameters/J/0/1", 5],
    ["/subsystems/0/parameters/mass_kg", 0], ["/method/iterations", -1], ["/name"]])"));
  Lines places;
  for (const Issue& issue : issues_of(scenario.dump())) places.push_back(issue.where);
  EXPECT_EQ(places, (Lines{"/name", "/time/step_s", "/subsystems/0/parameters/mass_kg",
                           "/subsystems/2/parameters/J", "/couplings/1/resistance",
                           "/method/iterations", "/outputs/observe/1", "/outputs/every"}));
}

struct BadText {
  std::string name;
  std::string text;
  Lines errors;
};

std::vector<BadText> bad_texts() {
  const std::string& base = base_text();
  const std::string zero_byte = replaced(base, "base", std::string("ba\0se", 5));
  return {
      {"Empty", "", {": the file is empty"}},
      {"Blank", " \n\t\r\n", {": the file is empty"}},
      {"OnlyAByteOrderMark", "\xEF\xBB\xBF", {": the file is empty"}},
      {"CutInAnObject",
       base.substr(0, base.find("\"sines\"")),
       {": line 14, column 81: the file ends too early inside /subsystems/1/inputs/force"}},
      {"CutInAString", "{\"name\": \"ba", {": line 1, column 13: the file ends too early"}},
      {"CutAfterTheBrace", "{\n\n", {": line 1, column 2: the file ends too early"}},
      {"CommaTooMany",
       replaced(base, "\"end_s\": 1.0}", "\"end_s\": 1.0,}"),
       {": line 4, column 41: this is not JSON: unexpected '}'; expected string literal, at '},'\n"
        "The comma before it is one too many."}},
      {"CommaTwice",
       "{\"name\": \"a\",,\n\"description\": \"b\"}",
       {": line 1, column 14: this is not JSON: unexpected ','; expected string literal, at ','\n"
        "There is one comma too many."}},
      {"CommaMissing",
       replaced(base, "\"step_s\": 0.01,", "\"step_s\": 0.01"),
       {": line 4, column 27: this is not JSON: unexpected string literal; expected '}', at "
        "'\"end_s\": 1.0},'\nIs there a comma missing before it?"}},
      {"Comment",
       "{\n// units: SI\n}",
       {": line 2, column 1: this is not JSON: invalid literal; expected string literal, at "
        "'// units: SI'\nJSON has no comments."}},
      {"SingleQuotes",
       "{\"name\": 'base'}",
       {": line 1, column 10: this is not JSON: invalid literal, at ''base'}'\nJSON quotes text "
        "with \"."}},
      {"TwoDocuments",
       "{}\n{}",
       {": line 2, column 1: this is not JSON: unexpected '{'; expected end of input, at '{}'"}},
      {"ControlCharacter",
       "{\"a\tb\": 1}",
       {": line 1, column 4: this is not JSON: invalid string: control character U+0009 (HT) must "
        "be escaped to \\u0009 or \\t; expected string literal, at '\\tb\": 1}'"}},
      {"ZeroByte", zero_byte, {": line 2, column 14: a zero byte; this is not a text file"}},
      {"NotUtf8",
       replaced(base, "base", "ba\xFFse"),
       {": line 2, column 14: byte 0xff is not UTF-8"}},
      {"HalfACharacter",
       replaced(base, "one of each", "gr\xC3\xB6\xC3"),
       {": line 3, column 22: byte 0xc3 is not UTF-8"}},
      {"Utf16", std::string("\xFF\xFE{\0}\0", 6), {": line 1, column 1: byte 0xff is not UTF-8"}},
      {"AnArray", "[]", {": must be an object, got an array of 0"}},
      {"ANumber", "3", {": must be an object, got 3"}},
      {"NestedTooDeep",
       std::string(65, '[') + std::string(65, ']'),
       {": line 1, column 66: nested deeper than 64 levels"}},
  };
}

TEST(ScenarioErrors, TextThatIsNoJsonIsPlacedByLineAndColumn) {
  for (const BadText& bad : bad_texts()) {
    EXPECT_EQ(lines_of(issues_of(bad.text)), bad.errors) << bad.name;
  }
}

TEST(ScenarioErrorsControl, NestingToTheLimitIsRead) {
  const std::string nested = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(lines_of(issues_of(nested)), Lines{": must be an object, got an array of 1"});
}

TEST(ScenarioErrors, NestingCannotExhaustTheStack) {
  const std::string nested(1'000'000, '[');
  EXPECT_EQ(issues_of(nested).size(), 1U);
}

TEST(ScenarioErrors, NumbersThatAreNotFiniteAreAllReportedAtOnce) {
  std::string text = replaced(base_text(), "\"mass_kg\": 8", "\"mass_kg\": NaN");
  text = replaced(text, "\"mass_kg\": 4", "\"mass_kg\": -Infinity");
  text = replaced(text, "[[0, -0.2]", "[[0, -1e999]");
  text = replaced(text, "\"step_s\": 0.01", "\"step_s\": nan");
  text = replaced(text, "\"iterations\": 20", "\"iterations\": -1");
  EXPECT_EQ(lines_of(issues_of(text)),
            (Lines{"/time/step_s: must be a finite number, got nan",
                   "/subsystems/0/parameters/mass_kg: must be a finite number, got NaN",
                   "/subsystems/1/parameters/mass_kg: must be a finite number, got -Infinity",
                   "/subsystems/2/parameters/J/0/1: the number -1e999 is too large",
                   "/method/iterations: must be an integer from 0 to 1000000, got -1"}));
}

TEST(ScenarioErrors, ANumberIsJudgedAlikeInTheFileAndOnTheCommandLine) {
  for (const std::string& number :
       Lines{"NaN", "-inf", "Infinity", "1e999", "-1e999", "1" + std::string(400, '0')}) {
    const std::string text = replaced(base_text(), "\"tolerance\": 0", "\"tolerance\": " + number);
    const Lines in_file = lines_of(issues_of(text));
    ASSERT_EQ(in_file.size(), 1U) << number;
    EXPECT_TRUE(in_file.front().starts_with("/method/tolerance: ")) << in_file.front();
    EXPECT_EQ(in_file, lines_of(issues_of(base_text(), {{"/method/tolerance", number}}))) << number;
  }
  // Control: too small for a double is no defect, and a word is not a number.
  for (const std::string& number : Lines{"1e-999", "0." + std::string(400, '0') + "1", "0e999",
                                         "1" + std::string(400, '0') + "e-400"}) {
    EXPECT_EQ(lines_of(issues_of(base_text(), {{"/method/tolerance", number}})), Lines{}) << number;
  }
  EXPECT_EQ(parse(base_text(), {{"/name", "nano"}}).name, "nano");
}

TEST(ScenarioErrors, BadNumbersAreAllFoundHoweverMany) {
  Json scenario = base_scenario();
  for (int i = 0; i < 300; ++i) scenario["time"].push_back({"key_" + std::to_string(i), "#"});
  std::string text = scenario.dump();
  for (std::size_t at = text.find("\"#\""); at != std::string::npos; at = text.find("\"#\"")) {
    text.replace(at, 3, "NaN");
  }
  int numbers = 0;
  for (const Issue& issue : issues_of(text)) {
    numbers += issue.what == "must be a finite number, got NaN" ? 1 : 0;
  }
  EXPECT_EQ(numbers, 300);

  std::string many = "{\"name\": [NaN";
  for (int i = 0; i < 200'000; ++i) many += ", NaN";
  const Issues issues = issues_of(many + "]}");  // in one pass: with one each this takes minutes
  ASSERT_EQ(issues.size(), 1001U);
  EXPECT_EQ(issues.front().what, "there are more errors than can be listed");
}

TEST(ScenarioErrors, BadNumbersInTextAndKeysAreLeftAlone) {
  EXPECT_EQ(parse(replaced(base_text(), "\"base\"", R"("\\\"NaN, 1e999")")).name, "\\\"NaN, 1e999");
  EXPECT_EQ(
      lines_of(issues_of("{NaN: 1}")),
      Lines{": line 1, column 2: this is not JSON: invalid literal; expected string literal, at "
            "'NaN: 1}'"});
}

TEST(ScenarioErrors, DuplicateKeysNameBothLines) {
  std::string text = replaced(base_text(), "\"mass_kg\": 8,", "\"mass_kg\": 8,\n\"mass_kg\": 9,");
  text = replaced(text, "\"time\": {", "\"time\": {\"end_s\": 2.0, ");
  EXPECT_EQ(lines_of(issues_of(text)),
            (Lines{"/time/end_s: duplicate key \"end_s\": first on line 4, again on line 4",
                   "/subsystems/0/parameters/mass_kg: duplicate key \"mass_kg\": first on line 7, "
                   "again on line 8"}));
}

TEST(ScenarioErrors, DuplicateKeysAreFoundInLargeObjects) {
  std::string keys;
  for (int i = 0; i < 40; ++i) keys += "\n\"k" + std::to_string(i) + "\": 1,";
  for (const int again : {0, 15, 16, 17, 39}) {
    const std::string key = "\"k" + std::to_string(again) + "\"";
    const Lines lines = lines_of(issues_of("{" + keys + key + ": [2, {\"k\": 1}], \"last\": 1}"));
    const std::string expected = "/k" + std::to_string(again) + ": duplicate key " + key +
                                 ": first on line " + std::to_string(again + 2) +
                                 ", again on line 41";
    EXPECT_EQ(std::count(lines.begin(), lines.end(), expected), 1) << expected;
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const std::string& line) {
                              return line.find("duplicate") != std::string::npos;
                            }),
              1);
  }
}

TEST(ScenarioErrorsControl, EqualKeysInDifferentObjectsAreNoDuplicates) {
  EXPECT_EQ(lines_of(issues_of(R"({"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, {"x": 1}]})"))
                .front()
                .find("duplicate"),
            std::string::npos);
}

TEST(ScenarioErrors, APartThatCannotBeBuiltIsTheOnlyOneBlamed) {
  const Json scenario = edited(base_scenario(), Json::parse(R"([
    ["/subsystems/0/parameters/mass_kg", -1],
    ["/method/initial_waves", {"A.coupling": 1, "A.shaft": 1}],
    ["/outputs/observe", ["A.anything", "A.coupling.effort"]]])"));
  EXPECT_EQ(lines_of(issues_of(scenario.dump())),
            Lines{"/subsystems/0/parameters/mass_kg: must be > 0 kg, got -1"});
}

TEST(ScenarioErrors, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  const auto error_of = [](const std::filesystem::path& file) -> std::string {
    try {
      load_scenario(file);
    } catch (const ScenarioError& error) {
      EXPECT_EQ(error.file(), file.string());
      return error.report();
    }
    return "no error";
  };
  const std::string missing = (folder / "missing.json").string();
  EXPECT_EQ(error_of(missing), missing +
                                   ": cannot be opened: No such file or directory.\n"
                                   "1 error; nothing was run.\n");
  EXPECT_EQ(error_of(folder.path()), folder.path().string() +
                                         ": is a folder, not a file.\n"
                                         "1 error; nothing was run.\n");
  const std::string large = (folder / "large.json").string();
  write_text(large, "{}");
  std::filesystem::resize_file(large, (std::uintmax_t{64} << 20) + 1);
  EXPECT_EQ(error_of(large), large + ": is larger than 64 MiB.\n1 error; nothing was run.\n");
}

TEST(ScenarioErrors, APipeByNameIsRefused) {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {pipe, "is a pipe, not a file"}, {"/dev/zero", "is a device, not a file"}};
  for (const auto& [file, problem] : cases) {
    EXPECT_THROW(
        {
          try {
            load_scenario(file);
          } catch (const ScenarioError& error) {
            EXPECT_EQ(lines_of(error.issues()), Lines{": " + problem});
            throw;
          }
        },
        ScenarioError);
    Json scenario = base_scenario();
    scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", file}};
    try {
      parse_scenario(scenario.dump(), "s.json", folder.path(), {}, {}, Plugins::refused,
                     OutsideFiles::allowed);
      ADD_FAILURE() << file << " was read";
    } catch (const ScenarioError& error) {
      ASSERT_EQ(error.issues().size(), 1U);
      EXPECT_TRUE(error.issues().front().what.ends_with(problem)) << error.issues().front().what;
    }
  }
}

TEST(ScenarioErrors, APipeFromTheShellIsRead) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], base_text().data(), base_text().size()), std::ssize(base_text()));
  ::close(ends[1]);
  EXPECT_EQ(load_scenario("/dev/fd/" + std::to_string(ends[0])).name, "base");
  ::close(ends[0]);
}

// What is said about a scenario whose force comes from "force.csv" in the folder.
Lines table_errors(const TemporaryFolder& folder) {
  const Json scenario = edited(base_scenario(), Json::parse(R"([
    ["/subsystems/0/inputs/force", {"kind": "table", "file": "force.csv"}]])"));
  Lines errors;
  try {
    parse_scenario(scenario.dump(), "base.json", folder.path());
  } catch (const ScenarioError& error) {
    for (const Issue& issue : error.issues()) {
      EXPECT_EQ(issue.where, "/subsystems/0/inputs/force/file");
      errors.push_back(issue.what);
    }
  }
  return errors;
}

TEST(ScenarioErrors, TablesNameTheLine) {
  const TemporaryFolder folder;
  const auto errors_of = [&folder](const std::string& table) {
    write_text(folder / "force.csv", table);
    return table_errors(folder);
  };
  const std::string row = "must be two finite numbers \"time_s,value\", got ";
  const std::string table = "the table \"force.csv\", line ";
  EXPECT_EQ(errors_of("time_s,value\n0,1\n1;2\n2,x\n3\n4,nan\n5,1,2\n"),
            (Lines{table + "3: " + row + "\"1;2\"", table + "4: " + row + "\"2,x\"",
                   table + "5: " + row + "\"3\"", table + "6: " + row + "\"4,nan\"",
                   table + "7: " + row + "\"5,1,2\""}));
  EXPECT_EQ(
      errors_of("0,1\n1,1\n1,2\n1,3\n"),
      Lines{table + "4: more than two knots at 1 s: a jump has two, the value before it and the "
                    "one after"});
  EXPECT_EQ(
      errors_of("0,1\n1,1\n0.5,2\n"),
      Lines{table + "3: times must not decrease: 0.5 follows 1. Two knots of equal time are a "
                    "jump"});
  EXPECT_EQ(errors_of("0,1e999\n"), Lines{table + "1: " + row + "\"0,1e999\""});
  EXPECT_EQ(errors_of("time_s,value\n\n"),
            Lines{"the table \"force.csv\" has no rows \"time_s,value\""});
  EXPECT_EQ(errors_of(std::string(100, 'x')).size(), 1U);
  EXPECT_EQ(errors_of("0,0\n1,1\n"), Lines{});  // control
}

TEST(ScenarioErrors, TablesThatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(table_errors(folder),
            Lines{"the table \"force.csv\" cannot be opened: No such file or directory"});
  write_text(folder / "force.csv", "0,0\n");
  std::filesystem::resize_file(folder / "force.csv", (std::uintmax_t{64} << 20) + 1);
  EXPECT_EQ(table_errors(folder), Lines{"the table \"force.csv\" is larger than 64 MiB"});
  std::filesystem::remove(folder / "force.csv");
  std::filesystem::create_directory(folder / "force.csv");
  EXPECT_EQ(table_errors(folder), Lines{"the table \"force.csv\" is a folder, not a file"});
}

TEST(ScenarioErrors, Overrides) {
  const std::vector<Override> overrides = {
      {"time/step_s", "1"},        {"/time/~2", "1"},
      {"/tme/step_s", "1"},        {"/subsystems/9/name", "\"X\""},
      {"/name/first", "1"},        {"/time/stp_s", "1"},
      {"/method/tolerance", "NaN"}};
  EXPECT_EQ(
      lines_of(issues_of(base_text(), overrides)),
      (Lines{
          ": --set \"time/step_s\": must be a JSON pointer such as /time/step_s",
          ": --set \"/time/~2\": must be a JSON pointer such as /time/step_s",
          "/tme/step_s: --set does not fit: the file has no key \"tme\". Did you mean \"time\"?",
          "/name/first: --set does not fit: /name is neither an object nor an array",
          "/time/stp_s: unknown key \"stp_s\".\nkeys: \"start_s\", \"step_s\", \"step\", "
          "\"end_s\", "
          "\"steps\", \"start\". "
          "Did you "
          "mean \"step_s\"?",
          "/subsystems/9/name: --set does not fit: /subsystems is an array of 4; \"9\" is not an "
          "index into it",
          "/method/tolerance: must be a finite number, got NaN"}));
}

TEST(ScenarioReport, ReadsAsSentencesWithHintsAndACount) {
  const Json scenario = edited(base_scenario(), Json::parse(R"([
    ["/couplings/2/ports/0", "motor.shaft2"], ["/time/step_s", 0]])"));
  EXPECT_EQ(report_of(scenario.dump()),
            "base.json /time/step_s: must be a number > 0, got 0.\n"
            "base.json /couplings/2/ports/0: subsystem \"motor\" has no port \"shaft2\".\n"
            "  ports: \"terminals\" (electrical), \"shaft\" (rotation). Did you mean \"shaft\"?\n"
            "2 errors; nothing was run.\n");
}

TEST(ScenarioReport, ShowsFiftyErrorsAndCountsTheRest) {
  Json scenario = base_scenario();
  for (int i = 0; i < 57; ++i) scenario["key_" + std::to_string(i)] = i;
  const std::string report = report_of(scenario.dump());
  EXPECT_NE(report.find("/key_49:"), std::string::npos);
  EXPECT_EQ(report.find("/key_50:"), std::string::npos);
  EXPECT_TRUE(report.ends_with("... and 7 more.\n57 errors; nothing was run.\n")) << report;
}

TEST(ScenarioReport, StopsCollectingBeforeMemoryRunsOut) {
  Json scenario = base_scenario();
  for (int i = 0; i < 5000; ++i) scenario["time"].push_back({"key_" + std::to_string(i), i});
  const Issues issues = issues_of(scenario.dump());
  EXPECT_EQ(issues.size(), 1001U);
  EXPECT_EQ(issues.front().what, "there are more errors than can be listed");
}

/// The base with `count` subsystems in a row, coupled under names with two letters swapped.
Json misspelt_chain(int count) {
  Json scenario = base_scenario();
  const Json part = Json::parse(R"({"name": "", "type": "mass_spring_damper_chain", "parameters": {
    "masses": 1, "mass_kg": 1, "stiffness_N_per_m": 1, "damping_Ns_per_m": 0.1,
    "coupling_stiffness_N_per_m": 1}})");
  scenario["subsystems"] = Json::array();
  scenario["couplings"] = Json::array();
  scenario.erase("outputs");
  scenario["method"] = Json::parse(R"({"kind": "auto"})");
  for (int i = 0; i < count; ++i) {
    scenario["subsystems"].push_back(part);
    scenario["subsystems"].back()["name"] = fmt::format("block_{:05}", i);
    const std::string left = i == 0 ? "bolck_99999" : fmt::format("bolck_{:05}", i - 1);
    scenario["couplings"].push_back(
        {{"kind", "connection"}, {"ports", {left + ".right", fmt::format("bolck_{:05}.left", i)}}});
  }
  return scenario;
}

TEST(ScenarioReport, AnyNumberOfWrongNamesIsReportedWithSuggestions) {
  for (const int count : {30, 12'000}) {
    int suggested = 0;
    for (const Issue& issue : issues_of(misspelt_chain(count).dump())) {
      const std::size_t place = issue.what.find("bolck_");
      if (place == std::string::npos || suggested == 50) continue;
      const std::string meant = "\"block_" + issue.what.substr(place + 6, 5) + "\"?";
      if (meant == "\"block_99999\"?") continue;
      EXPECT_TRUE(issue.where.starts_with("/couplings/")) << issue.where;
      EXPECT_NE(issue.what.find("Did you mean " + meant), std::string::npos)
          << count << " subsystems: " << issue.what;
      ++suggested;
    }
    EXPECT_EQ(suggested, 50) << count << " subsystems";
  }
}

TEST(ScenarioReport, NamesAndNumbersDoNotBreakSentences) {
  Json scenario = base_scenario();
  scenario["couplings"][2]["ports"][0] = "motor.a. b";
  scenario["time"]["step. s"] = 1;
  const std::string text =
      replaced(scenario.dump(), "\"tolerance\":0", "\"tolerance\":1" + std::string(400, '0'));
  const std::string report = report_of(text);
  EXPECT_NE(report.find("subsystem \"motor\" has no port \"a. b\".\n  ports: "), std::string::npos)
      << report;
  EXPECT_NE(report.find("unknown key \"step. s\".\n  keys: "), std::string::npos) << report;
  EXPECT_NE(report.find("0... is too large.\n"), std::string::npos) << report;
}

TEST(ScenarioReport, EscapesControlCharactersOfEveryName) {
  const std::string evil = "x\x1b[31m\n\u009b2J";
  const std::vector<std::string> edits = {"/subsystems/1/name",
                                          "/subsystems/1/type",
                                          "/subsystems/2/parameters/ports/0/name",
                                          "/subsystems/2/parameters/states/1",
                                          "/couplings/2/ports/0",
                                          "/outputs/observe/0",
                                          "/subsystems/3/parameters/right_end"};
  std::vector<Json> scenarios;
  for (const std::string& place : edits) {
    scenarios.push_back(edited(base_scenario(), Json::array({Json::array({place, evil})})));
  }
  for (const std::string& port : {"motor." + evil, evil + ".shaft"}) {
    scenarios.push_back(base_scenario());
    scenarios.back()["couplings"][2]["ports"][0] = port;
    scenarios.back()["outputs"]["observe"][0] = port;
    scenarios.back()["method"]["initial_waves"][port] = 1;
    scenarios.back()["subsystems"][0]["inputs"][port] = {{"kind", "constant"}, {"value", 1}};
    scenarios.back()["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", port}};
  }
  for (const Json& scenario : scenarios) {
    for (const Issue& issue : issues_of(scenario.dump())) {
      EXPECT_EQ(issue.what.find('\x1b'), std::string::npos) << issue.where;
      EXPECT_EQ(issue.what.find("\u009b"), std::string::npos) << issue.where;
    }
    const std::string report = report_of(scenario.dump());
    EXPECT_NE(report.find("\\u001b[31m"), std::string::npos) << report;
    EXPECT_EQ(report.find('\x1b'), std::string::npos) << report;
  }
}

TEST(ScenarioReport, CutsLongNames) {
  const std::string report = report_of(
      edited(base_scenario(), Json::array({Json::array(
                                  {"/couplings/2/ports/0", "motor." + std::string(100'000, 'x')})}))
          .dump());
  EXPECT_LT(report.size(), 1000U);
}

TEST(ScenarioReport, CannotBeUsedToWriteToTheTerminal) {
  const std::string report = report_of("{\"\\u001b[31m\\n\": 1, \"name\": \"a\\u0007\"}");
  EXPECT_NE(report.find("/\\u001b[31m\\n: unknown key"), std::string::npos) << report;
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_scenario_errors
