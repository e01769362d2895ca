#include "network/explicit/kick_drift/kick_drift_island.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace portwave {

const StrokeKernels& stroke_kernels() {
  static const StrokeKernels& kernels = PORTWAVE_KERNELS(kStrokeKernels);
  return kernels;
}

KickDriftScheme KickDriftScheme::of_order(int order) {
  // Half of each; the middle follows from the sums, which are 1.
  std::vector<double> b, a;
  if (order == 4) {
    b = {.0829844064174052, .396309801498368, -.0390563049223486};
    a = {.245298957184271, .604872665711080};
    b.push_back(1.0 - 2.0 * (b[0] + b[1] + b[2]));
    a.push_back(0.5 - (a[0] + a[1]));
    b.insert(b.end(), {b[2], b[1], b[0]});
    a.insert(a.end(), {a[2], a[1], a[0]});
  } else {
    b = {.0414649985182624, .198128671918067, -.0400061921041533, .0752539843015807,
         -.0115113874206879};
    a = {.123229775946271, .290553797799558, -.127049212625417, -.246331761062075,
         .357208872795928};
    double sum_b = 0.0, sum_a = 0.0;
    for (const double own : b) sum_b += own;
    for (const double own : a) sum_a += own;
    b.push_back(0.5 - sum_b);
    a.push_back(1.0 - 2.0 * sum_a);
    for (int i = 5; i >= 0; --i) b.push_back(b[at(i)]);
    for (int i = 4; i >= 0; --i) a.push_back(a[at(i)]);
  }
  KickDriftScheme scheme{.order = order, .kicks = b, .drifts = a, .times = {0.0}};
  for (const double own : a) {
    scheme.times.push_back(scheme.times.back() + own);
    scheme.cubes += own * own * own;
  }
  scheme.times.back() = 1.0;
  double latest = 0.0;
  for (const double time : scheme.times) {
    latest = std::max(latest, time);
    scheme.backwards = std::max(scheme.backwards, latest - time);
  }
  return scheme;
}

using kick_drift::Array;
using kick_drift::kGaussPlace;

KickDriftIsland::KickDriftIsland(const SeparableNetwork& network_, const std::vector<int>& states,
                                 const KickDriftScheme& scheme_, double step_s_,
                                 std::vector<int>& row_numbers)
    : network(network_),
      scheme(scheme_),
      step_s(step_s_),
      kernels(stroke_kernels()),
      model(network_, states, scheme_.order, step_s_, row_numbers),
      momentum_rows(model.blocks, model.momenta()),
      position_rows(model.position_blocks, model.positions()) {
  const std::size_t np = at(model.momenta()), nd = at(model.decays());
  strokes.assign(at(model.strokes()) + nd + kick_drift::kRoom, 0.0);
  for (Array* own : {&c, &c_bent, &base, &w, &force_before, &force_after, &moved}) {
    own->assign(np, 0.0);
  }
  for (Array* own : {&decay_before, &decay_after}) own->assign(nd, 0.0);
  for (Array& own : decay_within) own.assign(nd, 0.0);
  if (model.has_shared) {
    for (Array* own : {&term, &next_term, &given}) own->assign(np, 0.0);
  }
  bent_now.assign(model.bent.size(), 0.0);
  bent_force = bent_now;
  if (!model.has_diagonal_stiffness) {
    tied_sum.assign(model.position.size(), 0.0);
    tied_pull = tied_sum;
  }
  find_even_rows();
  find_ranges();
  find_block_inputs();
  find_passes();
  const std::size_t inputs = model.inputs.size();
  kick_values.assign(inputs * scheme.kicks.size(), 0.0);
  gauss_values.assign(inputs * scheme.drifts.size() * 3, 0.0);
  for (const CallbackPart& part : model.callbacks) {
    longest = std::max(longest, part.rest.size());
  }
  callback_from.assign(longest, 0.0);
  callback_to = callback_gradient = callback_from;
  in_time.resize(scheme.times.size());
  std::iota(in_time.begin(), in_time.end(), 0);
  std::ranges::sort(in_time, {}, [this](int kick) { return scheme.times[at(kick)]; });
  levels.resize(at(kMostHalvings) + 1);
  level(0);
}

void KickDriftIsland::find_ranges() {
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    first_shared.push_back(static_cast<int>(shared_ranges.size()));
    first_other.push_back(static_cast<int>(other_ranges.size()));
    const bool is_last = b + 1 == model.blocks.size();
    find_ranges_within(model.blocks[b], is_last ? model.momenta() : model.blocks[b + 1]);
  }
  first_shared.push_back(static_cast<int>(shared_ranges.size()));
  first_other.push_back(static_cast<int>(other_ranges.size()));
}

