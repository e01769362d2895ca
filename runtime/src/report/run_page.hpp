#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "report/run_folder.hpp"

namespace portwave::report {

/// The key figures of a run.
std::vector<std::pair<std::string, std::string>> facts_of(const RunFolder& run);

/// The settings of the run: the entries of its summary that are not drawn, one row each.
Table how_it_was_run(const nlohmann::json& summary);

/// Events of the watches; no rows without watches.
Table events_of(const nlohmann::json& summary);

/// The page of one run, and of two.
Page run_page(const RunFolder& run);
Page comparison_page(const RunFolder& first, const RunFolder& second);

}  // namespace portwave::report
