#include "portwave/runtime/export/ssp_export.hpp"

#include <set>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "export/fmu/fmu_contents.hpp"
#include "export/fmu/fmu_scenario.hpp"
#include "export/structures/ssp_draft.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

SspExport export_ssp(const ScenarioText& given, Plugins permission,
                     const std::filesystem::path& out) {
  using namespace exported;
  const Json document = expanded_scenario(given);
  double start_s = 0.0, end_s = 0.0, step_s = 0.0;
  {
    const Scenario scenario =
        parse_scenario(given.text, given.file, given.folder, given.overrides, {}, permission);
    start_s = scenario.options.start_s;
    step_s = scenario.options.step_s;
    end_s = scenario.end_s;
  }
  Issues issues;
  const SspDraft draft = draft_ssp(document, given.folder, start_s, end_s, step_s, issues);
  if (!issues.empty()) throw ScenarioError(given.file, std::move(issues));

  std::vector<Member> members = {{"SystemStructure.ssd", structure_description(draft), {}}};
  std::set<std::string> sources;
  for (const SspComponent& own : draft.components) {
    if (std::string set = parameter_set(own); !set.empty()) {
      members.push_back({own.parameters, std::move(set), {}});
    }
    if (sources.insert(own.source).second) members.push_back({own.source, {}, own.file});
  }
  // By way of a file beside it.
  std::filesystem::path part = out;
  part += fmt::format(".{}.part", ::getpid());
  std::error_code error;
  try {
    write_archive(members, part, out);
    std::filesystem::rename(part, out, error);
    if (error) {
      throw ConfigError("/out", fmt::format("{} cannot be written: {}", in_quotes(out.string()),
                                            error.message()));
    }
  } catch (...) {
    std::filesystem::remove(part, error);
    throw;
  }
  return {draft.components.size(), draft.connections.size(), draft.notes};
}

}  // namespace portwave
