// Pages of runs: what they hold is compared with what the runs have left, and pages are made by the
// program as its users do. That browsers draw them: tests/report/check_pages.py.

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/report/report.hpp>

#include "output/recording/table_reader.hpp"
#include "report/network_drawing.hpp"
#include "report/page.hpp"
#include "report/run_page.hpp"
#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::report::test_report {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::read_csv;
using testing::read_text;
using testing::said;
using testing::source_file;
using testing::TemporaryFolder;
using testing::Words;
using testing::write_text;

#define SKIP_WITHOUT_REPORTS() \
  if (!has_report()) GTEST_SKIP() << "built without uPlot"

/// The JSON that a page holds.
Json data_of(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = html.find(begin) + begin.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

std::map<std::string, Json> charts_of(const Json& data) {
  std::map<std::string, Json> charts;
  for (const Json& section : data.at("sections")) {
    for (const Json& chart : section.at("charts")) charts[chart.at("title")] = chart;
  }
  return charts;
}

#ifdef PORTWAVE_CLI

using testing::kPair;
using testing::operator+;
using testing::portwave_cli;

void run_into(const std::filesystem::path& folder, const Words& more = {},
              const std::string& scenario = kPair) {
  const auto result =
      portwave_cli(Words{"run", scenario, "--quiet", "--out", folder.string()} + more);
  ASSERT_EQ(result.exit_code, 0) << said(result);
}

TEST(Report, HoldsTheNumbersThatTheRunHasLeft) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report"});
  const auto charts = charts_of(data_of(read_text(folder / "out" / "report.html")));
  const auto table = read_csv(folder / "out" / "trajectory.csv");
  ASSERT_TRUE(charts.contains("Quantities in m"));
  const Json& chart = charts.at("Quantities in m");
  ASSERT_EQ(chart.at("x").size(), table.rows.size());
  ASSERT_EQ(chart.at("series").size(), 2u);
  for (const Json& series : chart.at("series")) {
    const std::size_t column = table.column(series.at("label").get<std::string>());
    double largest = 0.0;
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      const double drawn = series.at("y")[n].get<double>();
      EXPECT_NEAR(drawn, table.rows[n][column], 1e-6 * std::abs(drawn)) << n;
      largest = std::max(largest, std::abs(drawn));
    }
    EXPECT_GT(largest, 0.01) << "nothing moved, so nothing was tested";
  }
}

/// Formed anew from the table: what was supplied since the start, and what the ledger leaves open.
TEST(Report, AddsUpTheEnergies) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report", "--set", "/method/iterations=3"});
  const auto charts = charts_of(data_of(read_text(folder / "out" / "report.html")));
  const auto table = read_csv(folder / "out" / "energy.csv");
  const Json& energy = charts.at("Energy");
  std::map<std::string, Json> lines;
  for (const Json& series : energy.at("series")) lines[series.at("label")] = series.at("y");
  double dissipated = 0.0, taken = 0.0;
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    dissipated += table.rows[n][table.column("dissipated_J")];
    taken += table.rows[n][table.column("mismatch_J")];
    EXPECT_NEAR(lines.at("dissipated since the start")[n].get<double>(), dissipated, 1e-5);
    EXPECT_NEAR(lines.at("taken by the unconverged coupling")[n].get<double>(), taken, 1e-5);
  }
  EXPECT_GT(taken, 1.0) << "nothing was taken, so nothing was tested";
  const Json& open = charts.at("What the ledger leaves open");
  for (const Json& value : open.at("series")[0].at("y")) {
    EXPECT_LT(std::abs(value.get<double>()), 1e-10);
  }
}

/// A ledger that has lost a joule is seen: the chart is formed from the rows.
TEST(ReportControl, ALedgerWithAHoleIsSeen) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out");
  const auto table = read_csv(folder / "out" / "energy.csv");
  std::string text;
  for (std::size_t i = 0; i < table.names.size(); ++i) text += (i ? "," : "") + table.names[i];
  text += "\n";
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      const double hole = n == 100 && i == table.column("dissipated_J") ? 1.0 : 0.0;
      text += (i ? "," : "") + std::to_string(table.rows[n][i] + hole);
    }
    text += "\n";
  }
  write_text(folder / "out" / "energy.csv", text);
  const Json data = data_of(run_report({folder / "out"}));
  const Json open = charts_of(data).at("What the ledger leaves open");
  EXPECT_NEAR(open.at("series")[0].at("y").back().get<double>(), 1.0, 0.01);
}

