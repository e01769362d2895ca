#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace portwave::report {

/// The verdict on a run in words, of its summary.json.
Verdict verdict_of(const nlohmann::json& summary);

/// What to try where something of a run is poor, the worst first; empty where nothing is.
std::vector<Advice> advice_for(const nlohmann::json& summary);

/// The names of the rules behind it, for tests.
std::vector<std::string_view> advice_rules();

}  // namespace portwave::report
