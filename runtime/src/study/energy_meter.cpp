#include "study/energy_meter.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace portwave {
namespace {

std::optional<std::int64_t> count_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  if (!(in >> value) || value < 0) return std::nullopt;
  return value;
}

/// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; AMD's have the same names.
bool is_package(const std::filesystem::path& zone) {
  const std::string name = zone.filename().string();
  if (!name.starts_with("intel-rapl:") || std::ranges::count(name, ':') != 1) return false;
  std::ifstream in(zone / "name");
  std::string what;
  return in >> what && what.starts_with("package");
}

}  // namespace

EnergyMeter::EnergyMeter(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> zones;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (is_package(entry.path())) zones.push_back(entry.path());
  }
  std::ranges::sort(zones);
  if (zones.empty()) {
    note_ = fmt::format("not known: {} has no counters of the processor packages (RAPL)",
                        folder.string());
    return;
  }
  for (const auto& zone : zones) {
    const std::filesystem::path file = zone / "energy_uj";
    const auto now = count_in(file), range = count_in(zone / "max_energy_range_uj");
    if (!now || !range) {
      note_ = fmt::format("not known: {} cannot be read; mostly only root may", file.string());
      counters_.clear();
      return;
    }
    counters_.push_back({file, *range, *now});
  }
  note_ = fmt::format("of {} processor package{} (RAPL), with whatever else runs there",
                      counters_.size(), counters_.size() == 1 ? "" : "s");
}

std::optional<double> EnergyMeter::read_J() {
  double sum_J = 0.0;
  bool is_known = !counters_.empty();
  for (Counter& counter : counters_) {
    const auto now = count_in(counter.file);
    if (!now) {
      is_known = false;
      continue;
    }
    std::int64_t change_uJ = *now - counter.last_uJ;
    if (change_uJ < 0) change_uJ += counter.range_uJ;  // it has gone round
    counter.last_uJ = *now;
    sum_J += 1e-6 * static_cast<double>(change_uJ);
  }
  return is_known ? std::optional(sum_J) : std::nullopt;
}

}  // namespace portwave
