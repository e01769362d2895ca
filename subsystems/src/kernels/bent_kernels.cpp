#include "kernels/bent_kernels.hpp"

#include "base/least_terms.hpp"
#include "kernels/lane_tape.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {
namespace bent_steps {

using bent::Layout, bent::Task;

/// A lane group of a task. `P` and `N`: ports and states, or −1 where only the layout knows them.
template <int W, int N, int P>
struct Group {
  using V = Vec<W>;
  static constexpr int kStates = N < 0 ? bent::kMostStates : N;
  static constexpr int kPorts = P < 0 ? bent::kMostPorts : P;

  Group(const Task& t, long g)
      : layout(*t.layout),
        c(t.coefficients + t.block[g]),
        own(t.record + g * layout.record_count * W),
        next(t.next + (t.next == nullptr ? 0 : g * layout.record_count * W)),
        a(t.a + (t.a == nullptr ? 0 : g * W)),
        b(t.b + (t.b == nullptr ? 0 : g * W)),
        stride(t.stride) {}

  int states() const { return N < 0 ? layout.states : N; }
  int ports() const { return P < 0 ? layout.ports : P; }
  V coefficient(int place) const { return V::load(c + place * W); }
  V recorded(int place) const { return V::load(own + place * W); }
  V wave(int j) const { return V::load(a + j * stride); }

  const Layout& layout;
  const double* c;
  double* own;
  double* next;
  const double* a;
  double* b;
  int stride;
};

/// V̄(δ), its slope, and the size of its terms with what roundings of y and δ move.
template <int W>
struct Mean {
  Vec<W> value, slope, size;
};

/// A polynomial with coefficients of the state. D: its degree, or 0 where only the layout knows it.
template <int W, int D>
struct Series {
  using V = Vec<W>;

  explicit Series(const Task& t) : layout(*t.layout) {}
  void set(const double* own) {
    taylor = own + layout.taylor * W;
    const V y = V::load(own + (layout.state + layout.bent_states[0]) * W);
    moved = abs(V::all(2.0) * V::load(taylor + W)) * abs(y);
  }

  [[gnu::always_inline]] Mean<W> operator()(V delta) const {
    const int degree = D > 0 ? D : layout.degree;
    const auto at = [this](int k) { return V::load(taylor + k * W); };
    const V reach = abs(delta);
    V slope = V::all(0.0), magnitude = abs(at(degree - 1));
    V mean = at(degree - 1);
    for (int m = degree - 2; m >= 0; --m) {
      const V own_term = at(m);
      slope = fma(slope, delta, mean);
      mean = fma(mean, delta, own_term);
      magnitude = fma(magnitude, reach, abs(own_term));
    }
    return {mean, slope, magnitude + (magnitude + moved)};
  }

  const Layout& layout;
  const double* taylor = nullptr;
  V moved = V::all(0.0);  // what roundings of y move in V̄, times 1/ε
};

/// A program of y and δ.
template <int W>
struct Closed {
  using V = Vec<W>;

  explicit Closed(const Task& t)
      : state(t.layout->state + t.layout->bent_states[0]), tape(*t.layout->mean_of, t.registers) {}
  void set(const double* own) {
    y = V::load(own + state * W);
    y.store(tape.variable(0));
  }

  Mean<W> operator()(V delta) {
    delta.store(tape.variable(1));
    tape.run();
    const V slope = tape.result(1), terms = tape.result(2);
    const V moved = (abs(slope) + abs(slope)) * (abs(y) + abs(delta));
    return {tape.result(0), slope, terms + (terms + moved)};
  }

  int state;
  LaneTape<W> tape;
  V y = V::all(0.0);
};

/// Newton's method from the step linearised at x, and b. A lane whose residual is round-off stays as it is; one whose
/// residual grows has failed, whatever comes after.
template <int W>
struct BentStep {
  using V = Vec<W>;

  V delta, mean, failed;