TEST(Report, IsTheSameOfHdf5) {
  SKIP_WITHOUT_REPORTS();
  if (!has_hdf5()) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  const std::string scenario = source_file("examples/quarter_car.json");
  run_into(folder / "a", {"--report", "--set", "/outputs/energies=true"}, scenario);
  run_into(folder / "b",
           {"--report", "--set", "/outputs/energies=true", "--set", "/outputs/format=hdf5"},
           scenario);
  const auto text = charts_of(data_of(read_text(folder / "a" / "report.html")));
  const auto hdf5 = charts_of(data_of(read_text(folder / "b" / "report.html")));
  ASSERT_EQ(text.size(), hdf5.size());
  ASSERT_GE(text.size(), 4u);
  const auto lines_of = [](const Json& chart) {
    std::map<std::string, Json> lines;
    for (const Json& series : chart.at("series")) lines[series.at("label")] = series.at("y");
    return lines;
  };
  std::set<std::pair<std::string, std::string>> first, second;  // line, its numbers
  for (const auto& [title, chart] : text) {
    for (const auto& [label, y] : lines_of(chart)) first.emplace(label, y.dump());
  }
  for (const auto& [title, chart] : hdf5) {
    for (const auto& [label, y] : lines_of(chart)) second.emplace(label, y.dump());
  }
  EXPECT_EQ(first, second);
}

TEST(Report, WideTablesOfHdf5AreReadToo) {
  SKIP_WITHOUT_REPORTS();
  if (!has_hdf5()) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  const auto made = portwave_cli(
      {"generate", "chain", "--blocks", "600", "--out", (folder / "chain.json").string()});
  ASSERT_EQ(made.exit_code, 0) << said(made);
  for (const char* format : {"csv", "hdf5"}) {
    run_into(folder / format,
             {"--steps", "4", "--set", "/outputs/observe=[\"*\"]", "--set",
              std::string("/outputs/format=") + format},
             (folder / "chain.json").string());
  }
  const auto text = open_table(folder / "csv", "trajectory");
  const auto hdf5 = open_table(folder / "hdf5", "trajectory");
  ASSERT_GT(text->columns().size(), 1001u);
  ASSERT_EQ(text->columns(), hdf5->columns());
  std::vector<double> row, other;
  int rows = 0;
  while (text->next(row)) {
    ASSERT_TRUE(hdf5->next(other));
    EXPECT_EQ(row, other);
    ++rows;
  }
  EXPECT_FALSE(hdf5->next(other));
  EXPECT_EQ(rows, 5);
}

TEST(Report, SaysWhatToTryWithAPoorBudget) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report", "--compare", "none", "--set", "/method/iterations=3"});
  const Json data = data_of(read_text(folder / "out" / "report.html"));
  ASSERT_EQ(data.at("advice").size(), 1u);
  EXPECT_TRUE(contains(data.at("advice")[0].at("text"), "--set /method/tolerance"));
}

/// Its names come from somebody else's scenario.
TEST(Report, NamesDoNotEndTheScript) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out",
           {"--report", "--set", R"(/name="</script><script>alert(1)</script><!--")"});
  const std::string html = read_text(folder / "out" / "report.html");
  EXPECT_EQ(data_of(html).at("title"), "</script><script>alert(1)</script><!--");
  EXPECT_FALSE(contains(html, "<script>alert(1)"));
  EXPECT_TRUE(contains(html, "<title>&lt;/script&gt;"));
}

/// Nor do they stand for what the page is filled with.
TEST(Report, NamesAreNoPlacesOfThePage) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "plain", {"--report"});
  const std::string plain = read_text(folder / "plain" / "report.html");
  for (const std::string name :
       {"@DATA@", "@TITLE@", "@PAGE_JS@ @DATA@ @UPLOT_JS@", "@VERSION@@CONNECT@@PAGE_CSS@",
        "<!-- @DATA@ --> ]]> ${x} {{y}} \\u003c `"}) {
    SCOPED_TRACE(name);
    run_into(folder / "out", {"--report", "--set", "/name=" + Json(name).dump()});
    const std::string html = read_text(folder / "out" / "report.html");
    EXPECT_EQ(data_of(html).at("title"), name);
    const auto scripts = [](const std::string& page) {
      std::size_t count = 0;
      for (std::size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) ++count;
      return count;
    };
    EXPECT_EQ(scripts(html), scripts(plain));
    EXPECT_LT(html.size(), plain.size() + 2000);
  }
}

