#include "output/summary/defects_text.hpp"

#include <fmt/format.h>

#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

std::string subsystems_text(const std::vector<std::string>& names) {
  return (names.size() == 1 ? "subsystem " : "subsystems ") + few_of(names, 6);
}

std::string defects_text(const RunSummary& summary) {
  const auto& defects = summary.defects;
  if (defects.empty()) return {};
  const int worst = summary.worst_forward_part();
  const std::string parts = subsystems_text(summary.forward_parts);
  if (worst < 0) return fmt::format("{} took each step once, and answered as foretold", parts);
  const PartDefects& most = defects[static_cast<std::size_t>(worst)];
  const bool is_poor = most.share() > RunSummary::kPoorMismatch;
  const std::string of_worst =
      defects.size() > 1
          ? fmt::format(" of \"{}\"",
                        printable(summary.forward_parts[static_cast<std::size_t>(worst)]))
          : "";
  std::string text = fmt::format(
      "{}{} took each step once; what was foretold{} missed {:.2g} % of its energy,\n"
      "               {:.3g} J in all and {:.3g} J net, most in step {}",
      is_poor ? "poor: " : "", parts, of_worst, 100.0 * most.share(), most.astray_J, most.net_J,
      most.worst_step);
  if (is_poor) {
    text +=
        ".\n               This is not the solution: take shorter steps, or export the FMU such "
        "that "
        "it saves its state";
  }
  return text;
}

}  // namespace portwave