void KickDriftIsland::find_ranges_within(int begin, int end_row) {
  constexpr int kWorth = 16;  // rows of one damper that are worth a range of their own
  for (int i = begin; i < end_row;) {
    const int first = i;
    const char is_shared = model.shared[at(i)];
    while (i < end_row && model.shared[at(i)] == is_shared) ++i;
    if (is_shared != 0) {
      shared_ranges.emplace_back(first, i);
      continue;
    }
    const auto is_like = [&](int a, int b) {
      return model.own_damping[at(a)] == model.own_damping[at(b)] &&
             model.mass[at(a)] == model.mass[at(b)];
    };
    int unlike = first;
    for (int k = first; k < i;) {
      int end = k + 1;
      while (end < i && is_like(k, end)) ++end;
      if (end - k >= kWorth) {
        if (unlike < k) other_ranges.push_back({unlike, k, false});
        other_ranges.push_back({k, end, true});
        unlike = end;
      }
      k = end;
    }
    if (unlike < i) other_ranges.push_back({unlike, i, false});
  }
}

double KickDriftIsland::kick_value(int input, int stage) const {
  return kick_values[at(input) * scheme.kicks.size() + at(stage)];
}

double KickDriftIsland::gauss_value(int input, int stage, int g) const {
  return gauss_values[(at(input) * scheme.drifts.size() + at(stage)) * 3 + at(g)];
}

bool KickDriftIsland::sample_inputs(double start_s, double h, bool jumps_are_ramps,
                                    bool is_resolved) {
  bool is_sudden = false;
  // A jump at an end belongs to the step that begins there.
  const double rounding_s =
      std::max(1e-9 * h, 64.0 * std::numeric_limits<double>::epsilon() * std::abs(start_s));
  for (int i = 0; i < static_cast<int>(model.inputs.size()); ++i) {
    const int number = model.inputs[at(i)];
    const bool is_ramp = jumps_are_ramps && network.inputs[at(number)].signal->displacement_jump(
                                                start_s - rounding_s, start_s + h - rounding_s);
    const int stages = is_ramp ? 1 : 3;
    const auto value_at = [&](double share) {
      double value = 0.0;
      try {
        value = network.input_in_step(number, {start_s + share * h, start_s, h, share, stages});
      } catch (const std::exception& error) {
        throw InputFault{number, true, error.what()};
      } catch (...) {
        throw InputFault{number, true, "an unknown exception"};
      }
      if (!std::isfinite(value)) throw InputFault{number, false, {}};
      return value;
    };
    for (std::size_t j = 0; j < scheme.kicks.size(); ++j) {
      kick_values[at(i) * scheme.kicks.size() + j] = value_at(scheme.times[j]);
    }
    for (std::size_t j = 0; j < scheme.drifts.size(); ++j) {
      for (int g = 0; g < 3; ++g) {
        gauss_values[(at(i) * scheme.drifts.size() + j) * 3 + at(g)] =
            value_at(std::clamp(scheme.times[j] + kGaussPlace[g] * scheme.drifts[j], 0.0, 1.0));
      }
    }
    SuddenChange change;
    for (const int kick : in_time) change.see(kick_value(i, kick));
    if (!change.is_sudden()) continue;
    is_sudden = true;
    if (is_resolved) ramp(i);
  }
  return is_sudden;
}

void KickDriftIsland::ramp(int input) {
  const double first = kick_value(input, 0), rise = kick_value(input, scheme.stages()) - first;
  const std::size_t kicks = scheme.kicks.size(), drifts = scheme.drifts.size();
  for (std::size_t j = 0; j < kicks; ++j) {
    kick_values[at(input) * kicks + j] = first + rise * scheme.times[j];
  }
  for (std::size_t j = 0; j < drifts; ++j) {
    for (int g = 0; g < 3; ++g) {
      gauss_values[(at(input) * drifts + j) * 3 + at(g)] =
          first + rise * (scheme.times[j] + kGaussPlace[g] * scheme.drifts[j]);
    }
  }
}

