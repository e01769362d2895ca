#include "step/rank_agreement.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "parallel/build_id.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "step/states/step_identity.hpp"

namespace portwave {
namespace {

/// Checks that `own` is the same everywhere; the error names the ranks that differ from the first.
void expect_same(Ranks& ranks, std::uint64_t own, const char* what) {
  const std::vector<std::uint64_t> all = gather_values(ranks, own);
  std::string others;
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] != all[0]) others += fmt::format("{}{}", others.empty() ? "" : ", ", r);
  }
  if (!others.empty()) {
    throw RankError(
        fmt::format("{} differ between ranks: rank 0 has not the same as rank {}", what, others));
  }
}

/// Options that slices have in common: each has impedances for its own ports.
StepIdentity of_all_slices(const StepperOptions& options) {
  StepperOptions common = options;
  if (common.method.couples_by_waves()) common.method.waves().impedance.clear();
  return {common, common.method};
}

}  // namespace

void expect_same_inputs(const System& system, const StepperOptions& options) {
  Digest version;
  version.add(kVersion);
  expect_same(*options.ranks, version.value(), "the versions of portwave");
  Digest program;
  const std::span<const std::byte> id = build_id();
  program.add(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
  expect_same(*options.ranks, program.value(), "the programs, builds of one version,");
  const bool is_slice = system.slice() != nullptr;
  Digest inputs;
  inputs.add(is_slice ? of_all_slices(options).digest()
                      : StepIdentity(system, options, options.method).digest());
  for (std::size_t i = 0; !is_slice && i < system.parts().size(); ++i) {
    for (const double x : system.parts()[i].initial_state) inputs.add(x);
  }
  if (!is_slice) inputs.add(options.threads);
  inputs.add(options.start_s);
  inputs.add(static_cast<int>(options.grain.kind));
  inputs.add(options.grain.count);
  expect_same(*options.ranks, inputs.value(), "the systems, or the options of their steps,");
}

void expect_same_stepper(const Stepper& stepper, Ranks& ranks) {
  Digest hash;
  const bool is_slice = stepper.system().slice() != nullptr;
  if (!is_slice && stepper.method().method.couples_by_waves()) {
    for (const double gamma : stepper.method().method.waves().impedance) hash.add(gamma);
  }
  const EnergyTotals energy = stepper.energy();
  hash.add(energy.initial_J);
  hash.add(energy.initial_tank_J);
  expect_same(ranks, hash.value(), "the parameters of parts");
}

void expect_same_cut(const RankCut& cut, Ranks& ranks) {
  Digest hash;
  for (std::size_t t = 0; t < cut.partition.tasks.size(); ++t) {
    hash.add(cut.rank_of_task[t]);
    for (const TaskSlice& slice : cut.partition.tasks[t].slices) {
      hash.add(slice.batch);
      hash.add(slice.lanes.first);
      hash.add(slice.lanes.last);
    }
  }
  expect_same(ranks, hash.value(), "the cuts into tasks");
}

}  // namespace portwave
