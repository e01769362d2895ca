#include <algorithm>
#include <cstddef>

#include "network/explicit/kick_drift_stepper.hpp"

namespace portwave {

bool KickDriftIsland::Impl::is_local() const {
  return model.bent.empty() && model.decays() == 0 && model.inputs.empty() &&
         (!model.has_shared || model.lumped);
}

/// As many passes at once as find their blocks in the first-level cache, or else in the second.
void KickDriftIsland::Impl::find_passes() {
  constexpr int kNear_bytes = 40 << 10, kMiddle_bytes = 1 << 20;
  constexpr int kArrays = 5;  // u, w, Y, c and y₀ beside one another
  if (!is_local()) return;
  for (int stage = 0; stage <= scheme.stages(); ++stage) {
    passes.push_back({Pass::Kind::kick, stage});
    if (stage == scheme.stages()) break;
    const bool is_middle = 2 * stage + 1 == scheme.stages();
    if (model.has_shared && is_middle) {
      passes.push_back({Pass::Kind::damp, stage});
      passes.push_back({Pass::Kind::damp_twice, stage});
    } else {
      passes.push_back({Pass::Kind::drift, stage});
    }
  }
  lost_in_pass.resize(passes.size());
  const auto count = static_cast<int>(model.blocks.size());
  const int all_bytes = static_cast<int>(sizeof(double)) * kArrays * model.momenta();
  const int behind_bytes = std::max(1, all_bytes / count * model.reach);  // of one more pass
  passes_at_once = kNear_bytes / behind_bytes - 1;
  if (passes_at_once < 3)
    passes_at_once = all_bytes > kMiddle_bytes ? kMiddle_bytes / behind_bytes - 1 : 1;
  passes_at_once = std::clamp(passes_at_once, 1, static_cast<int>(passes.size()));
}

void KickDriftIsland::Impl::sweep(IslandState& to, const Level& own) {
  const auto blocks = static_cast<int>(model.blocks.size());
  const auto count = static_cast<int>(passes.size());
  std::ranges::fill(lost_in_pass, CompensatedSum());
  for (int first = 0; first < count; first += passes_at_once) {
    const int last = std::min(first + passes_at_once, count) - 1;
    for (int front = 0; front < blocks + (last - first) * model.reach; ++front) {
      for (int k = first; k <= last; ++k) {
        const int block = front - (k - first) * model.reach;
        if (block < 0 || block >= blocks) continue;
        do_pass(passes[at(k)], block, to, own, lost_in_pass[at(k)]);
      }
    }
  }
  for (const CompensatedSum& lost : lost_in_pass) dissipated.add(lost.value());
}

void KickDriftIsland::Impl::do_pass(const Pass& pass, int block, IslandState& to, const Level& own,
                                    CompensatedSum& lost) {
  if (pass.kind == Pass::Kind::kick && is_mixed(pass.stage)) {
    kernels.mixed_kick({.map = model.mixed.view(block),
                        .c = c.data(),
                        .strokes = strokes.data(),
                        .base = base.data(),
                        .z = w.data(),
                        .u = to.u.data(),
                        .tau = scheme.kicks[at(pass.stage)] * own.h,
                        .has_room = model.has_gaps});
    return;
  }
  if (pass.kind == Pass::Kind::kick) {
    KickTask task = kick_task(to, pass.stage, own.h);
    task.map = model.force.view(block);
    kernels.kick(task);
    return;
  }
  const StrokeRuns dampers = model.damping_map.view(block);
  if (pass.kind == Pass::Kind::damp) {
    kernels.apply(dampers, to.u.data(), term.data());
    return;
  }
  const Drift& d = own.drifts[at(scheme.drift_kind(pass.stage))];
  const int next = pass.stage + 1;
  const double mix = is_mixed(next) ? -model.mix_per_s * scheme.kicks[at(next)] * own.h : 0.0;
  if (pass.kind == Pass::Kind::damp_twice) {
    kernels.apply(dampers, term.data(), next_term.data());
    for (int r = first_shared[at(block)]; r < first_shared[at(block) + 1]; ++r) {
      const auto [first, last] = shared_ranges[at(r)];
      lump(to, d, scheme.cubes * own.h * own.h * own.h, first, last, mix, lost);
    }
  } else if (dampers.count > 0) {
    StrokeTask task = stroke_task(to, d);
    task.map = dampers;
    task.mix = mix;
    lost.add(kernels.stroke(task));
  }
  const int first = first_other[at(block)], last = first_other[at(block) + 1];
  drift_alone(to, d, std::span(other_ranges).subspan(at(first), at(last - first)), lost);
}

/// Kicks at the ends of a step give the force itself.
bool KickDriftIsland::Impl::is_mixed(int stage) const {
  return !model.mixed.empty() && stage > 0 && stage < scheme.stages();
}

StrokeTask KickDriftIsland::Impl::stroke_task(IslandState& to, const Drift& d) {
  return {.map = model.damping_map.view(),
          .u = to.u.data(),
          .w = w.data(),
          .strokes = strokes.data(),
          .mass = model.mass.data(),
          .tau = d.tau,
          .has_room = model.has_gaps};
}

void KickDriftIsland::Impl::drift_alone(IslandState& to, const Drift& d,
                                        std::span<const MomentumRange> ranges,
                                        CompensatedSum& lost) {
  for (const auto& [first, last, is_uniform] : ranges) {
    if (model.has_own) {
      lost.add(kernels.decay({.first = first,
                              .last = last,
                              .is_uniform = is_uniform,
                              .psi = d.psi.data(),
                              .factor = d.factor.data(),
                              .lost = d.lost.data(),
                              .u = to.u.data(),
                              .w = model.has_shared ? w.data() : nullptr,
                              .strokes = strokes.data()}));
    } else {
      kernels.axpy(last - first, d.tau, to.u.data() + first, strokes.data() + first);
      for (int i = first; i < last && model.has_shared; ++i) w[at(i)] = d.tau * to.u[at(i)];
    }
  }
}

void KickDriftIsland::Impl::lump(IslandState& to, const Drift& d, double cubes_s3, int first,
                                 int last, double mix, CompensatedSum& lost) {
  lost.add(kernels.lumped({.first = first,
                           .last = last,
                           .tau = d.tau,
                           .lump = cubes_s3,
                           .mix = mix,
                           .mass = model.mass.data(),
                           .u = to.u.data(),
                           .once = term.data(),
                           .twice = next_term.data(),
                           .w = w.data(),
                           .strokes = strokes.data()}));
}

}  // namespace portwave