  template <int N, int P, class MeanOf>
  [[gnu::always_inline]] BentStep(const Group<W, N, P>& group, bool warm, MeanOf& mean_of) {
    constexpr int kMostSteps = 12;
    const Layout& l = group.layout;
    const V one = V::all(1.0), zero = V::all(0.0);
    const int i = l.bent_states[0], states = group.states();
    V known = group.recorded(l.offset + i), size = abs(known) + V::all(kLeastTerms);
    for (int j = 0; j < group.ports(); ++j) {
      const V term = group.coefficient(l.of_wave + j * states + i) * group.wave(j);
      known = known + term;
      size = size + abs(term);
    }
    const V gain = group.coefficient(l.of_mean + i), gain_size = abs(gain);
    delta = fma(gain, group.recorded(l.taylor), known) /
            fma(negate(gain), group.recorded(l.taylor + 1), one);
    if (warm) {
      const V last = group.recorded(l.increment);
      delta = where_at_most(abs(last), V::all(__DBL_MAX__), last, delta);
    }
    mean_of.set(group.own);
    V residual = zero, allowed = zero, before = V::all(__DBL_MAX__);
    mean = zero;
    failed = zero;
    for (int k = 0; k < kMostSteps; ++k) {
      const Mean<W> of = mean_of(delta);
      mean = of.value;
      const V F = fma(negate(gain), mean, delta - known);
      residual = abs(F);
      allowed = V::all(4.0 * __DBL_EPSILON__) * fma(gain_size, of.size, abs(delta) + size);
      if (all_at_most(residual, allowed)) break;
      const V grown = where_at_most(residual, before, failed, one);
      failed = where_at_most(residual, allowed, failed, grown);
      before = residual;
      const V next = delta - F / fma(negate(gain), of.slope, one);
      delta = where_at_most(residual, allowed, delta, next);
    }
    failed = where_at_most(residual, allowed, failed, one);
    // ExpressionNewton::settle.
    const V pull = abs(gain * mean);
    mean = where_at_most(abs(delta) + V::all(__DBL_MIN__), pull, (delta - known) / gain, mean);
    if (warm) {
      where_at_most(failed, zero, delta, V::all(__builtin_nan("")))
          .store(group.own + l.increment * W);
    }
    const int ports = group.ports();
    for (int k = 0; k < ports; ++k) {
      V b = fma(group.coefficient(l.b_of_mean + k), mean, group.recorded(l.b_offset + k));
      for (int j = 0; j < ports; ++j) {
        b = fma(group.coefficient(l.b_of_wave + j * ports + k), group.wave(j), b);
      }
      b.store(group.b + k * group.stride);
    }
  }

  bool is_solved() const { return all_at_most(failed, V::all(0.0)); }
  void store(const Task& t) const {
    delta.store(t.delta);
    mean.store(t.mean);
    failed.store(t.failed);
  }
};

template <int W, int N, int P>
struct LinearStep {
  using V = Vec<W>;
  using Own = Group<W, N, P>;
  static constexpr int kStates = Own::kStates, kPorts = Own::kPorts;

