// collect_benchmarks <output.json> <regex> <program>...
//
// Runs the benchmark programs whose file name matches, or that list a matching test, one after the
// other, and gathers the rows that they print (report.hpp) into one JSON array, on stdout and in
// the file. A program whose rows ask for it is repeated several times; its rows are then medians
// over the processes, `spread` the range of the ratio over its median. All other lines a program
// prints, such as Google Benchmark's tables, go to stderr. Rows say on which processor they were measured,
// and with what caches; their notes say with which instruction set.
//
// Exit code 1: a program failed, which usually means that its answers were wrong.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::ordered_json;

struct Output {
  std::vector<std::string> lines;
  bool failed = false;
};

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

Output run(const std::string& program, const std::string& argument) {
  std::FILE* pipe = popen((quoted(program) + " " + quoted(argument)).c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + program);
  Output output;
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    output.lines.push_back(line);
    line.clear();
  }
  if (!line.empty()) output.lines.push_back(line);
  const int status = pclose(pipe);
  output.failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return output;
}

/// The rows among the lines; the others are talk.
std::vector<Json> rows_of(const Output& output) {
  std::vector<Json> rows;
  for (const std::string& line : output.lines) {
    Json row = line.starts_with('{') ? Json::parse(line, nullptr, false) : Json();
    if (row.is_object() && row.contains("name") && row.contains("ratio")) {
      rows.push_back(std::move(row));
    } else {
      fmt::print(stderr, "{}\n", line);
    }
  }
  return rows;
}

/// The first line of a file, or nothing.
std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The processor and its data caches as Linux tells them: "AMD EPYC, family 25, model 17, 2 at once; L1 32K,
/// L2 1024K, L3 32768K".
std::string machine() {
  std::string name = "unknown processor", family, model;
  int processors = 0;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 < line.size() ? line.substr(colon + 2) : "";
    if (key == "processor") ++processors;
    if (key == "model name") name = value;
    if (key == "cpu family") family = ", family " + value;
    if (key == "model") model = ", model " + value;
  }
  std::string text = fmt::format("{}{}{}, {} at once;", name, family, model, processors);
  for (int i = 0; i < 8; ++i) {
    const std::filesystem::path cache =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", i);
    const std::string level = first_line(cache / "level");
    if (level.empty() || first_line(cache / "type") == "Instruction") continue;
    text += fmt::format(" L{} {},", level, first_line(cache / "size"));
  }
  text.pop_back();
  return text;
}

/// One row for many of the same name.
Json merged(const std::vector<Json>& rows) {
  Json result = rows.front();
  if (rows.size() == 1) return result;
  const auto sorted = [&rows](const char* field) {
    std::vector<double> values;
    for (const Json& row : rows) values.push_back(row.at(field).get<double>());
    std::sort(values.begin(), values.end());
    return values;
  };
  const auto median = [&sorted](const char* field) {
    const std::vector<double> values = sorted(field);
    return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
  };
  for (const char* field : {"ours_us", "reference_us", "ratio"}) {
    if (result[field].is_number()) result[field] = median(field);
  }
  const std::vector<double> ratios = sorted("ratio");
  const double ratio = result["ratio"].get<double>();
  result["spread"] = ratio == 0.0 ? 0.0 : std::abs((ratios.back() - ratios.front()) / ratio);
  if (const Json& goal = result["goal"]; !goal.is_null()) {
    const bool at_most = result["sense"] == "at most";
    result["holds"] = at_most ? ratio <= goal.get<double>() : ratio >= goal.get<double>();
  }
  return result;
}

void tell(const Json& row) {
  const std::string goal =
      row["goal"].is_null()
          ? ""
          : fmt::format("  goal {} {:g}: {}", row["sense"].get<std::string>(),
                        row["goal"].get<double>(), row["holds"].get<bool>() ? "holds" : "missed");
  const std::string value =
      row.contains("unit")
          ? fmt::format("{:39} {:8.4g} {}", "", row["ratio"].get<double>(),
                        row["unit"].get<std::string>())
          : fmt::format("{:10.5g} us beside {:10.5g} us  ratio {:8.4g}",
                        row["ours_us"].get<double>(), row["reference_us"].get<double>(),
                        row["ratio"].get<double>());
  fmt::print(stderr, "  {:42} {} ±{:2.0f} %{}\n", row["name"].get<std::string>(), value,
             50.0 * row["spread"].get<double>(), goal);
}

class Collector {
 public:
  explicit Collector(const std::string& filter) : filter_text_(filter), filter_(filter) {
    fmt::print(stderr, "bench: {}\n", machine_);
  }

  /// False when nothing in the program matches.
  bool collect(const std::string& program) {
    const std::string name = std::filesystem::path(program).filename().string();
    std::string argument = "--benchmark_filter=.";
    if (!std::regex_search(name, filter_)) {
      const Output list = run(program, "--benchmark_list_tests=true");
      const bool listed =
          std::any_of(list.lines.begin(), list.lines.end(),
                      [this](const std::string& test) { return std::regex_search(test, filter_); });
      if (!listed) return false;
      argument = "--benchmark_filter=" + filter_text_;
    }
    run_all(program, name, argument);
    return true;
  }
  const Json& rows() const { return rows_; }
  bool failed() const { return failed_; }

 private:
  void run_all(const std::string& program, const std::string& name, const std::string& argument) {
    std::vector<std::vector<Json>> runs;
    int processes = 1;
    for (int i = 0; i < processes; ++i) {
      fmt::print(stderr, "bench: {} {}/{}\n", name, i + 1, processes);
      const Output output = run(program, argument);
      runs.push_back(rows_of(output));
      if (output.failed) {
        fmt::print(stderr, "bench: {} failed, its rows are dropped\n", name);
        failed_ = true;
        return;
      }
      for (const Json& row : runs.back()) {
        processes = std::max(processes, row.value("processes", 1));
      }
    }
    for (const Json& first : runs.front()) {
      std::vector<Json> same;
      for (const auto& run : runs) {
        for (const Json& row : run) {
          if (row["name"] == first["name"]) same.push_back(row);
        }
      }
      Json row = merged(same);
      row["program"] = name;
      row["machine"] = machine_;
      tell(row);
      rows_.push_back(std::move(row));
    }
  }

  std::string machine_ = machine();
  std::string filter_text_;
  std::regex filter_;
  Json rows_ = Json::array();
  bool failed_ = false;
};

int collect(int argc, char** argv) {
  if (argc < 4) throw std::runtime_error("usage: <output.json> <regex> <program>...");
  Collector collector(argv[2]);
  bool ran = false;
  for (int i = 3; i < argc; ++i) ran = collector.collect(argv[i]) || ran;
  if (!ran) throw std::runtime_error(fmt::format("no benchmark matches '{}'", argv[2]));
  const std::string text = collector.rows().dump(1);
  std::cout << text << '\n';
  std::ofstream file(argv[1]);
  file << text << '\n';
  if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", argv[1]));
  return collector.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return collect(argc, argv);
} catch (const std::exception& error) {
  fmt::print(stderr, "collect_benchmarks: {}\n", error.what());
  return 1;
}