void KickDriftIsland::freeze(const IslandState& from, IslandState& to) {
  // On ranks those of others, too.
  std::fill(strokes.begin() + (momentum_rows.is_on_ranks() ? 0 : model.momenta()), strokes.end(),
            0.0);
  momentum_rows.run([&](int block) {
    const int first = momentum_rows.first(block), end = momentum_rows.end(block);
    std::fill(strokes.begin() + first, strokes.begin() + end, 0.0);
    std::copy(from.u.begin() + first, from.u.begin() + end, to.u.begin() + first);
    if (model.has_constant) {
      std::copy(model.constant_force.begin() + first, model.constant_force.begin() + end,
                c.begin() + first);
      kernels.add(model.of_positions.view(block), from.position.data(), 1.0, c.data());
    } else {
      kernels.apply(model.of_positions.view(block), from.position.data(), c.data());
    }
    if (model.decays() > 0) {
      kernels.add(model.of_decaying.view(block), from.decaying.data(), 1.0, c.data());
    }
    if (model.has_cubic) kernels.apply(model.base.view(block), from.position.data(), base.data());
  });
}

const double* KickDriftIsland::force_offset(const IslandState& from) {
  if (model.bent.empty()) return c.data();
  kernels.apply(model.bent_of_strokes.view(), strokes.data(), bent_now.data());
  for (std::size_t b = 0; b < bent_now.size(); ++b) {
    bent_now[b] += from.position[at(model.bent[b])];
    bent_force[b] = model.bent_cubic[b] * (bent_now[b] * bent_now[b]) * bent_now[b];
  }
  for (const CallbackPart& part : model.callbacks) {
    std::ranges::copy(part.rest, callback_from.begin());
    for (std::size_t k = 0; k < part.state.size(); ++k) {
      callback_from[at(part.state[k])] = bent_now[at(part.bent[k])];
    }
    part.part->gradient(callback_from.data(), callback_gradient.data());
    for (std::size_t k = 0; k < part.state.size(); ++k) {
      bent_force[at(part.bent[k])] = callback_gradient[at(part.state[k])];
    }
  }
  std::ranges::copy(c, c_bent.begin());
  kernels.add(model.force_of_bent.view(), bent_force.data(), 1.0, c_bent.data());
  return c_bent.data();
}

KickTask KickDriftIsland::kick_task(IslandState& to, int stage, double h) {
  return {.map = model.force.view(),
          .c = c.data(),
          .strokes = strokes.data(),
          .base = base.data(),
          .w = model.lumped && stage > 0 ? w.data() : nullptr,
          .u = to.u.data(),
          .force = stage == 0                 ? force_before.data()
                   : stage == scheme.stages() ? force_after.data()
                                              : nullptr,
          .tau = scheme.kicks[at(stage)] * h,
          .has_room = model.has_gaps};
}

void KickDriftIsland::kick(const IslandState& from, IslandState& to, int stage, double h) {
  const double *const offset = force_offset(from), tau = scheme.kicks[at(stage)] * h;
  momentum_rows.run([&](int block) {
    KickTask task = kick_task(to, stage, h);
    task.c = offset;
    task.map = model.force.view(block);
    kernels.kick(task);
  });
  for (const InputEntry& entry : model.effort_kicks) {
    to.u[at(entry.row)] += tau * entry.value * kick_value(entry.input, stage);
  }
  for (const InputEntry& entry : model.flow_power) {
    const double s = kick_value(entry.input, stage);
    supplied.add(tau * s * entry.value * slope_of_position(from, entry.row));
  }
  for (const InputEntry& entry : model.decay_flows) {
    const double q = from.decaying[at(entry.row)] + strokes[at(model.strokes() + entry.row)];
    supplied.add(tau * kick_value(entry.input, stage) * entry.value *
                 model.decay_stiffness[at(entry.row)] * q);
  }
}

double KickDriftIsland::moved_by_strokes(int row) const {
  double sum = 0.0;
  for (RowMatrix::InnerIterator it(model.K, row); it; ++it) {
    sum += it.value() * strokes[at(static_cast<int>(it.col()))];
  }
  return sum;
}

double KickDriftIsland::slope_of_position(const IslandState& from, int row) const {
  const double q = from.position[at(row)] + moved_by_strokes(row);
  double z = model.constant[at(row)] + model.position_cubic[at(row)] * (q * q) * q;
  for (RowMatrix::InnerIterator it(model.V, row); it; ++it) {
    const auto other = static_cast<int>(it.col());
    z += it.value() * (from.position[at(other)] + moved_by_strokes(other));
  }
  for (std::size_t b = 0; b < model.bent.size(); ++b) {
    if (model.bent[b] == row && model.has_callback[b] != 0) z += bent_force[b];
  }
  return z;
}

