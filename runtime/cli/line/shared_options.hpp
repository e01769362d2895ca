#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "line/scenario_file.hpp"
#include "line/verb.hpp"

/// Options that several verbs have.
namespace portwave::cli {

inline constexpr const char* kReportNeedsOut =
    "--report needs --out: the page lies with the results";

void add_json(Verb& verb, bool& json, const std::string& what);
void add_out(Verb& verb, std::optional<std::filesystem::path>& out, const std::string& what);
void add_threads(Verb& verb, int& threads);
/// "/json/pointer=value"
void add_overrides(Verb& verb, std::vector<Override>& overrides);
void add_plugins(Verb& verb, std::vector<std::filesystem::path>& plugins);
/// Options that permit a scenario more than its own text.
void add_permissions(Verb& verb, ScenarioArguments& scenario);
CLI::Option* add_scenario(Verb& verb, ScenarioArguments& scenario);
void add_steps(Verb& verb, std::optional<std::int64_t>& steps);
void add_certify(Verb& verb, Certify& certify);
/// How finely a step is cut into tasks, and which executor runs them. Results do not depend on either.
void add_grain(Verb& verb, Grain& grain);
/// The words for executors, and what they mean, by place.
const std::vector<std::string>& executor_words();
ExecutorKind executor_at(std::size_t place);
void add_execution(Verb& verb, Grain& grain, ExecutorKind& executor);
/// The page of a study.
void add_study_report(Verb& verb, const std::optional<std::filesystem::path>& out, bool& report);

}  // namespace portwave::cli
