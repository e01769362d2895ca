#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace portwave::report {

/// The verdict on a run in words, of its summary.json.
Verdict verdict_of(const nlohmann::json& summary);

/// Remedies for the shortcomings of a run, the worst first; empty if it has none.
std::vector<Advice> advice_for(const nlohmann::json& summary);

/// The names of the rules behind it, for tests.
std::vector<std::string_view> advice_rules();

}  // namespace portwave::report
