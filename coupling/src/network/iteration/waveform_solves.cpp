// The iterations themselves, lane group by lane group and channel by channel.

#include <algorithm>
#include <cmath>

#include "network/iteration/waveform_impl.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

void WaveformIteration::Impl::add_inputs(const LaneGroup& lane_group, std::size_t point,
                                         double factor, double* g) const {
  if (!lane_group.driven) return;
  const double* u = inputs.data() + point * system.inputs().size();
  for (std::size_t l = 0; l < lane_group.of.blocks.size(); ++l) {
    const SparseMatrix& B = block(lane_group.of.blocks[l]).B;
    for (int k = 0; k < B.outerSize(); ++k) {
      const double own = factor * u[k];
      for (SparseMatrix::InnerIterator it(B, k); it; ++it)
        g[static_cast<std::size_t>(it.row()) * static_cast<std::size_t>(lane_group.width) + l] +=
            it.value() * own;
    }
  }
}

template <class Algebra, class Visit>
void WaveformIteration::Impl::solve_group(const LaneGroup& lane_group, const Visit& visit) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const Class& own = class_of(lane_group);
  const Scratch to = scratch_of(lane_group);
  std::copy_n(group_start.data() + lane_group.start, m * W, to.x);
  for (int step = 0; step < window; ++step) {
    for (int i = 0; i < stages; ++i) {
      const std::size_t point = point_of(step, i);
      double* g = to.X + i * m * W;
      if (is_lm) {
        Algebra::scale(m, 1.0 / parameters.lambda, wave(zeta, lane_group, point), g);
      } else {
        std::fill(g, g + m * W, 0.0);
        lane_group.columns.enter(at_point(driving, point), to.f, g);
      }
      add_inputs(lane_group, point, 1.0, g);
    }
    Algebra::step(own.solver, to.x, to.X, to.solver);
    visit(step, to.X, to.x);
  }
}

/// z⁰ = Qx⁰ − λ[(J_d − αR + μEQ⁻¹)Qx⁰ + Bu] of the constant x⁰.
template <class Algebra>
void WaveformIteration::Impl::begin_lm(const LaneGroup& lane_group) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const Class& own = class_of(lane_group);
  const DynamicParameters& p = parameters;
  const double* x0 = group_start.data() + lane_group.start;
  const Scratch to = scratch_of(lane_group);
  double* constant = to.x;
  double* z = to.X;
  std::fill(constant, constant + m * W, 0.0);
  std::fill(z, z + m * W, 0.0);
  Algebra::add_product(own.Q, 1.0, x0, z);
  Algebra::add_product(own.T, 1.0, x0, constant);
  Algebra::add_product(own.J, -p.lambda, z, constant);
  Algebra::add_product(own.R, p.lambda * p.alpha, z, constant);
  Algebra::add_product(own.E, -p.lambda * p.mu, x0, constant);
  for (std::size_t point = 0; point < count; ++point) {
    std::copy(constant, constant + m * W, wave(zeta, lane_group, point));
    add_inputs(lane_group, point, -p.lambda, wave(zeta, lane_group, point));
  }
}

void WaveformIteration::Impl::begin(double time_s, std::span<const double> x) {
  const std::size_t q = system.inputs().size();
  for (std::size_t point = 0; q > 0 && point < count; ++point) {
    const std::size_t step = point / static_cast<std::size_t>(stages);
    const double c = table.c[point % static_cast<std::size_t>(stages)];
    const double t = time_s + (static_cast<double>(step) + c) * h;
    const double begin_s = time_s + static_cast<double>(step) * h;
    for (std::size_t k = 0; k < q; ++k) {
      const CondensedInput& input = system.inputs()[k];
      try {
        inputs[point * q + k] =
            input.signal->in_step({t, begin_s, h, c, std::min(stages, kMostStages)});
      } catch (const std::exception& error) {
        throw NetworkFault(input.part, -1, StepFault::threw, error.what());
      } catch (...) {
        throw NetworkFault(input.part, -1, StepFault::threw, "an unknown exception");
      }
      if (!std::isfinite(inputs[point * q + k])) {
        throw NetworkFault(input.part, -1, StepFault::not_finite,
                           "an external input is not finite");
      }
    }
  }
  std::copy(x.begin(), x.end(), start.begin());
  given_start.clear();
  iterations = 0;
  for (const LaneGroup& lane_group : lane_groups) {
    const double* from[kLaneGroup];
    lane_pointers(system.blocks(), lane_group.of, static_cast<const double*>(start.data()), from);
    with_algebra(lane_group, [&]<class Algebra>(Algebra, const LaneGroup& own) {
      Algebra::gather(own.size, from, group_start.data() + own.start);
      if (is_lm) begin_lm<Algebra>(own);
    });
  }
  if (!is_lm) begin_relaxation(start.data(), 0);
}