  /// y += M x, the matrix being `rows` high and beginning at a place of the coefficients.
  [[gnu::always_inline]] static void add(const Own& group, int matrix, int rows, const V* x,
                                         int columns, V* y) {
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) {
        y[i] = fma(group.coefficient(matrix + j * rows + i), x[j], y[i]);
      }
    }
  }
  [[gnu::always_inline]] static V form(bent::Entries entries, const double* c, const V* x,
                                       const V* y, V sum) {
    for (int k = 0; k < entries.count; ++k) {
      const bent::Entry& e = entries.first[k];
      sum = fma(V::load(c + e.place * W) * x[e.row], y[e.column], sum);
    }
    return sum;
  }
  static void clear(V* y, int count) {
    for (int i = 0; i < count; ++i) y[i] = V::all(0.0);
  }
  static void store(const V* y, int count, double* to) {
    for (int i = 0; i < count; ++i) y[i].store(to + i * W);
  }
  /// y = Qx + c of a record.
  [[gnu::always_inline]] static void slope(const Own& group, const double* record, V* y) {
    const Layout& l = group.layout;
    const int states = group.states();
    V x[kStates];
    for (int i = 0; i < states; ++i) {
      x[i] = V::load(record + (l.state + i) * W);
      y[i] = group.coefficient(l.constants + i);
    }
    add(group, l.Q, states, x, states, y);
  }

  /// `has_inputs`: they are not all 0.
  [[gnu::always_inline]] static void freeze(const Own& group, double* record, bool has_inputs) {
    const Layout& l = group.layout;
    const int states = group.states(), ports = group.ports();
    V g[kStates], d[kStates], b[kPorts + 1];
    slope(group, record, g);
    clear(d, states);
    clear(b, ports);
    add(group, l.of_gradient, states, g, states, d);
    add(group, l.b_of_gradient, ports, g, states, b);
    for (int j = 0; j < (has_inputs ? l.inputs : 0); ++j) {
      const V input = V::load(record + (l.input + j) * W);
      add(group, l.of_input + j * states, states, &input, 1, d);
    }
    add(group, l.b_of_offset, ports, d, states, b);
    for (int j = 0; j < (has_inputs ? l.inputs : 0); ++j) {
      const V input = V::load(record + (l.input + j) * W);
      add(group, l.b_of_input + j * ports, ports, &input, 1, b);
    }
    store(d, states, record + l.offset * W);
    store(b, ports, record + l.b_offset * W);
    for (int k = 0; k < l.bent; ++k) {
      V::all(__builtin_nan("")).store(record + (l.increment + k) * W);
    }
    if (!l.is_one || l.degree > 0) return;
    double* const second = record + (l.taylor + 1) * W;
    (V::all(0.5) * V::load(second)).store(second);
  }

  [[gnu::always_inline]] static void commit(const Own& group, const V* mean, const V* delta,
                                            double step_s, const EnergyColumns& energy) {
    const Layout& l = group.layout;
    const int states = group.states(), ports = group.ports();
    V d[kStates], waves[kPorts + 1];
    for (int i = 0; i < states; ++i) d[i] = group.recorded(l.offset + i);
    for (int j = 0; j < ports; ++j) waves[j] = group.wave(j);
    add(group, l.of_wave, states, waves, ports, d);
    add(group, l.of_mean, states, mean, l.is_one ? 1 : l.bent, d);
    for (int i = 0; i < states; ++i) {
      (group.recorded(l.state + i) + d[i]).store(group.next + (l.state + i) * W);
    }
    for (int k = 0; k < l.bent; ++k) {
      const int i = l.state + l.bent_states[k];
      (group.recorded(i) + delta[k]).store(group.next + i * W);
    }
    for (int j = 0; j < l.inputs; ++j) V::all(0.0).store(group.next + (l.input + j) * W);
    if (energy.wanted()) account(group, d, waves, mean, delta, step_s, energy);
  }

  static void account(const Own& group, const V* d, const V* waves, const V* mean, const V* delta,
                      double step_s, const EnergyColumns& energy) {
    const Layout& l = group.layout;
    const double* const c = group.c;
    const int states = group.states(), ports = group.ports();
    V moved[kStates], g[kStates];
    for (int i = 0; i < states; ++i) moved[i] = d[i];
    for (int k = 0; k < l.bent; ++k) moved[l.bent_states[k]] = delta[k];
    slope(group, group.own, g);
    for (int j = 0; j < states; ++j) {
      for (int i = 0; i < states; ++i) {
        const V half = V::all(0.5) * group.coefficient(l.Q + j * states + i);
        g[i] = fma(half, moved[j], g[i]);
      }
    }
    const V weight = group.coefficient(l.weight);
    for (int k = 0; k < l.bent; ++k) {
      g[l.bent_states[k]] = fma(weight, mean[k], g[l.bent_states[k]]);
    }
    V u[kPorts + bent::kMostStates];
    for (int j = 0; j < ports; ++j) {
      u[j] = fma(group.coefficient(l.u_of_a + j), waves[j],
                 group.coefficient(l.u_of_b + j) * V::load(group.b + j * group.stride));
    }
    V* const external = u + ports;
    for (int j = 0; j < l.inputs; ++j) external[j] = group.recorded(l.input + j);
    const V zero = V::all(0.0), h = V::all(step_s);
    V change = zero;
    for (int i = 0; i < states; ++i) change = fma(g[i], moved[i], change);
    const V supply = form(l.through, c, external, u, form(l.outputs, c, external, g, zero));
    const V across = form(l.P, c, g, u, zero);
    const V lost = form(l.S, c, u, u, form(l.R, c, g, g, across + across));
    change.store(energy.change_J);
    (h * supply).store(energy.external_supply_J);
    (h * lost).store(energy.dissipated_J);
  }
};

