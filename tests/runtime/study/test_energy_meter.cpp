// Counters of energy, in a folder that looks like Linux's.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <portwave/runtime/study/scaling.hpp>

#include "study/energy_meter.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_energy_meter {
namespace {

using testing::TemporaryFolder;

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text << "\n";
}

void set(const std::filesystem::path& zone, std::int64_t energy_uJ) {
  write(zone / "energy_uj", std::to_string(energy_uJ));
}

std::filesystem::path add_zone(const std::filesystem::path& folder, const std::string& zone,
                               const std::string& name, std::int64_t energy_uJ) {
  std::filesystem::create_directory(folder / zone);
  write(folder / zone / "name", name);
  write(folder / zone / "max_energy_range_uj", "1000000");
  set(folder / zone, energy_uJ);
  return folder / zone;
}

TEST(EnergyMeters, AddUpPackagesAndSeeCountersGoRound) {
  const TemporaryFolder folder;
  const auto first = add_zone(folder.path(), "intel-rapl:0", "package-0", 100);
  const auto second = add_zone(folder.path(), "intel-rapl:1", "package-1", 999'000);
  const auto core = add_zone(folder.path(), "intel-rapl:0:0", "core", 0);
  const auto machine = add_zone(folder.path(), "intel-rapl:2", "psys", 0);
  EnergyMeter meter(folder.path());
  ASSERT_TRUE(meter.is_there()) << meter.note();
  EXPECT_NE(meter.note().find("2 processor packages"), std::string::npos) << meter.note();
  set(first, 300'100);
  set(core, 500'000);  // is in the package
  set(machine, 500'000);
  EXPECT_DOUBLE_EQ(meter.read_J().value(), 0.3);
  EXPECT_DOUBLE_EQ(meter.read_J().value(), 0.0);
  set(second, 4'000);  // 1000 before the end, and 4000 after
  EXPECT_DOUBLE_EQ(meter.read_J().value(), 5e-3);
  std::filesystem::remove(second / "energy_uj");
  EXPECT_FALSE(meter.read_J().has_value());
}

TEST(EnergyMeters, SayWhyTheyKnowNothing) {
  const TemporaryFolder folder;
  EnergyMeter none(folder / "no_such");
  EXPECT_FALSE(none.is_there());
  EXPECT_FALSE(none.read_J().has_value());
  EXPECT_NE(none.note().find("has no counters"), std::string::npos) << none.note();
  const auto zone = add_zone(folder.path(), "intel-rapl:0", "package-0", 1);
  write(zone / "energy_uj", "?");  // root could not be kept from reading it
  EnergyMeter closed(folder.path());
  EXPECT_FALSE(closed.is_there());
  EXPECT_NE(closed.note().find("energy_uj cannot be read"), std::string::npos) << closed.note();
}

TEST(EnergyMeters, GiveRowsTheirEnergy) {
  const TemporaryFolder folder;
  ScalingOptions options;
  options.threads = {1, 1024};
  options.repetitions = 2;
  options.steps = 2;
  options.energy_counters = folder.path();
  const auto without = study_strong_scaling(testing::pair_scenario(), options);
  for (const ScalingRow& row : without.rows) EXPECT_FALSE(row.energy_per_step_J.has_value());
  add_zone(folder.path(), "intel-rapl:0", "package-0", 1);
  const auto with = study_strong_scaling(testing::pair_scenario(), options);
  EXPECT_EQ(with.rows.front().energy_per_step_J, 0.0);           // the counter stands still
  EXPECT_FALSE(with.rows.back().energy_per_step_J.has_value());  // predicted
}

}  // namespace
}  // namespace portwave::test_energy_meter