TEST(Report, AsksNobodyForAnything) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report"});
  const std::string html = read_text(folder / "out" / "report.html");
  EXPECT_TRUE(contains(html, "default-src 'none'"));
  EXPECT_FALSE(contains(html, "connect-src"));
  for (const char* way : {"<link rel=\"stylesheet\"", "src=\"http", "@import", "url(http"}) {
    EXPECT_FALSE(contains(html, way)) << way;
  }
}

TEST(Report, OfALongRunIsSmallAndKeepsPeaks) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  std::string rows = "time_s,a\n";
  for (int i = 0; i < 200000; ++i) {
    rows += std::to_string(i) + "," +
            (i == 123457  ? "1000.5"
             : i == 77777 ? "-2000.25"
                          : "1") +
            "\n";
  }
  run_into(folder / "out");
  write_text(folder / "out" / "trajectory.csv", rows);
  const std::string html = run_report({folder / "out"});
  EXPECT_LT(html.size(), 400'000u);
  const Json chart = charts_of(data_of(html)).at("a");
  double low = 0.0, high = 0.0;
  for (const Json& value : chart.at("series")[0].at("y")) {
    low = std::min(low, value.get<double>());
    high = std::max(high, value.get<double>());
  }
  EXPECT_EQ(low, -2000.25);
  EXPECT_EQ(high, 1000.5);
  EXPECT_TRUE(contains(chart.at("note"), "200000 rows"));
}

TEST(ReportOfTwo, EqualRunsAreEqual) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "a");
  run_into(folder / "b", {"--threads", "2", "--executor", "async"});
  const auto result = portwave_cli({"report", (folder / "a").string(), (folder / "b").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json data = data_of(read_text(folder / "a" / "comparison.html"));
  EXPECT_EQ(data.at("verdict").at("level"), "good");
  EXPECT_TRUE(contains(data.at("verdict").at("text"), "to the last bit"));
}

/// A last bit is enough to be different; the table says where it is largest.
TEST(ReportOfTwo, SaysHowFarRunsDiffer) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "a", {"--set", "/method/iterations=30"});
  run_into(folder / "b", {"--set", "/method/iterations=6"});
  const Json data = data_of(run_report({folder / "a", folder / "b"}));
  EXPECT_EQ(data.at("verdict").at("level"), "warn");
  const auto a = read_csv(folder / "a" / "trajectory.csv"),
             b = read_csv(folder / "b" / "trajectory.csv");
  const Json& table = data.at("sections")[0].at("tables")[0];
  ASSERT_EQ(table.at("rows").size(), 2u);
  for (const Json& row : table.at("rows")) {
    const std::size_t column = a.column(row[0].get<std::string>());
    double largest = 0.0, at_s = 0.0;
    for (std::size_t n = 0; n < a.rows.size(); ++n) {
      const double size = std::abs(a.rows[n][column] - b.rows[n][column]);
      if (size > largest) {
        largest = size;
        at_s = a.rows[n][0];
      }
    }
    EXPECT_DOUBLE_EQ(row[2].get<double>(), largest);
    EXPECT_DOUBLE_EQ(row[3].get<double>(), at_s);
  }
}

/// Rows at other times are compared on the line between: of a straight line there is no difference.
TEST(ReportOfTwo, TimesNeedNotBeTheSame) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "a");
  run_into(folder / "b");
  std::string coarse = "time_s,a\n", fine = "time_s,a\n";
  for (int i = 0; i <= 8; ++i)
    coarse += std::to_string(i * 1.0) + "," + std::to_string(2.0 * i) + "\n";
  for (int i = 0; i <= 64; ++i) {
    fine += std::to_string(i * 0.125) + "," + std::to_string(0.25 * i) + "\n";
  }
  write_text(folder / "a" / "trajectory.csv", fine);
  write_text(folder / "b" / "trajectory.csv", coarse);
  const Json data = data_of(run_report({folder / "a", folder / "b"}));
  EXPECT_TRUE(contains(data.at("verdict").at("text"), "times are not the same"))
      << data.at("verdict");
}

