// States at odds, and impulses, as people read of them.
#include "output/summary/starts_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace portwave {

std::string starts_at_odds_text(const RunSummary& summary) {
  const StartsAtOdds& odds = summary.starts_at_odds;
  return fmt::format(
      "starts at odds: {}, first at {:g} s: {}\n"
      "               an impulse acts there, and these steps oscillate about its "
      "result",
      odds.count, odds.first_s, odds.first);
}

std::string impulses_text(const RunSummary& summary) {
  constexpr std::size_t kShown = 3;
  const Impulses& all = summary.impulses;
  const auto energies = [](const ImpulseEnergies& own) {
    std::string text = fmt::format("took {:.6g} J", own.impact_J);
    if (std::abs(own.supplied_J) > 1e-9 * own.impact_J) {
      text += fmt::format(", and sources supplied {:.6g} J", own.supplied_J);
    }
    return text;
  };
  std::string text = fmt::format("{}, in all they {}", all.count, energies(all.in_all));
  for (std::size_t i = 0; i < std::min(all.first.size(), kShown); ++i) {
    const Impulse& own = all.first[i];
    text += fmt::format("\n               an impulse at {:g} s ({}) {}: {}", own.time_s, own.cause,
                        energies(own.energies), own.jumps);
    text += fmt::format("\n               at {}", own.joint);
  }
  if (all.count > static_cast<std::int64_t>(kShown)) {
    text +=
        fmt::format("\n               and {} more", all.count - static_cast<std::int64_t>(kShown));
  }
  return text;
}

}  // namespace portwave
