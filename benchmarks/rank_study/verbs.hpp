#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>

#include "line/networks.hpp"
#include "line/scaling_files.hpp"
#include "line/scenario_file.hpp"
#include "rank_study/rank_plan.hpp"
#include "rank_study/rank_scaling.hpp"

/// The verbs of the program rank_study.
namespace portwave::cli {

/// `rank_study scaling`: the time of a step over ranks, measured and predicted.
struct ScalingArguments {
  NetworkArguments networks;
  RankScalingOptions options;  ///< without `world`
  std::optional<std::filesystem::path> out;
  ScalingFiles files;
  bool report = false;
  bool json = false;
};

/// `rank_study partition`: the division of a scenario among ranks, and the predicted time of a step.
struct PartitionArguments {
  ScenarioArguments scenario;
  RankPlanOptions plan;
  int shown = 16;  ///< ranks
  bool json = false;
};

/// Each writes data to `out` and messages to `err`, and returns the exit code. Errors: ConfigError,
/// StepError, RankError, std::runtime_error.
int run_command(const ScalingArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const PartitionArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace portwave::cli