TEST(ReportLine, SaysWhatIsWrong) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_directory(folder / "study");
  std::filesystem::create_directory(folder / "broken");
  write_text(folder / "study" / "summary.json", "[]");
  write_text(folder / "broken" / "summary.json", "{\"steps\": 1");
  const auto fails = [&](const Words& line, int exit_code, const std::string& says) {
    const auto result = portwave_cli(line);
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    EXPECT_TRUE(contains(result.err, says)) << said(result);
    EXPECT_EQ(result.out, "");
  };
  fails({"report", (folder / "none").string()}, 3, "there is no folder");
  fails({"report", (folder / "empty").string()}, 3, "there is no summary.json");
  fails({"report", (folder / "study").string()}, 3, "no JSON object");
  fails({"report", (folder / "broken").string()}, 3, "no JSON object");
  fails({"report"}, 2, "DIR");
  fails({"report", "a", "b", "c"}, 2, "one folder, or compares two");
  fails({"run", kPair, "--report"}, 2, "--report needs --out");
  fails({"study", "budget", kPair, "--report"}, 2, "--report needs --out");
}

TEST(ReportLine, DamagedTablesAreToldByTheirLine) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out");
  for (const auto& [text, says] : {std::pair{"", "line 1"},
                                   {"time_s,a\n1,2\n3\n", "line 3"},
                                   {"time_s,a\n1,2\n3,", "line 3 ends within"}}) {
    write_text(folder / "out" / "trajectory.csv", text);
    const auto result = portwave_cli({"report", (folder / "out").string()});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, says)) << said(result);
    EXPECT_FALSE(std::filesystem::exists(folder / "out" / "report.html"));
  }
}

/// A page beside results of another run would lie.
// A folder that somebody else has made: the program ends, and says what it makes of it.
TEST(ReportLine, NeitherWaitsNorFailsForWhatIsNoResult) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  const auto out = folder / "out";
  run_into(out);
  const std::string summary = read_text(out / "summary.json");
  const std::string table = read_text(out / "trajectory.csv");
  const auto told = [&] {
    const auto result = portwave_cli({"report", out.string()});
    EXPECT_EQ(result.signal, 0) << said(result);
    EXPECT_EQ(result.exit_code, 3) << said(result);
    return result.err;
  };
  for (const char* const name : {"trajectory.csv", "energy.csv", "network.json", "summary.json"}) {
    const std::string before = read_text(out / name);
    std::filesystem::remove(out / name);
    ASSERT_EQ(::mkfifo((out / name).c_str(), 0600), 0);
    EXPECT_TRUE(contains(told(), "is a pipe, not a file")) << name;
    std::filesystem::remove(out / name);
    std::filesystem::create_symlink("/dev/zero", out / name);
    EXPECT_TRUE(contains(told(), "leads out of the folder of the results")) << name;
    std::filesystem::remove(out / name);
    write_text(out / name, before);
  }
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  write_text(out / "summary.json", "{\"scenario\": " + deep + "," + summary.substr(1));
  EXPECT_TRUE(contains(told(), "was not written by a run"));
  write_text(out / "summary.json", summary);
  std::filesystem::remove(out / "trajectory.csv");
  ASSERT_EQ(::mkfifo((out / "results.h5").c_str(), 0600), 0);
  EXPECT_TRUE(contains(told(), "is a pipe, not a file"));
  std::filesystem::remove(out / "results.h5");
  // Control: with all put back the page is made.
  write_text(out / "trajectory.csv", table);
  EXPECT_EQ(portwave_cli({"report", out.string()}).exit_code, 0);
}

TEST(ReportLine, ARunTakesThePageOfTheRunBeforeAway) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report"});
  ASSERT_TRUE(std::filesystem::exists(folder / "out" / "report.html"));
  run_into(folder / "out");
  EXPECT_FALSE(std::filesystem::exists(folder / "out" / "report.html"));
}

TEST(ReportLine, RunsWithoutTablesHaveAPageToo) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  run_into(folder / "out", {"--report", "--set", "/outputs/format=none"});
  EXPECT_TRUE(contains(read_text(folder / "out" / "report.html"), "No rows were recorded"));
}

TEST(ReportLine, EveryStudyIsDrawn) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  const std::vector<Words> lines = {
      {"budget", kPair, "--budgets", "3,8", "--steps", "50"},
      {"rate", kPair, "--steps", "3"},
      {"order", source_file("examples/msd_singlerate.json"), "--steps", "0.0078125,0.001953125"},
      {"tolerance", kPair, "--tolerances", "1e-3,1e-4"},
      {"iteration", source_file("examples/two_masses.json"), "--iterations", "8"},
      {"scaling", source_file("examples/chain_64.json"), "--threads", "1,2", "--repetitions", "1",
       "--steps", "20"}};
  for (const Words& line : lines) {
    const auto result = portwave_cli(Words{"study"} + line + Words{"--out", out, "--report"});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(contains(result.err, "report.html")) << said(result);
    const Json data = data_of(read_text(folder / "out" / "report.html"));
    const auto charts = charts_of(data);
    EXPECT_FALSE(charts.empty()) << line[0];
    for (const auto& [title, chart] : charts) {
      EXPECT_FALSE(chart.at("series").empty()) << line[0] << ": " << title;
    }
    std::filesystem::remove(folder / "out" / "report.html");
  }
}

