#include "portwave/coupling/waves/small_island.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "kernels/small_island_kernels.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/port_solves.hpp"

namespace portwave {
namespace {

using Form = PortSolve::Form;
using Kernels = SmallIslandKernels;

/// A part of a small island: its port solve, and the location of its waves.
struct SmallPart {
  int batch;
  PortSolve solve;
  std::vector<int> waves;
};

/// How the kernels take a pass over swaps and reflections.
Kernels::Pass pass_of(const JunctionPass& pass) {
  switch (pass.kind) {
    case JunctionPass::Kind::exchange:
      return Kernels::exchange;
    case JunctionPass::Kind::average:
      return pass.factor == 1.0 ? Kernels::exchange : Kernels::average;
    case JunctionPass::Kind::resolve:
      return Kernels::resolve;
  }
  return Kernels::exchange;
}

class PairInRegisters final : public SmallIsland {
 public:
  PairInRegisters(const SmallPart& first, const SmallPart& second, const JunctionRun& run,
                  std::span<const double> values) {
    task_.parts[0] = first.solve;
    task_.parts[1] = second.solve;
    task_.waves[0] = first.waves[0];
    task_.waves[1] = second.waves[0];
    const bool swaps = run.form == JunctionForm::swap;
    if (!swaps) {
      task_.p = values[0];
      task_.s = values[1];
    }
    for (const Kernels::Pass pass : {Kernels::exchange, Kernels::average, Kernels::resolve}) {
      sweeps_[at(pass)] = small_island_kernels().pair_sweep(
          first.solve.form, second.solve.form, swaps ? Kernels::swap : Kernels::reflection, pass);
    }
  }

  bool iterate(const InnerUpdate& update, int evaluations, const double* b, double* a) override {
    const JunctionPasses& passes = update.passes();
    if (passes.second) return false;
    return sweeps_[at(pass_of(passes.first))](task_, evaluations, passes.first.factor, b, a);
  }

 private:
  PairTask task_;
  std::array<PairSweep, 3> sweeps_{};
};

class PackedIsland final : public SmallIsland {
 public:
  PackedIsland(std::vector<SmallPart> parts, CompiledJunctions junctions)
      : junctions_(std::move(junctions)), solve_(small_island_kernels().solve) {
    for (const SmallPart& part : parts) {
      offsets_.insert(offsets_.end(), part.waves.begin(), part.waves.end());
      parts_.push_back(part.solve);
      if (part.solve.form == Form::cubic) warm_.push_back({part.solve.last, part.solve.step, {}});
    }
  }

  bool iterate(const InnerUpdate& update, int evaluations, const double* b, double* a) override {
    const std::size_t waves = offsets_.size();
    double u[kMostWaves], out[kMostWaves];
    for (std::size_t i = 0; i < waves; ++i) out[i] = b[offsets_[i]];
    if (evaluations > 0) {
      remember();
      junctions_.exchange(out, u);
      for (int k = 0; k < evaluations; ++k) {
        if (k > 0) junctions_.update(update, out, u);
        if (solve_(parts_.data(), static_cast<int>(parts_.size()), u, out)) continue;
        restore();
        return false;
      }
    }
    junctions_.exchange(out, u);
    for (std::size_t i = 0; i < waves; ++i) a[offsets_[i]] = u[i];
    return true;
  }

 private:
  /// Data that a part's port solves carry along in the record, and their values before the first.
  struct Warm {
    double* last;
    int step;
    double before[3];
  };
  void remember() {
    for (Warm& own : warm_) {
      for (int i = 0; i < 3; ++i) own.before[i] = own.last[i * own.step];
    }
  }
  void restore() {
    for (const Warm& own : warm_) {
      for (int i = 0; i < 3; ++i) own.last[i * own.step] = own.before[i];
    }
  }

  CompiledJunctions junctions_;
  bool (*solve_)(const PortSolve* parts, int count, const double* u, double* b);
  std::vector<PortSolve> parts_;
  std::vector<int> offsets_;  // by local number of a wave
  std::vector<Warm> warm_;
};

/// The parts in these lanes; empty where they do not make a small island.
std::vector<SmallPart> parts_of(const WaveDiscretisation& waves,
                                std::span<const SmallIsland::Lanes> lanes, double* record) {
  std::vector<SmallPart> parts;
  std::size_t count = 0;
  for (const auto& [index, range] : lanes) {
    const BatchSlot& slot = waves.batch(index);
    if (slot.batch->wave_size() == 0) continue;
    const PortSolves* const solves = slot.batch->port_solves();
    if (solves == nullptr || range.last - range.first > SmallIsland::kMostLanes) return {};
    for (int lane = range.first; lane < range.last; ++lane) {
      SmallPart part{index, solves->port_solve(lane, record + slot.record), {}};
      count += static_cast<std::size_t>(slot.batch->wave_size());
      if (count > SmallIsland::kMostWaves) return {};
      for (int j = 0; j < slot.batch->wave_size(); ++j) {
        part.waves.push_back(slot.wave + j * slot.batch->stride() + lane);
      }
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

/// Two parts of one port each that a single junction joins, neither a fixed or free end nor dense.
bool is_pair(const std::vector<SmallPart>& parts, const std::vector<JunctionRun>& runs) {
  return parts.size() == 2 && parts[0].waves.size() == 1 && parts[1].waves.size() == 1 &&
         runs.size() == 1 && runs[0].count == 1 && runs[0].arity == 2 &&
         runs[0].form != JunctionForm::dense;
}

/// The roots of one batch are found faster side by side than one after another.
bool has_roots_side_by_side(std::span<const SmallPart> parts) {
  const auto beside = [](const SmallPart& a, const SmallPart& b) {
    return a.batch == b.batch && a.solve.form == Form::cubic;
  };
  return std::ranges::adjacent_find(parts, beside) != parts.end();
}

}  // namespace

std::unique_ptr<SmallIsland> SmallIsland::of(const WaveDiscretisation& waves,
                                             std::span<const Lanes> lanes,
                                             std::span<const int> junctions, double* record,
                                             std::vector<int>& numbers) {
  std::vector<SmallPart> parts = parts_of(waves, lanes, record);
  if (parts.empty() || junctions.empty()) return nullptr;
  std::ranges::stable_sort(parts, [](const SmallPart& a, const SmallPart& b) {
    return a.solve.form == Form::cubic && b.solve.form != Form::cubic;
  });
  const auto number = [&](int first, int step) {
    for (const SmallPart& part : parts) {
      for (const int wave : part.waves) numbers[at(wave)] = std::exchange(first, first + step);
    }
  };
  number(0, 1);
  CompiledJunctions packed = waves.interconnection().compile(junctions, numbers);
  number(-1, 0);
  if (!is_pair(parts, packed.runs())) {
    if (has_roots_side_by_side(parts)) return nullptr;
    return std::make_unique<PackedIsland>(std::move(parts), std::move(packed));
  }
  const JunctionRun& run = packed.runs().front();
  const std::span<const double> values = packed.values(run);
  // P as it is seen from the first part.
  if (packed.offsets(run)[0] == 0) {
    return std::make_unique<PairInRegisters>(parts[0], parts[1], run, values);
  }
  const double turned[] = {values.empty() ? 0.0 : -values[0], values.empty() ? 0.0 : values[1]};
  return std::make_unique<PairInRegisters>(parts[0], parts[1], run, turned);
}

const SmallIslandKernels& small_island_kernels() { return PORTWAVE_KERNELS(kSmallIslandKernels); }

}  // namespace portwave