/// What is seen of these states: at every point, `stride` doubles apart.
void WaveformIteration::Impl::begin_relaxation(const double* values, std::size_t stride) {
  for (std::size_t i = 0; i < block_seen.size(); ++i) {
    const CondensedBlock& own = system.blocks()[i];
    for (int c = 0; c < own.channels; ++c) {
      double w = 0.0;
      for (std::size_t point = 0; point < count; ++point) {
        if (point == 0 || stride > 0) w = block_seen[i].dot(c, values + point * stride + own.first);
        at_point(seen, point)[own.first_channel + c] = w;
      }
    }
  }
}

void WaveformIteration::Impl::start_from(std::span<const double> values) {
  given_start.assign(values.begin(), values.end());
  begin_relaxation(values.data(), static_cast<std::size_t>(n));
}

WaveformChange WaveformIteration::Impl::iterate(const ForEach& each) {
  is_lm ? iterate_lm(each) : relax(each);
  given_start.clear();
  ++iterations;
  WaveformChange out;
  for (std::size_t i = 0; i < change.size(); ++i) {
    out.change += change[i];
    out.size += size[i];
    out.finite = out.finite && finite[i] != 0;
  }
  out.change = std::sqrt(out.change);
  out.size = std::sqrt(out.size);
  out.finite = out.finite && std::isfinite(out.change) && std::isfinite(out.size);
  return out;
}

/// x from z, r = 2Tx − ζ, s = shift⁻¹r, as far as blocks know without the others.
template <class Algebra>
void WaveformIteration::Impl::split_group(const LaneGroup& lane_group) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const Class& own = class_of(lane_group);
  const Scratch to = scratch_of(lane_group);
  solve_group<Algebra>(lane_group, [&](int step, const double* X, const double*) {
    for (int i = 0; i < stages; ++i) {
      const std::size_t point = point_of(step, i);
      double* moved = wave(delta, lane_group, point);
      Algebra::scale(m, -1.0, wave(zeta, lane_group, point), to.r);
      Algebra::add_product(own.T, 2.0, X + i * m * W, to.r);
      Algebra::solve(own.shift, to.r, to.s, to.more);
      lane_group.columns.see(to.s, to.f);
      double* w = at_point(seen, point);
      for (int c = 0; c < lane_group.columns.count(); ++c) {
        for (int l = 0; l < W; ++l) {
          if (lane_group.columns.channel(c, l) >= 0)
            w[lane_group.columns.channel(c, l)] = to.f[c * W + l];
        }
      }
      // ζ⁺ − ζ = 2Ts − r − ζ = 2T(s − x), but for what the coupling adds.
      Algebra::subtract(m, X + i * m * W, to.s);
      std::fill(moved, moved + m * W, 0.0);
      Algebra::add_product(own.T, 2.0, to.s, moved);
    }
  });
}

/// ζ⁺
template <class Algebra>
void WaveformIteration::Impl::join_group(const LaneGroup& lane_group) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const Class& prepared_class = class_of(lane_group);
  const Scratch to = scratch_of(lane_group);
  double moved_sum[W] = {}, size_sum[W] = {};
  for (std::size_t point = 0; point < count; ++point) {
    double* own = wave(zeta, lane_group, point);
    double* moved = wave(delta, lane_group, point);
    lane_group.columns.enter(at_point(driving, point), to.f, moved);
    double moved_here[W], size_here[W];
    Algebra::add(m, moved, own);
    if (parameters.metric == IterationMetric::energy) {
      Algebra::bilinear(prepared_class.Q, moved, moved, moved_here);
      Algebra::bilinear(prepared_class.Q, own, own, size_here);
    } else {
      Algebra::sum_squares(m, moved, moved_here);
      Algebra::sum_squares(m, own, size_here);
    }
    const double share = point_weight(point);
    for (int l = 0; l < W; ++l) {
      moved_sum[l] += share * moved_here[l];
      size_sum[l] += share * size_here[l];
    }
  }
  for (std::size_t l = 0; l < lane_group.of.blocks.size(); ++l) {
    const auto index = static_cast<std::size_t>(lane_group.of.blocks[l]);
    change[index] = moved_sum[l];
    size[index] = size_sum[l];
    finite[index] = std::isfinite(moved_sum[l]) && std::isfinite(size_sum[l]) ? 1 : 0;
  }
}

