#include "kernels/bent_kernels.hpp"

#include "kernels/lane_tape.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// Newton's method from the step linearised at x. A lane whose residual is round-off stays as it is; one whose
/// residual grows has failed, whatever comes after.
template <int W>
struct BentStep {
  using V = Vec<W>;

  static V at(const double* values, int k) { return V::load(values + k * W); }

  /// V̄(δ), its slope, and the size of its terms with what roundings of y and δ move.
  struct Mean {
    V value, slope, size;
  };

  /// A polynomial with coefficients of the state.
  struct Series {
    const double* taylor;
    int degree;

    [[gnu::always_inline]] Mean operator()(V delta) const {
      const V reach = abs(delta);
      V slope = V::all(0.0), magnitude = abs(at(taylor, degree - 1));
      V mean = at(taylor, degree - 1);
      for (int m = degree - 2; m >= 0; --m) {
        const V own_term = at(taylor, m);
        slope = fma(slope, delta, mean);
        mean = fma(mean, delta, own_term);
        magnitude = fma(magnitude, reach, abs(own_term));
      }
      return {mean, slope, magnitude + (magnitude + at(taylor, degree))};
    }
  };

  /// A program of y and δ.
  struct Closed {
    LaneTape<W> tape;
    V y;

    Mean operator()(V delta) {
      y.store(tape.variable(0));
      delta.store(tape.variable(1));
      tape.run();
      const V slope = tape.result(1), terms = tape.result(2);
      const V moved = (abs(slope) + abs(slope)) * (abs(y) + abs(delta));
      return {tape.result(0), slope, terms + (terms + moved)};
    }
  };

  static bool solve(const bent::Task& t, long g) {
    const double* const own = t.record + g * t.record_size;
    if (t.mean_of == nullptr) return solve(t, g, Series{own + t.taylor * W, t.degree});
    return solve(t, g, Closed{LaneTape<W>(*t.mean_of, t.registers), at(own, t.own_state)});
  }

  template <class MeanOf>
  [[gnu::always_inline]] static bool solve(const bent::Task& t, long g, MeanOf mean_of) {
    constexpr int kMostSteps = 12;
    const double* const c = t.coefficients + g * t.coefficient_size;
    double* const own = t.record + g * t.record_size;
    const V one = V::all(1.0), zero = V::all(0.0);
    V known = at(own, t.offset), size = abs(known);
    for (int j = 0; j < t.ports; ++j) {
      const V wave = V::load(t.a + j * t.stride + g * W);
      const V term = at(c, t.own_of_wave + j * t.own_of_wave_step) * wave;
      known = known + term;
      size = size + abs(term);
    }
    const V gain = at(c, t.gain), gain_size = abs(gain);
    const double* const taylor = own + t.taylor * W;
    V delta = fma(gain, at(taylor, 0), known) / fma(negate(gain), at(taylor, 1), one);
    if (t.warm) delta = where_at_most(one, at(own, t.is_warm), at(own, t.increment), delta);
    V mean = zero, residual = zero, allowed = zero, before = V::all(__DBL_MAX__), failed = zero;
    for (int k = 0; k < kMostSteps; ++k) {
      const Mean of = mean_of(delta);
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
    delta.store(t.delta);
    mean.store(t.mean);
    failed.store(t.failed);
    if (t.warm) {
      delta.store(own + t.increment * W);
      (one - failed).store(own + t.is_warm * W);
    }
    for (int i = 0; i < t.ports; ++i) {
      V b = fma(at(c, t.b_of_mean + i), mean, at(own, t.b_offset + i));
      for (int j = 0; j < t.ports; ++j) {
        b = fma(at(c, t.b_of_wave + j * t.ports + i), V::load(t.a + j * t.stride + g * W), b);
      }
      b.store(t.b + i * t.stride + g * W);
    }
    return all_at_most(failed, zero);
  }
};

template <int W>
int scatter(const bent::Task& t) {
  for (long g = t.first; g < t.last; ++g) {
    if (!BentStep<W>::solve(t, g)) return static_cast<int>(g);
  }
  return -1;
}

template <int W>
struct LinearStep {
  using V = Vec<W>;

  static V at(const double* values, int k) { return V::load(values + k * W); }