bool KickDriftIsland::attempt(const IslandState& from, IslandState& to, int depth,
                              IslandEnergies& energies) {
  const Level& own = level(depth);
  supplied = dissipated = CompensatedSum();
  freeze(from, to);
  if (!passes.empty()) {
    if (momentum_rows.count() == 1) {
      sweep_block(to, own);
    } else {
      momentum_rows.is_on_ranks() ? sweep_on_ranks(to, own) : sweep(to, own);
      add_passes(own);
    }
  } else {
    for (int stage = 0; stage <= scheme.stages(); ++stage) {
      kick(from, to, stage, own.h);
      if (stage < scheme.stages()) drift(to, from, stage, own);
    }
  }
  const double supply = supplied.value();
  double lost = dissipated.value();
  if (!network.has_active()) lost = std::max(lost, 0.0);
  return settle(from, to, own, supply, lost, energies);
}

bool KickDriftIsland::has_inputs() const { return !model.inputs.empty(); }
int KickDriftIsland::tasks() const {
  return std::max(momentum_rows.count(), position_rows.count());
}
void KickDriftIsland::share_with(const ForEach* each) {
  momentum_rows.share_with(each);
  position_rows.share_with(each);
}

/// What asks for states of other ranks in other ways than by products with rows stays with one rank.
bool KickDriftIsland::can_share_rows() const {
  return momentum_rows.count() > 1 && !passes.empty() && model.has_diagonal_mass &&
         model.has_diagonal_stiffness;
}

void KickDriftIsland::share_among(NetworkPeers& peers) {
  const KickDriftModel& m = model;
  // Parts that are near one another have near numbers, whatever their types.
  std::vector<double> place;
  for (int block = 0; block < momentum_rows.count(); ++block) {
    double sum = 0.0, count = 0.0;
    for (int row = momentum_rows.first(block); row < momentum_rows.end(block); ++row) {
      if (m.is_real[at(row)] == 0) continue;
      sum += m.network.part_of(m.momentum[at(row)]);
      count += 1.0;
    }
    place.push_back(sum / std::max(count, 1.0));
  }
  const std::vector<int> of_momenta = ranks_of_blocks(momentum_rows, place, peers.size());
  momentum_rows.share_among(peers, of_momenta);
  std::vector<int> momenta = ranks_of_rows(momentum_rows, of_momenta);
  // A block of positions belongs to the rank of most momenta that move it.
  std::vector<std::vector<int>> votes(at(position_rows.count()),
                                      std::vector<int>(at(peers.size()), 0));
  m.positions_of_strokes.for_entries([&](int row, int column) {
    ++votes[at(position_rows.block_of(row))][at(momenta[at(column)])];
  });
  std::vector<int> of_positions;
  for (const std::vector<int>& own : votes) {
    of_positions.push_back(static_cast<int>(std::ranges::max_element(own) - own.begin()));
  }
  position_rows.share_among(peers, of_positions);
  std::vector<int> positions = ranks_of_rows(position_rows, of_positions);
  const RowExchange::Reads of_strokes[] = {{m.force, momenta},
                                           {m.mixed, momenta},
                                           {m.damping_map, momenta},
                                           {m.positions_of_strokes, positions}};
  const RowExchange::Reads of_states[] = {{m.of_positions, momenta}, {m.base, momenta}};
  momentum_exchange.emplace(peers, momenta, of_strokes, 2);
  position_exchange.emplace(peers, positions, of_states, 1);
  for (const int block : momentum_rows.own_blocks()) {
    bool is_border = false;
    for (int row = momentum_rows.first(block); row < momentum_rows.end(block); ++row) {
      is_border = is_border || momentum_exchange->is_sent(row);
    }
    (is_border ? border_blocks : inner_blocks).push_back(block);
  }
}

void KickDriftIsland::complete(IslandState& state) {
  momentum_exchange->complete(state.u.data());
  position_exchange->complete(state.position.data());
}

void KickDriftIsland::load(const double* x, IslandState& state) const {
  const KickDriftModel& m = model;
  const auto read = [x](const std::vector<int>& states, Array& to, const auto& shift) {
    to.resize(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) to[i] = x[states[i]] + shift(i);
  };
  const auto none = [](std::size_t) { return 0.0; };
  state.u.assign(m.momentum.size(), 0.0);
  for (std::size_t i = 0; i < m.momentum.size(); ++i) {
    const int own = m.momentum[i];
    if (own != KickDriftModel::kGap) state.u[i] = x[own] + m.network.shift[at(own)];
  }
  read(m.position, state.position, none);
  read(m.decaying, state.decaying, [&](std::size_t i) { return m.decay_shift[i]; });
  read(m.dead.states, state.dead, none);
}

