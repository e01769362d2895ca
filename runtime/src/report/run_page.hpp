#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "report/run_folder.hpp"

namespace portwave::report {

/// Numbers of a run that are looked at first.
std::vector<std::pair<std::string, std::string>> facts_of(const RunFolder& run);

/// How it was run: all of its summary but what is drawn, a row for each entry.
Table how_it_was_run(const nlohmann::json& summary);

/// What was seen of what is watched; no rows where nothing is.
Table events_of(const nlohmann::json& summary);

/// The page of one run, and of two.
Page run_page(const RunFolder& run);
Page comparison_page(const RunFolder& first, const RunFolder& second);

}  // namespace portwave::report
