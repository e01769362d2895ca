#include "impedance/tuned_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "impedance/impedance_rules.hpp"

namespace portwave {
namespace {

/// Which updates can gain by `across`.
bool has_interface(WaveUpdate kind) {
  return kind == WaveUpdate::interface || kind == WaveUpdate::automatic;
}

}  // namespace

std::vector<Tuned> tuned_by_rules(const PortResponses& responses, const WaveCoupling& method) {
  if (method.impedance_kind == ImpedanceKind::given) {
    std::vector<double> by_port = method.impedance;
    const std::size_t ports = responses.system().scalar_ports().size();
    if (by_port.size() == 1) by_port.assign(ports, method.impedance.front());
    const bool good = by_port.size() == ports && std::ranges::all_of(by_port, [](double value) {
                        return value > 0.0 && std::isfinite(value);
                      });
    if (!good) {
      throw ConfigError("/method/impedance",
                        fmt::format("must be finite and > 0, one value for all scalar ports or one "
                                    "for each ({})",
                                    ports));
    }
    return {{ImpedanceKind::given, {std::move(by_port), {}}}};
  }
  if (method.impedance_kind != ImpedanceKind::automatic) {
    Tuned tuned{method.impedance_kind, tune_impedance(responses, method.impedance_kind)};
    if (tuned.impedance.by_port.empty() && !responses.system().scalar_ports().empty()) {
      throw ConfigError("/method/impedance", tuned.impedance.problem);
    }
    return {std::move(tuned)};
  }
  std::vector<Tuned> out;
  for (const ImpedanceKind kind :
       {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::adapted, ImpedanceKind::fne,
        ImpedanceKind::across}) {
    if (kind == ImpedanceKind::across && !has_interface(method.kind)) continue;
    Tuned tuned{kind, tune_impedance(responses, kind)};
    const bool is_new = std::ranges::none_of(out, [&](const Tuned& known) {
      return known.impedance.by_port == tuned.impedance.by_port;
    });
    if (is_new && tuned.impedance.problem.empty()) out.push_back(std::move(tuned));
  }
  if (method.kind == WaveUpdate::interface && !out.empty() &&
      out.back().kind == ImpedanceKind::across) {
    std::ranges::rotate(out, out.end() - 1);  // of equals the first is taken
  }
  if (out.empty()) {  // all are ill-conditioned somewhere
    const PortMatches matches(responses);
    out.push_back(
        {ImpedanceKind::matched, {{matches.values().begin(), matches.values().end()}, {}}});
  }
  return out;
}

}  // namespace portwave
