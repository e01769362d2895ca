#include "parallel/fast_parts.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

std::string fast_part_defect(std::string_view name, NameSearch& parts) {
  return fmt::format("there is no subsystem {}.\nsubsystems: {}.{}", in_quotes(name),
                     few_of(parts.names()), parts.did_you_mean(name));
}

Issues check_fast_parts(const CouplingMethod& method, const System& system) {
  Issues issues;
  if (method.kind() != SplittingKind::impulse) return issues;
  const std::vector<std::string>& fast = method.splitting().fast;
  std::optional<NameSearch> parts;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (system.find_part(fast[i]) >= 0) continue;
    if (!parts) {
      std::vector<std::string> names;
      for (const Part& part : system.parts()) names.push_back(part.name);
      parts.emplace(std::move(names));
    }
    issues.push_back({fmt::format("/method/fast/{}", i), fast_part_defect(fast[i], *parts)});
  }
  return issues;
}

}  // namespace portwave
