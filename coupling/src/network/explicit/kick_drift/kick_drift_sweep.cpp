#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "network/explicit/kick_drift/kick_drift_island.hpp"

namespace portwave {

bool KickDriftIsland::is_local() const {
  const bool has_flows = !model.flow_power.empty() || !model.decay_flows.empty();
  return model.bent.empty() && model.decays() == 0 && !has_flows &&
         (model.inputs.empty() || momentum_rows.count() > 1) && (!model.has_shared || model.lumped);
}

void KickDriftIsland::find_block_inputs() {
  const auto by_block = [&](const std::vector<InputEntry>& entries) {
    std::vector<std::vector<int>> numbers(at(momentum_rows.count()));
    for (int e = 0; e < static_cast<int>(entries.size()); ++e) {
      numbers[at(momentum_rows.block_of(entries[at(e)].row))].push_back(e);
    }
    return numbers;
  };
  kicks_of_block = by_block(model.effort_kicks);
  power_of_block = by_block(model.effort_power);
}

/// As many passes at once as find their blocks in the first-level cache, or else in the second.
void KickDriftIsland::find_passes() {
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
  lost_in_pass.assign(passes.size() * at(momentum_rows.count()), 0.0);
  power_rows.assign(3 * at(scheme.stages()) * model.effort_power.size(), 0.0);
  const auto count = static_cast<int>(model.blocks.size());
  const int all_bytes = static_cast<int>(sizeof(double)) * kArrays * model.momenta();
  const int behind_bytes = std::max(1, all_bytes / count * model.reach);  // of one more pass
  passes_at_once = kNear_bytes / behind_bytes - 1;
  if (passes_at_once < 3)
    passes_at_once = all_bytes > kMiddle_bytes ? kMiddle_bytes / behind_bytes - 1 : 1;
  passes_at_once = count == 1 ? 1 : std::clamp(passes_at_once, 1, static_cast<int>(passes.size()));
  find_sweep_ranges();
}

/// Several ranges, each wide enough for the passes that follow one another in it; rather fewer passes at once.
void KickDriftIsland::find_sweep_ranges() {
  constexpr int kFewest = 4, kMost = 16;
  const auto count = momentum_rows.count();
  const auto wanted = [&](int passes_) { return 2 * passes_ * model.reach; };  // blocks of a range
  shared_passes_at_once =
      std::clamp(count / (2 * kFewest * model.reach), 1, std::max(passes_at_once, 1));
  const int ranges = shared_passes_at_once == 1
                         ? count
                         : std::clamp(count / wanted(shared_passes_at_once), 1, kMost);
  for (int r = 0; r <= ranges; ++r) {
    sweep_ranges.push_back(static_cast<int>(static_cast<long>(r) * count / ranges));
  }
}

void KickDriftIsland::sweep(IslandState& to, const Level& own) {
  const int blocks = momentum_rows.count(), reach = model.reach;
  const auto count = static_cast<int>(passes.size());
  const int at_once = momentum_rows.is_shared() ? shared_passes_at_once : passes_at_once;
  const int ranges = momentum_rows.is_shared() ? static_cast<int>(sweep_ranges.size()) - 1 : 1;
  for (int first = 0; first < count; first += at_once) {
    const int some = std::min(at_once, count - first);
    const auto do_block = [&](int k, int block) {
      lost_in(at(first + k), block) = do_pass(passes[at(first + k)], block, to, own);
    };
    // Every pass ends `reach` blocks before the one ahead of it, but for the ends of the island.
    momentum_rows.run(ranges, [&](int r) {
      const bool is_first = r == 0, is_last = r + 1 == ranges;
      const int begin = is_first ? 0 : sweep_ranges[at(r)];
      const int end = is_last ? blocks : sweep_ranges[at(r) + 1];
      for (int front = begin; front < end + (some - 1) * reach; ++front) {
        for (int k = 0; k < some; ++k) {
          const int block = front - k * reach;
          if (block < (is_first ? begin : begin + k * reach)) break;
          if (block < (is_last ? end : end - k * reach)) do_block(k, block);
        }
      }
    });
    if (some == 1 || ranges == 1) continue;
    momentum_rows.run(ranges - 1, [&](int r) {
      const int middle = sweep_ranges[at(r) + 1];
      for (int k = 1; k < some; ++k) {
        for (int block = middle - k * reach; block < middle + k * reach; ++block)
          do_block(k, block);
      }
    });
  }
}

MixedKickTask KickDriftIsland::mixed_kick_task(IslandState& to) {
  return {.map = model.mixed.view(),
          .c = c.data(),
          .strokes = strokes.data(),
          .base = base.data(),
          .z = w.data(),
          .u = to.u.data(),
          .has_room = model.has_gaps};
}

void KickDriftIsland::sweep_block(IslandState& to, const Level& own) {
  const int stages = scheme.stages();
  const double h = own.h;
  MixedKickTask mixed = mixed_kick_task(to);
  const Drift* const drifts = own.drifts.data();
  StrokeTask stroke = stroke_task(to, drifts[0]);
  for (int stage = 0;; ++stage) {
    if (is_mixed(stage)) {
      mixed.tau = scheme.kicks[at(stage)] * h;
      kernels.mixed_kick(mixed);
    } else {
      kernels.kick(kick_task(to, stage, h));
    }
    if (stage == stages) return;
    const Drift& d = drifts[scheme.drift_kind(stage)];
    const int next = stage + 1;
    const double mix = is_mixed(next) ? -model.mix_per_s * scheme.kicks[at(next)] * h : 0.0;
    CompensatedSum lost;
    if (model.has_shared && 2 * stage + 1 == stages) {
      kernels.apply(stroke.map, to.u.data(), term.data());
      kernels.apply(stroke.map, term.data(), next_term.data());
      for (const auto& [first, last] : shared_ranges) {
        lump(to, d, scheme.cubes * h * h * h, first, last, mix, lost);
      }
    } else if (stroke.map.count > 0) {
      stroke.tau = d.tau;
      stroke.mix = mix;
      lost.add(kernels.stroke(stroke));
    }
    if (!other_ranges.empty()) drift_alone(to, d, other_ranges, lost);
    dissipated.add(lost.value());
  }
}

void KickDriftIsland::sweep_on_ranks(IslandState& to, const Level& own) {
  for (std::size_t k = 0; k < passes.size(); ++k) {
    const auto do_blocks = [&](std::span<const int> blocks) {
      momentum_rows.run(blocks,
                        [&](int block) { lost_in(k, block) = do_pass(passes[k], block, to, own); });
    };
    do_blocks(border_blocks);
    exchange_after(passes[k], to, [&](std::initializer_list<double*> arrays) {
      momentum_exchange->begin(arrays);
    });
    do_blocks(inner_blocks);
    exchange_after(passes[k], to, [&](std::initializer_list<double*> arrays) {
      momentum_exchange->finish(arrays);
    });
  }
}

/// Kicks read strokes, and w where dampers are shared; drifts read u, and the middle one 𝒟u.
template <class Exchange>
void KickDriftIsland::exchange_after(const Pass& pass, IslandState& to, const Exchange& exchange) {
  switch (pass.kind) {
    case Pass::Kind::kick:
      if (model.has_shared && pass.stage < scheme.stages()) exchange({to.u.data()});
      return;
    case Pass::Kind::damp:
      return exchange({term.data()});
    case Pass::Kind::drift:
    case Pass::Kind::damp_twice:
      if (is_mixed(pass.stage + 1)) return exchange({w.data()});
      if (model.lumped) return exchange({strokes.data(), w.data()});
      return exchange({strokes.data()});
  }
}

void KickDriftIsland::add_passes(const Level& own) {
  momentum_rows.gather(lost_in_pass.data(), passes.size());
  for (std::size_t k = 0; k < passes.size(); ++k) {
    CompensatedSum lost;
    for (int block = 0; block < momentum_rows.count(); ++block) lost.add(lost_in(k, block));
    dissipated.add(lost.value());
  }
  const std::vector<InputEntry>& power = model.effort_power;
  if (power.empty()) return;
  momentum_rows.gather(power_rows.data(), 3 * at(scheme.stages()),
                       [&](int block) { return std::span(power_of_block[at(block)]); });
  const auto is_shared = [&](const InputEntry& entry) { return model.shared[at(entry.row)] != 0; };
  for (int stage = 0; stage < scheme.stages(); ++stage) {
    const double tau = own.drifts[at(scheme.drift_kind(stage))].tau;
    for (int k = 0; k < 2; ++k) {
      for (std::size_t e = 0; e < power.size(); ++e) {
        if (k > 0 && !is_shared(power[e])) continue;
        supplied.add(power[e].value * power_row(stage, k, e) *
                     moment(power[e].input, stage, tau, k, model.own_damping[at(power[e].row)]));
      }
    }
    if (2 * stage + 1 != scheme.stages()) continue;
    for (std::size_t e = 0; e < power.size(); ++e) {
      if (!is_shared(power[e])) continue;
      supplied.add(scheme.cubes * own.h * own.h * own.h / 6.0 * power[e].value *
                   power_row(stage, 2, e) * gauss_value(power[e].input, stage, 1));
    }
  }
}

void KickDriftIsland::kick_by_inputs(IslandState& to, int stage, double h, int block) {
  for (const int number : kicks_of_block[at(block)]) {
    const InputEntry& entry = model.effort_kicks[at(number)];
    to.u[at(entry.row)] +=
        scheme.kicks[at(stage)] * h * entry.value * kick_value(entry.input, stage);
  }
}

void KickDriftIsland::note_power(const Pass& pass, int block, const IslandState& to) {
  for (const int number : power_of_block[at(block)]) {
    const auto e = at(number), row = at(model.effort_power[e].row);
    if (pass.kind == Pass::Kind::damp_twice) {
      power_row(pass.stage, 2, e) = next_term[row];
      continue;
    }
    power_row(pass.stage, 0, e) = to.u[row];
    if (model.shared[row] == 0) continue;
    double damped = 0.0;
    for (RowMatrix::InnerIterator it(model.damping, static_cast<Eigen::Index>(row)); it; ++it) {
      damped += it.value() * to.u[at(static_cast<int>(it.col()))];
    }
    power_row(pass.stage, 1, e) = damped;
  }
}

double KickDriftIsland::do_pass(const Pass& pass, int block, IslandState& to, const Level& own) {
  if (pass.kind == Pass::Kind::kick && is_mixed(pass.stage)) {
    MixedKickTask task = mixed_kick_task(to);
    task.map = model.mixed.view(block);
    task.tau = scheme.kicks[at(pass.stage)] * own.h;
    kernels.mixed_kick(task);
    kick_by_inputs(to, pass.stage, own.h, block);
    return 0.0;
  }
  if (pass.kind == Pass::Kind::kick) {
    KickTask task = kick_task(to, pass.stage, own.h);
    task.map = model.force.view(block);
    kernels.kick(task);
    kick_by_inputs(to, pass.stage, own.h, block);
    return 0.0;
  }
  const StrokeRuns dampers = model.damping_map.view(block);
  if (pass.kind == Pass::Kind::damp) {
    note_power(pass, block, to);
    kernels.apply(dampers, to.u.data(), term.data());
    return 0.0;
  }
  CompensatedSum lost;
  const Drift& d = own.drifts[at(scheme.drift_kind(pass.stage))];
  const int next = pass.stage + 1;
  const double mix = is_mixed(next) ? -model.mix_per_s * scheme.kicks[at(next)] * own.h : 0.0;
  if (pass.kind == Pass::Kind::damp_twice) {
    kernels.apply(dampers, term.data(), next_term.data());
    note_power(pass, block, to);
    for (int r = first_shared[at(block)]; r < first_shared[at(block) + 1]; ++r) {
      const auto [first, last] = shared_ranges[at(r)];
      lump(to, d, scheme.cubes * own.h * own.h * own.h, first, last, mix, lost);
    }
  } else {
    note_power(pass, block, to);
  }
  if (pass.kind == Pass::Kind::drift && dampers.count > 0) {
    StrokeTask task = stroke_task(to, d);
    task.map = dampers;
    task.mix = mix;
    lost.add(kernels.stroke(task));
  }
  drift_alone(to, d, ranges_alone(block), lost);
  return lost.value();
}

/// Kicks at the ends of a step give the force itself.
bool KickDriftIsland::is_mixed(int stage) const {
  return !model.mixed.empty() && stage > 0 && stage < scheme.stages();
}

StrokeTask KickDriftIsland::stroke_task(IslandState& to, const Drift& d) {
  return {.map = model.damping_map.view(),
          .u = to.u.data(),
          .w = w.data(),
          .strokes = strokes.data(),
          .mass = model.mass.data(),
          .tau = d.tau,
          .has_room = model.has_gaps};
}

void KickDriftIsland::drift_alone(IslandState& to, const Drift& d,
                                  std::span<const MomentumRange> ranges, CompensatedSum& lost) {
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

void KickDriftIsland::lump(IslandState& to, const Drift& d, double cubes_s3, int first, int last,
                           double mix, CompensatedSum& lost) {
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