/// What programs of y leave in records, G groups at once.
template <int W, int G>
class Programs {
 public:
  Programs(const Layout& layout, double* registers)
      : layout_(layout),
        first_(*layout.frozen[0], registers),
        second_(*layout.frozen[1], registers + layout.frozen[0]->registers * W * G) {}

  void run(double* records) {
    run(first_, *layout_.frozen[0], layout_.frozen_to[0], records);
    run(second_, *layout_.frozen[1], layout_.frozen_to[1], records);
  }

 private:
  void run(LaneTape<W, G>& tape, const TapeProgram& program, int to, double* records) {
    if (program.results == 0) return;
    const long size = static_cast<long>(layout_.record_count) * W;
    for (int k = 0; k < layout_.bent; ++k) {
      const double* const y = records + (layout_.state + layout_.bent_states[k]) * W;
      for (int g = 0; g < G; ++g) Vec<W>::load(y + g * size).store(tape.variable(k, g));
    }
    tape.run();
    for (int k = 0; k < program.results; ++k) {
      for (int g = 0; g < G; ++g) tape.result(k, g).store(records + g * size + (to + k) * W);
    }
  }

  const Layout& layout_;
  LaneTape<W, G> first_, second_;
};

template <int W, int N, int P>
struct Steps {
  using V = Vec<W>;

  template <class MeanOf>
  static int scatter_by(const Task& t) {
    MeanOf mean_of(t);
    for (long g = t.first; g < t.last; ++g) {
      const BentStep<W> step(Group<W, N, P>(t, g), t.warm, mean_of);
      if (t.delta != nullptr) step.store(t);
      if (!step.is_solved()) return static_cast<int>(g);
    }
    return -1;
  }

  template <class MeanOf>
  static int advance_by(const Task& t) {
    MeanOf mean_of(t);
    int bad = -1;
    freeze_in_blocks(t, t.next, false, [&](int first, int last) {
      for (int g = first; g < last; ++g) {
        const Group<W, N, P> group(t, g);
        const BentStep<W> step(group, false, mean_of);
        V check = step.failed;
        for (int j = 0; j < group.ports(); ++j) {
          check = fma(V::load(group.b + j * t.stride), V::all(0.0), check);
        }
        if (!all_at_most(check, V::all(0.0))) {
          bad = g;
          return g;
        }
        EnergyColumns energy;
        if (t.energy.wanted()) {
          energy.change_J = t.energy.change_J + g * W;
          energy.external_supply_J = t.energy.external_supply_J + g * W;
          energy.dissipated_J = t.energy.dissipated_J + g * W;
        }
        LinearStep<W, N, P>::commit(group, &step.mean, &step.delta, t.step_s, energy);
      }
      return last;
    });
    return bad;
  }

