// portwave import

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <portwave/runtime/adapters/structure.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/commands.hpp"
#include "robot/robot_file.hpp"
#include "robot/robot_scenario.hpp"

namespace portwave::cli {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    const std::string why = std::generic_category().message(errno);
    throw ScenarioError(file.string(), {{"", "cannot be opened: " + why}});
  }
  if (std::filesystem::is_directory(file)) {
    throw ScenarioError(file.string(), {{"", "is a folder"}});
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A copy beside the scenario; a file that is there already must be the same. Whether it is new.
bool lay_beside(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error)) return false;
  const std::string content = contents_of(from);
  if (std::filesystem::exists(to, error)) {
    if (contents_of(to) == content) return false;
    throw ScenarioError(to.string(), {{"", "is another file: move it, or write elsewhere"}});
  }
  write_file_atomically(to, content);
  return true;
}

/// Copies that were made, which are taken back unless the import succeeds.
struct Copies {
  std::vector<std::filesystem::path> made;
  bool are_kept = false;
  Copies() = default;
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies() {
    std::error_code error;
    for (const auto& own : made) {
      if (!are_kept) std::filesystem::remove(own, error);
    }
  }
};

int import_structure(const ImportArguments& arguments, std::ostream& out, std::ostream& err) {
  const std::string file = arguments.file.string();
  for (const auto& [given, name] :
       {std::pair(arguments.free_base, "--free-base"), std::pair(arguments.ground, "--ground"),
        std::pair(arguments.hold, "--hold"), std::pair(arguments.motors, "--motors"),
        std::pair(arguments.without_limits, "--no-limits"),
        std::pair(!arguments.cut.empty(), "--cut"),
        std::pair(arguments.stop_time_s > 0.0, "--stop-time")}) {
    if (given) throw ScenarioError(file, {{"", fmt::format("{} is for robots", name)}});
  }
  if (!arguments.out && arguments.file.extension() == ".ssp") {
    throw ScenarioError(file, {{"", "--out is needed: FMUs of a package are laid beside it"}});
  }
  const Plugins permission = arguments.loads_fmus ? Plugins::allowed : Plugins::refused;
  const std::filesystem::path folder = arguments.out
                                           ? std::filesystem::absolute(*arguments.out).parent_path()
                                           : std::filesystem::path();
  try {
    const StructureScenario made =
        read_structure(arguments.file,
                       {.may_run_fmus = arguments.loads_fmus,
                        .finds_bonds = !arguments.as_samples,
                        .process = arguments.process,
                        .step_s = arguments.step_s.value_or(0.0),
                        .duration_s = arguments.duration_s.value_or(0.0)},
                       folder);
    Copies copies;
    for (const StructureScenario::Fmu& own : made.fmus) {
      const std::filesystem::path to = folder / own.path;
      if (arguments.out && lay_beside(own.file, to)) copies.made.push_back(to);
    }
    parse_scenario(made.text, file, folder, {}, {}, permission);  // what is written runs
    for (const Issue& note : made.notes) {
      err << fmt::format("{}: {}{}{}\n", file, note.where, note.where.empty() ? "" : ": ",
                         note.what);
    }
    if (!arguments.out) {
      out << made.text;
      return kOk;
    }
    write_file_atomically(*arguments.out, made.text);
    copies.are_kept = true;
    err << fmt::format("written to {}, {} FMU{} beside it\n", arguments.out->string(),
                       made.fmus.size(), made.fmus.size() == 1 ? "" : "s");
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(file, error.issues());
  }
  return kOk;
}

}  // namespace

int run_command(const ImportArguments& arguments, std::ostream& out, std::ostream& err) {
  if (is_structure_file(arguments.file)) return import_structure(arguments, out, err);
  const std::string file = arguments.file.string();
  for (const auto& [given, name] :
       {std::pair(arguments.loads_fmus, "--allow-plugins"),
        std::pair(arguments.as_samples, "--samples"), std::pair(arguments.process, "--process")}) {
    if (given) throw ScenarioError(file, {{"", fmt::format("{} is for systems of FMUs", name)}});
  }
  std::string scenario;
  try {
    Robot robot = read_robot(contents_of(arguments.file));
    if (arguments.free_base && robot.format == "MJCF") {
      throw ConfigError("", "--free-base is for URDF: in MJCF a <freejoint> frees a body");
    }
    if (arguments.ground && robot.format == "MJCF") {
      throw ConfigError("", "--ground is for URDF: of MJCF no contacts are read");
    }
    scenario = robot_scenario(robot, {.step_s = arguments.step_s.value_or(0.001),
                                      .duration_s = arguments.duration_s.value_or(5.0),
                                      .free_base = arguments.free_base,
                                      .hold = arguments.hold,
                                      .motors = arguments.motors,
                                      .limits = !arguments.without_limits,
                                      .stop_time_s = arguments.stop_time_s,
                                      .cut = arguments.cut,
                                      .ground = arguments.ground});
    parse_scenario(scenario, file, arguments.file.parent_path());  // what is written runs
    for (const std::string& note : robot.notes) err << fmt::format("{}: {}\n", file, note);
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(file, error.issues());
  }
  if (!arguments.out) {
    out << scenario;
    return kOk;
  }
  write_file_atomically(*arguments.out, scenario);
  err << fmt::format("written to {}\n", arguments.out->string());
  return kOk;
}

}  // namespace portwave::cli
