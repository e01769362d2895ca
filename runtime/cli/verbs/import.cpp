// portwave import

#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

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
  if (!in || std::filesystem::is_directory(file)) {
    throw ScenarioError(file.string(), {{"", "cannot be read"}});
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int run_command(const ImportArguments& arguments, std::ostream& out, std::ostream& err) {
  const std::string file = arguments.file.string();
  std::string scenario;
  try {
    Robot robot = read_robot(contents_of(arguments.file));
    if (arguments.free_base && robot.format == "MJCF") {
      throw ConfigError("", "--free-base is for URDF: in MJCF a <freejoint> frees a body");
    }
    if (arguments.ground && robot.format == "MJCF") {
      throw ConfigError("", "--ground is for URDF: of MJCF no contacts are read");
    }
    scenario = robot_scenario(robot, {.step_s = arguments.step_s,
                                      .duration_s = arguments.duration_s,
                                      .free_base = arguments.free_base,
                                      .hold = arguments.hold,
                                      .motors = arguments.motors,
                                      .limits = !arguments.without_limits,
                                      .stop_time_s = arguments.stop_time_s,
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