  /// y += M x, the matrix being `rows` high and beginning at a place of the coefficients.
  [[gnu::always_inline]] static void add(const double* matrix, int rows, const double* x,
                                         int columns, V* y) {
    for (int j = 0; j < columns; ++j) {
      const V own = at(x, j);
      for (int i = 0; i < rows; ++i) y[i] = fma(at(matrix, j * rows + i), own, y[i]);
    }
  }
  [[gnu::always_inline]] static V form(bent::Entries entries, const double* c, const V* x,
                                       const V* y, V sum) {
    for (int k = 0; k < entries.count; ++k) {
      const bent::Entry& e = entries.first[k];
      sum = fma(at(c, e.place) * x[e.row], y[e.column], sum);
    }
    return sum;
  }
  static void clear(V* y, int count) {
    for (int i = 0; i < count; ++i) y[i] = V::all(0.0);
  }
  static void store(const V* y, int count, double* to) {
    for (int i = 0; i < count; ++i) y[i].store(to + i * W);
  }

  static void freeze(const bent::LinearTask& t) {
    double* const own = t.record;
    const double* const c = t.coefficients;
    const double* const x = own + t.state * W;
    const double* const input = own + t.input * W;
    V y[bent::kMostStates];
    for (int i = 0; i < t.states; ++i) y[i] = at(c, t.constants + i);
    for (int k = 0; k < t.Q.count; ++k) {
      const bent::Entry& e = t.Q.first[k];
      y[e.row] = fma(at(c, e.place), at(x, e.column), y[e.row]);
    }
    store(y, t.states, own + t.slope * W);
    clear(y, t.states);
    add(c + t.of_gradient * W, t.states, own + t.slope * W, t.states, y);
    add(c + t.of_input * W, t.states, input, t.inputs, y);
    store(y, t.states, own + t.offset * W);
    clear(y, t.ports);
    add(c + t.b_of_gradient * W, t.ports, own + t.slope * W, t.states, y);
    add(c + t.b_of_offset * W, t.ports, own + t.offset * W, t.states, y);
    add(c + t.b_of_input * W, t.ports, input, t.inputs, y);
    store(y, t.ports, own + t.b_offset * W);
  }

  static void commit(const bent::LinearTask& t) {
    const double* const own = t.record;
    const double* const c = t.coefficients;
    V moved[bent::kMostStates], g[bent::kMostStates];
    for (int i = 0; i < t.states; ++i) moved[i] = at(own, t.offset + i);
    add(c + t.of_wave * W, t.states, t.waves, t.ports, moved);
    add(c + t.of_mean * W, t.states, t.mean, t.bent, moved);
    for (int k = 0; k < t.bent; ++k) moved[t.bent_states[k]] = at(t.delta, k);
    for (int i = 0; i < t.states; ++i) {
      (at(own, t.state + i) + moved[i]).store(t.next + (t.state + i) * W);
    }
    for (int j = 0; j < t.inputs; ++j) V::all(0.0).store(t.next + (t.input + j) * W);
    if (!t.energy.wanted()) return;

    for (int i = 0; i < t.states; ++i) g[i] = at(own, t.slope + i);
    for (int k = 0; k < t.Q.count; ++k) {
      const bent::Entry& e = t.Q.first[k];
      g[e.row] = fma(V::all(0.5) * at(c, e.place), moved[e.column], g[e.row]);
    }
    const V weight = at(c, t.weight);
    for (int k = 0; k < t.bent; ++k) {
      g[t.bent_states[k]] = fma(weight, at(t.mean, k), g[t.bent_states[k]]);
    }
    V u[bent::kMostPorts + bent::kMostStates];
    for (int j = 0; j < t.ports; ++j) {
      u[j] = fma(at(c, t.u_of_a + j), at(t.waves, j), at(c, t.u_of_b + j) * at(t.outgoing, j));
    }
    V* const external = u + t.ports;
    for (int j = 0; j < t.inputs; ++j) external[j] = at(own, t.input + j);
    const V zero = V::all(0.0), h = V::all(t.step_s);
    V change = zero;
    for (int i = 0; i < t.states; ++i) change = fma(g[i], moved[i], change);
    const V supply = form(t.through, c, external, u, form(t.outputs, c, external, g, zero));
    const V across = form(t.P, c, g, u, zero);
    const V lost = form(t.S, c, u, u, form(t.R, c, g, g, across + across));
    change.store(t.energy.change_J);
    (h * supply).store(t.energy.external_supply_J);
    (h * lost).store(t.energy.dissipated_J);
  }
};

}  // namespace

const bent::Kernels kBent = {scatter<kLaneGroup>,
                             scatter<1>,
                             LinearStep<kLaneGroup>::freeze,
                             LinearStep<1>::freeze,
                             LinearStep<kLaneGroup>::commit,
                             LinearStep<1>::commit};

}  // namespace portwave::PORTWAVE_ISA