TEST(ReportLine, GoesWithResume) {
  SKIP_WITHOUT_REPORTS();
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  run_into(folder / "out", {"--checkpoint-every", "100", "--report"});
  EXPECT_TRUE(std::filesystem::exists(folder / "out" / "report.html"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out" / "network.json"));
}

#endif

// ---- the network

Json network_of(int parts, int islands, int joined = 2) {
  Json network = {{"part_count", parts}, {"islands", islands}, {"units", Json::object()}};
  const int per_island = parts / islands;
  network["parts"] = Json::array();
  network["junctions"] = Json::array();
  for (int i = 0; i < parts; ++i) {
    network["parts"].push_back(
        {{"name", "p" + std::to_string(i)}, {"type", "t"}, {"island", i / per_island}});
  }
  for (int i = 0; i + joined - 1 < parts; i += joined - 1) {
    if (i / per_island != (i + joined - 1) / per_island) continue;
    Json ends = Json::array();
    for (int k = 0; k < joined; ++k)
      ends.push_back({{"part", i + k}, {"port", k == 0 ? "b" : "a"}});
    network["junctions"].push_back(ends);
  }
  return network;
}

std::size_t parts_in(const Network& drawn) {
  std::size_t count = 0;
  for (const Json& node : drawn.nodes) {
    if (!node.at("junction").get<bool>()) count += node.at("count").get<std::size_t>();
  }
  return count;
}

TEST(NetworkDrawing, HasANodeForEachPartAndALinkForEachConnection) {
  for (const int parts : {1, 2, 5, 300}) {
    const auto drawn = draw_network(network_of(parts, 1), {});
    ASSERT_TRUE(drawn);
    EXPECT_EQ(drawn->nodes.size(), static_cast<std::size_t>(parts));
    EXPECT_EQ(drawn->links.size(), static_cast<std::size_t>(parts - 1));
  }
}

TEST(NetworkDrawing, JunctionsOfMoreThanTwoAreNodes) {
  const auto drawn = draw_network(network_of(7, 1, 4), {});
  ASSERT_TRUE(drawn);
  EXPECT_EQ(drawn->nodes.size(), 7u + 2u);
  EXPECT_EQ(drawn->links.size(), 8u);
}

TEST(NetworkDrawing, ManyPartsAreSummarisedAndNoneIsLost) {
  for (const auto& [parts, islands] :
       {std::pair{301, 1}, {5000, 1}, {5000, 50}, {6000, 2000}, {50000, 2}}) {
    const auto drawn = draw_network(network_of(parts, islands), {});
    ASSERT_TRUE(drawn);
    EXPECT_LE(drawn->nodes.size(), kMostNodes) << parts;
    EXPECT_GE(drawn->nodes.size(), 2u) << parts;
    EXPECT_EQ(parts_in(*drawn), static_cast<std::size_t>(parts)) << islands;
    EXPECT_TRUE(
        contains(drawn->summary, std::to_string(parts) + " parts in " + std::to_string(islands)));
    for (const Json& link : drawn->links) {
      EXPECT_LT(link.at("a").get<std::size_t>(), drawn->nodes.size());
      EXPECT_LT(link.at("b").get<std::size_t>(), drawn->nodes.size());
    }
  }
}

TEST(NetworkDrawing, WhatIsNoNetworkIsNotDrawn) {
  for (const char* text :
       {"null", "{}", R"({"parts": [], "junctions": []})",
        R"({"parts": [{"name": "a"}], "junctions": [[{"part": 7, "port": "x"}]]})",
        R"({"parts": [{"name": "a"}], "junctions": [[{"part": -1}]]})",
        R"({"parts": [{"name": "a"}], "junctions": [3]})"}) {
    EXPECT_FALSE(draw_network(Json::parse(text), {})) << text;
  }
}

}  // namespace
}  // namespace portwave::report::test_report