  /// Calls before(first, last) for blocks of groups; freezes those up to what it returns, and ends where that is
  /// not `last`.
  template <class Before>
  [[gnu::always_inline]] static void freeze_in_blocks(const Task& t, double* records,
                                                      bool has_inputs, Before before) {
    const Layout& l = *t.layout;
    const long size = static_cast<long>(l.record_count) * W;
    int done = t.first;
    const auto freeze_block = [&](auto& programs, int count) {
      const int end = before(done, done + count);
      if (end == done + count) {
        programs.run(records + done * size);
      } else {
        Programs<W, 1> rest(l, t.registers_of_frozen);
        for (int g = done; g < end; ++g) rest.run(records + g * size);
      }
      for (int g = done; g < end; ++g) {
        LinearStep<W, N, P>::freeze(Group<W, N, P>(t, g), records + g * size, has_inputs);
      }
      const bool goes_on = end == done + count;
      done = end;
      return goes_on;
    };
    if constexpr (W > 1) {
      if (done + bent::kGroups <= t.last) {
        Programs<W, bent::kGroups> programs(l, t.registers_of_frozen);
        while (done + bent::kGroups <= t.last) {
          if (!freeze_block(programs, bent::kGroups)) return;
        }
      }
    }
    if (done == t.last) return;
    Programs<W, 1> programs(l, t.registers_of_frozen);
    while (done < t.last) {
      if (!freeze_block(programs, 1)) return;
    }
  }

  /// The most usual degrees are known at compile time.
  static int scatter(const Task& t) {
    switch (t.layout->degree) {
      case 0:
        return scatter_by<Closed<W>>(t);
      case 4:
        return scatter_by<Series<W, 4>>(t);
      default:
        return scatter_by<Series<W, 0>>(t);
    }
  }
  static int advance(const Task& t) {
    switch (t.layout->degree) {
      case 0:
        return advance_by<Closed<W>>(t);
      case 4:
        return advance_by<Series<W, 4>>(t);
      default:
        return advance_by<Series<W, 0>>(t);
    }
  }
  static int commit(const Task& t) {
    V mean[bent::kMostBent], delta[bent::kMostBent];
    for (int k = 0; k < t.layout->bent; ++k) {
      mean[k] = V::load(t.mean + k * W);
      delta[k] = V::load(t.delta + k * W);
    }
    LinearStep<W, N, P>::commit(Group<W, N, P>(t, t.first), mean, delta, t.step_s, t.energy);
    return -1;
  }
  static int freeze(const Task& t) {
    freeze_in_blocks(t, t.record, true, [](int, int last) { return last; });
    return -1;
  }
};

/// Calls act(Steps) with states and ports known at compile time where they are few.
template <int W, class Act>
int with_steps(const Task& t, Act act) {
  if constexpr (W > 1) {
    switch (16 * t.layout->states + t.layout->ports) {  // kMostPorts < 16
      case 32:
        return act(Steps<W, 2, 0>{});
      case 33:
        return act(Steps<W, 2, 1>{});
      case 48:
        return act(Steps<W, 3, 0>{});
      case 49:
        return act(Steps<W, 3, 1>{});
      case 50:
        return act(Steps<W, 3, 2>{});
      case 66:
        return act(Steps<W, 4, 2>{});
      default:
        break;
    }
  }
  return act(Steps<W, -1, -1>{});
}

template <int W>
constexpr bent::Kernels kernels_of() {
  return {[](const Task& t) { return with_steps<W>(t, [&](auto s) { return s.scatter(t); }); },
          [](const Task& t) { return with_steps<W>(t, [&](auto s) { return s.advance(t); }); },
          [](const Task& t) { return with_steps<W>(t, [&](auto s) { return s.commit(t); }); },
          [](const Task& t) { return with_steps<W>(t, [&](auto s) { return s.freeze(t); }); }};
}

}  // namespace bent_steps
}  // namespace

const bent::KernelsOfWidths kBent = {bent_steps::kernels_of<kLaneGroup>(),
                                     bent_steps::kernels_of<1>()};

}  // namespace portwave::PORTWAVE_ISA