void WaveformIteration::Impl::iterate_lm(const ForEach& each) {
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    split_group<Algebra>(lane_group);
  });
  // Stage by stage: what the couplings send.
  if (channels > 0) {
    for_stages(each, [&](std::size_t point, double* scratch) {
      double* w = scratch + channels;
      double* f = at_point(driving, point);
      coupling.solve(at_point(seen, point), w, scratch);
      for (int c = 0; c < channels; ++c) f[c] = C_rows.dot(c, w);
    });
  }
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    join_group<Algebra>(lane_group);
  });
}

void WaveformIteration::Impl::drive_all(const ForEach& each) {
  for_stages(each, [&](std::size_t point, double*) {
    const double* w = at_point(seen, point);
    double* f = at_point(driving, point);
    for (int c = 0; c < channels; ++c) f[c] = C_rows.dot(c, w);
  });
}

void WaveformIteration::Impl::drive(int channel) {
  for (std::size_t point = 0; point < count; ++point)
    at_point(driving, point)[channel] = C_rows.dot(channel, at_point(seen, point));
}

void WaveformIteration::Impl::relax(const ForEach& each) {
  if (parameters.kind == IterationKind::jacobi) {
    drive_all(each);
    for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
      relax_group<Algebra>(lane_group);
    });
    return;
  }
  for (std::size_t k = 0; k + 1 < levels.size(); ++k) {
    each(levels[k + 1] - levels[k], [&](int i) {
      const LaneGroup& lane_group = lane_groups[static_cast<std::size_t>(levels[k] + i)];
      for (const int index : lane_group.of.blocks) {
        for (int c = 0; c < block(index).channels; ++c) drive(block(index).first_channel + c);
      }
      with_algebra(lane_group, [&]<class Algebra>(Algebra, const LaneGroup& own) {
        relax_group<Algebra>(own);
      });
    });
  }
}

template <class Algebra>
void WaveformIteration::Impl::relax_group(const LaneGroup& lane_group) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const int lanes = static_cast<int>(lane_group.of.blocks.size());
  const Scratch to = scratch_of(lane_group);
  double moved_sum[W] = {}, size_sum[W] = {};
  bool sound[W];
  std::fill(sound, sound + W, true);
  solve_group<Algebra>(lane_group, [&](int step, const double* X, const double* x) {
    for (int i = 0; i < stages; ++i) {
      const std::size_t point = point_of(step, i);
      const double share = point_weight(point);
      double* w = at_point(seen, point);
      lane_group.columns.see(X + i * m * W, to.f);
      for (int c = 0; c < lane_group.columns.count(); ++c) {
        for (int l = 0; l < lanes; ++l) {
          const int channel = lane_group.columns.channel(c, l);
          if (channel < 0) continue;
          const double now = to.f[c * W + l];
          moved_sum[l] += share * (now - w[channel]) * (now - w[channel]);
          size_sum[l] += share * now * now;
          w[channel] = now;
        }
      }
    }
    for (int l = 0; l < lanes; ++l) sound[l] = sound[l] && std::isfinite(x[l]);
  });
  for (int l = 0; l < lanes; ++l) {
    const int index = lane_group.of.blocks[static_cast<std::size_t>(l)];
    const auto k = static_cast<std::size_t>(index);
    change[k] = moved_sum[l];
    size[k] = size_sum[l];
    // Only blocks without channels show in nothing else.
    finite[k] = (sound[l] || block(index).channels > 0) && std::isfinite(moved_sum[l]) &&
                        std::isfinite(size_sum[l])
                    ? 1
                    : 0;
  }
}

