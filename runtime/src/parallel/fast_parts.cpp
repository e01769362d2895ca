#include "parallel/fast_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

std::string fast_part_defect(std::string_view name, NameSearch& parts) {
  constexpr std::size_t kShown = 12;
  const std::vector<std::string>& names = parts.names();
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  if (names.size() > kShown) shown += fmt::format(", ... ({} in all)", names.size());
  return fmt::format("there is no subsystem {}.\nsubsystems: {}.{}", in_quotes(name), shown,
                     parts.did_you_mean(name));
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
