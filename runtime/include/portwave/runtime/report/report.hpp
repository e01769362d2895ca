#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Whether pages can be made: whether portwave was built with the library that draws charts.
bool has_report();

/// The output folder of a run as one self-contained page of HTML: the verdict in words, what to try,
/// trajectories, energy, iterations, guard, step sizes, deadlines, the network, and how it was run. For two
/// folders: how the runs differ. For a run of any length the page has at most some thousand points for each
/// line: the smallest and the largest of every stretch of rows, so that no peak is lost. Memory does not grow
/// with the rows.
/// Errors: std::runtime_error naming what is missing in a folder or cannot be read;
/// std::invalid_argument unless there are one or two folders, or without `has_report`.
std::string run_report(const std::vector<std::filesystem::path>& folders);

/// A chart of the output of `portwave study KIND --json`. `kind`: budget, rate, order, tolerance, iteration
/// or scaling; or "rank_study scaling" for the output of `rank_study scaling --json`.
/// Errors: std::invalid_argument for another kind or without `has_report`; std::runtime_error if `json` is
/// not of that kind.
std::string study_report(const std::string& json, const std::string& kind,
                         const std::string& scenario);

}  // namespace portwave