void WaveformIteration::Impl::solve(const ForEach& each, std::span<double> out) {
  if (!is_lm && iterations == 0) {
    for (std::size_t point = 0; point < count; ++point) {
      double* to = out.data() + point * static_cast<std::size_t>(n);
      if (given_start.empty()) {
        std::copy(start.begin(), start.end(), to);
      } else {
        std::copy_n(given_start.data() + point * static_cast<std::size_t>(n), n, to);
      }
    }
    return;
  }
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    solve_group<Algebra>(lane_group, [&](int step, const double* X, const double*) {
      for (int i = 0; i < stages; ++i) {
        double* to[kLaneGroup];
        lane_pointers(system.blocks(), lane_group.of,
                      out.data() + point_of(step, i) * static_cast<std::size_t>(n), to);
        Algebra::scatter(lane_group.size, static_cast<int>(lane_group.of.blocks.size()),
                         X + i * lane_group.size * Algebra::kWidth, to);
      }
    });
  });
}

void WaveformIteration::Impl::copy_z(std::span<double> out) const {
  for (const LaneGroup& lane_group : lane_groups) {
    for (std::size_t point = 0; point < count; ++point) {
      double* to[kLaneGroup];
      lane_pointers(system.blocks(), lane_group.of,
                    out.data() + point * static_cast<std::size_t>(n), to);
      const double* from = zeta.data() + lane_group.waveform +
                           point * static_cast<std::size_t>(lane_group.size) *
                               static_cast<std::size_t>(lane_group.width);
      with_algebra(lane_group, [&]<class Algebra>(Algebra, const LaneGroup& own) {
        Algebra::scatter(own.size, static_cast<int>(own.of.blocks.size()), from, to);
      });
    }
  }
}

template <class Algebra>
void WaveformIteration::Impl::finish_group(const LaneGroup& lane_group, std::span<double> states) {
  constexpr int W = Algebra::kWidth;
  const int m = lane_group.size;
  const auto lanes = lane_group.of.blocks.size();
  const Class& own = class_of(lane_group);
  const Scratch scratch = scratch_of(lane_group);
  double* z = scratch.r;
  solve_group<Algebra>(lane_group, [&](int step, const double* X, const double* x) {
    double stored[W], lost[W] = {}, supplied[W] = {};
    Algebra::bilinear(own.energy, x, x, stored);
    for (int i = 0; i < stages; ++i) {
      const double share = h * table.b[static_cast<std::size_t>(i)];
      double here[W];
      std::fill(z, z + m * W, 0.0);
      Algebra::add_product(own.Q, 1.0, X + i * m * W, z);
      Algebra::bilinear(own.R, z, z, here);
      for (int l = 0; l < W; ++l) lost[l] += share * here[l];
      for (std::size_t l = 0; lane_group.driven && l < lanes; ++l) {
        const auto index = static_cast<std::size_t>(lane_group.of.blocks[l]);
        if (supply[index].nonZeros() == 0) continue;
        for (int k = 0; k < m; ++k) scratch.lane[k] = X[(i * m + k) * W + static_cast<int>(l)];
        supplied[l] +=
            share * portwave::bilinear(supply[index], scratch.lane,
                                       inputs.data() + point_of(step, i) * system.inputs().size());
      }
    }
    for (std::size_t l = 0; l < lanes; ++l) {
      ledger[static_cast<std::size_t>(step) * change.size() +
             static_cast<std::size_t>(lane_group.of.blocks[l])] = {stored[l], supplied[l], lost[l]};
    }
    double* to[kLaneGroup];
    lane_pointers(system.blocks(), lane_group.of,
                  states.data() + static_cast<std::size_t>(step) * static_cast<std::size_t>(n), to);
    Algebra::scatter(m, static_cast<int>(lanes), x, to);
  });
}

void WaveformIteration::Impl::finish(const ForEach& each, std::span<double> states,
                                     std::span<StepEnergies> energies) {
  const std::size_t blocks = change.size();
  // Without any iteration Jacobi has no driving waveforms yet: those of the start iterate.
  if (!is_lm && iterations == 0) drive_all(each);
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    finish_group<Algebra>(lane_group, states);
  });
  for (std::size_t step = 0; step < static_cast<std::size_t>(window); ++step) {
    StepEnergies sum{0.0, 0.0, 0.0};
    for (std::size_t i = 0; i < blocks; ++i) {
      const StepEnergies& e = ledger[step * blocks + i];
      sum.stored_J += e.stored_J;
      sum.supplied_J += e.supplied_J;
      sum.dissipated_J += e.dissipated_J;
    }
    energies[step] = sum;
  }
}

}  // namespace portwave