void KickDriftIsland::store(const IslandState& state, double* x) const {
  const KickDriftModel& m = model;
  const auto write = [x](const std::vector<int>& states, const Array& from, const auto& shift) {
    for (std::size_t i = 0; i < states.size(); ++i) x[states[i]] = from[i] - shift(i);
  };
  const auto none = [](std::size_t) { return 0.0; };
  for (std::size_t i = 0; i < m.momentum.size(); ++i) {
    const int own = m.momentum[i];
    if (own != KickDriftModel::kGap) x[own] = state.u[i] - m.network.shift[at(own)];
  }
  write(m.position, state.position, none);
  write(m.decaying, state.decaying, [&](std::size_t i) { return m.decay_shift[i]; });
  write(m.dead.states, state.dead, none);
}

void KickDriftIsland::set_step(double size_s) {
  step_s = size_s;
  std::vector<Level> before = std::move(levels);
  levels = std::vector<Level>(before.size());
  for (std::size_t depth = 0; depth < before.size(); ++depth) {  // of twice or half the size
    const double h = std::ldexp(step_s, -static_cast<int>(depth));
    for (Level& own : before) {
      if (own.h == h && !own.drifts.empty()) levels[depth] = std::move(own);
    }
  }
  level(0);
}

void KickDriftIsland::clear_gaps(IslandState& state) const {
  const std::vector<char>& is_real = model.is_real;
  for (std::size_t i = 0; i < is_real.size(); ++i) {
    if (is_real[i] == 0) state.u[i] = 0.0;
  }
}

void KickDriftIsland::sample(double start_s, int depth) {
  is_sudden_ = sample_inputs(start_s, level(depth).h, are_ramps(depth), depth >= kResolved);
}

bool KickDriftIsland::is_too_long(double h) const {
  return h * model.fastest_damping > scheme.longest_damping();
}

std::string KickDriftIsland::advice() const {
  std::string text = fmt::format(
      "at the start its fastest oscillation was {:.3g} rad/s (times h: should be below 2.5) and "
      "its fastest damping {:.3g} 1/s (times h: below {:.2g})",
      model.highest_frequency, model.fastest_damping, scheme.longest_damping());
  if (fastest_part() >= 0) {
    text += fmt::format(", that of \"{}\"", network.system().name_of_part(fastest_part()));
  }
  return text;
}

int KickDriftIsland::momenta() const {
  return static_cast<int>(std::ranges::count(model.is_real, 1));
}
int KickDriftIsland::positions() const {
  return model.positions() + model.decays() + static_cast<int>(model.dead.states.size());
}
int KickDriftIsland::fastest_part() const {
  const int state = model.fastest_state;
  return state < 0 ? -1 : network.part_of(state);
}

double KickDriftIsland::cost_ns() const {
  constexpr double kPerTerm_ns = 0.5;
  return kPerTerm_ns * static_cast<double>(scheme.stages()) *
         static_cast<double>(6 * model.momentum.size() + 3 * model.decaying.size());
}

std::size_t KickDriftIsland::bytes() const {
  std::size_t sum = model.bytes() + momentum_rows.bytes() + position_rows.bytes();
  const auto add = [&sum](std::initializer_list<const Array*> arrays) {
    for (const Array* own : arrays) sum += own->capacity() * sizeof(double);
  };
  add({&strokes,
       &c,
       &c_bent,
       &base,
       &w,
       &force_before,
       &force_after,
       &moved,
       &term,
       &next_term,
       &given,
       &tied_sum,
       &tied_pull,
       &decay_before,
       &decay_after,
       &bent_now,
       &bent_force,
       &decay_within[0],
       &decay_within[1],
       &lost_in_pass,
       &power_rows,
       &kick_values,
       &gauss_values});
  for (const Level& level : levels) {
    for (const kick_drift::Drift& d : level.drifts) {
      add({&d.psi, &d.factor, &d.lost, &d.energy_00, &d.energy_01, &d.energy_11});
      for (const kick_drift::DecayMaps* maps : {&d.end, &d.within[0], &d.within[1]}) {
        add({&maps->kept});
        for (const StrokeMap& map : maps->of_terms) sum += map.bytes();
      }
    }
  }
  return sum;
}

}  // namespace portwave
