#include "kernels/small_island_kernels.hpp"

#include "kernels/junction_forms.hpp"
#include "portwave/subsystems/kernels/cubic_root.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {

using Form = PortSolve::Form;

inline double coefficient_of(const PortSolve& solve, int i) {
  return solve.coefficients[i * solve.coefficient_step];
}

// Parts of one port. What does not change in an iteration is read once, and what is carried along
// stays in the object until it is kept.

template <Form>
struct OnePort;

template <>
struct OnePort<Form::affine> {
  explicit OnePort(const PortSolve& solve)
      : sigma(coefficient_of(solve, 0)), gain(coefficient_of(solve, 1)), offset(*solve.offset) {}

  [[gnu::always_inline]] bool solve(double u, double& b) {
    b = __builtin_fma(sigma, u, __builtin_fma(gain, u, offset));
    return true;
  }
  void keep(const PortSolve& /*solve*/) const {}

  double sigma, gain, offset;
};

inline Cubic<1> cubic_of(const PortSolve& solve) {
  const double* c = solve.cubic;
  return {{coefficient_of(solve, 0)}, {c[0]}, {c[solve.step]}, {c[2 * solve.step]}};
}
inline CubicSolution<1> last_of(const PortSolve& solve) {
  const double* last = solve.last;
  return {{last[0]}, {last[solve.step]}, {last[2 * solve.step]}};
}
inline void keep_last(const PortSolve& solve, const CubicSolution<1>& last) {
  solve.last[0] = last.root.part;
  solve.last[solve.step] = last.drive.part;
  solve.last[2 * solve.step] = last.inverse.part;
}

template <>
struct OnePort<Form::cubic> {
  explicit OnePort(const PortSolve& solve)
      : cubic(cubic_of(solve)),
        last(last_of(solve)),
        drive(coefficient_of(solve, 1)),
        taken(coefficient_of(solve, 2)),
        per_root(coefficient_of(solve, 3)),
        offset(*solve.offset) {}

  [[gnu::always_inline]] bool solve(double u, double& b) {
    const Vec<1> r{__builtin_fma(drive, u, 0.0)};
    const double rest = __builtin_fma(-taken, u, u - offset);
    const bool solved = solve_cubic(cubic, r, last);
    b = __builtin_fma(-per_root, last.root.part, rest);
    return solved;
  }
  void keep(const PortSolve& solve) const { keep_last(solve, last); }

  Cubic<1> cubic;
  CubicSolution<1> last;
  double drive, taken, per_root, offset;
};

template <SmallIslandKernels::Junction kJunction>
struct PairJunction {
  explicit PairJunction(const PairTask& task) : p(task.p), s(task.s) {}

  void exchange(double b1, double b2, double& a1, double& a2) const {
    if constexpr (kJunction == SmallIslandKernels::swap) {
      a1 = b2;
      a2 = b1;
    } else {
      exchange_pair(p, s, b1, b2, a1, a2);
    }
  }
  void average(double relaxation, double b1, double b2, double& u1, double& u2) const {
    if constexpr (kJunction == SmallIslandKernels::swap) {
      average_swap(relaxation, b1, b2, u1, u2);
    } else {
      average_pair(p, s, relaxation, b1, b2, u1, u2);
    }
  }
  void resolve(double third, double b1, double b2, double& u1, double& u2) const {
    if constexpr (kJunction == SmallIslandKernels::swap) {
      resolve_swap(third, b1, b2, u1, u2);
    } else {
      resolve_pair(p, s, third, b1, b2, u1, u2);
    }
  }

  double p, s;
};

template <Form kFirst, Form kSecond, SmallIslandKernels::Junction kJunction,
          SmallIslandKernels::Pass kPass>
bool sweep_pair(const PairTask& task, int evaluations, double factor, const double* b, double* a) {
  const PairJunction<kJunction> junction(task);
  const int first = task.waves[0], second = task.waves[1];
  double u1, u2;
  junction.exchange(b[first], b[second], u1, u2);
  if (evaluations > 0) {
    OnePort<kFirst> one(task.parts[0]);
    OnePort<kSecond> other(task.parts[1]);
    const double third = factor / 3.0;
    double b1, b2;
    if (!(one.solve(u1, b1) && other.solve(u2, b2))) return false;
    for (int k = 1; k < evaluations; ++k) {
      if constexpr (kPass == SmallIslandKernels::exchange) junction.exchange(b1, b2, u1, u2);
      if constexpr (kPass == SmallIslandKernels::average) junction.average(factor, b1, b2, u1, u2);
      if constexpr (kPass == SmallIslandKernels::resolve) junction.resolve(third, b1, b2, u1, u2);
      if (!(one.solve(u1, b1) && other.solve(u2, b2))) return false;
    }
    one.keep(task.parts[0]);
    other.keep(task.parts[1]);
    junction.exchange(b1, b2, u1, u2);
  }
  a[first] = u1;
  a[second] = u2;
  return true;
}

template <Form kFirst, Form kSecond, SmallIslandKernels::Junction kJunction>
constexpr PairSweep kSweeps[] = {
    sweep_pair<kFirst, kSecond, kJunction, SmallIslandKernels::exchange>,
    sweep_pair<kFirst, kSecond, kJunction, SmallIslandKernels::average>,
    sweep_pair<kFirst, kSecond, kJunction, SmallIslandKernels::resolve>,
};

PairSweep pair_sweep(Form first, Form second, SmallIslandKernels::Junction junction,
                     SmallIslandKernels::Pass pass) {
  constexpr Form A = Form::affine, C = Form::cubic;
  constexpr auto kSwap = SmallIslandKernels::swap, kReflection = SmallIslandKernels::reflection;
  const bool swaps = junction == kSwap;
  if (first == C && second == C) {
    return swaps ? kSweeps<C, C, kSwap>[pass] : kSweeps<C, C, kReflection>[pass];
  }
  if (first == C && second == A) {
    return swaps ? kSweeps<C, A, kSwap>[pass] : kSweeps<C, A, kReflection>[pass];
  }
  if (first == A && second == A) {
    return swaps ? kSweeps<A, A, kSwap>[pass] : kSweeps<A, A, kReflection>[pass];
  }
  return nullptr;
}

/// P ports, or any number of them for P = 0.
template <int P>
inline void solve_affine(const PortSolve& solve, const double* u, double* b) {
  const int p = P > 0 ? P : solve.ports;
  for (int i = 0; i < p; ++i) {
    double sum = solve.offset[i * solve.step];
    for (int j = 0; j < p; ++j) {
      sum = __builtin_fma(coefficient_of(solve, p + i * p + j), u[j], sum);
    }
    b[i] = __builtin_fma(coefficient_of(solve, i), u[i], sum);
  }
}

template <int P>
inline bool solve_cubic_part(const PortSolve& solve, const double* u, double* b) {
  const int p = P > 0 ? P : solve.ports;
  double r = 0.0;
  for (int j = 0; j < p; ++j) r = __builtin_fma(coefficient_of(solve, 1 + 3 * j), u[j], r);
  CubicSolution<1> last = last_of(solve);
  const bool solved = solve_cubic(cubic_of(solve), {r}, last);
  keep_last(solve, last);
  for (int j = 0; j < p; ++j) {
    const double rest =
        __builtin_fma(-coefficient_of(solve, 2 + 3 * j), u[j], u[j] - solve.offset[j * solve.step]);
    b[j] = __builtin_fma(-coefficient_of(solve, 3 + 3 * j), last.root.part, rest);
  }
  return solved;
}

bool solve_parts(const PortSolve* parts, int count, const double* u, double* b) {
  for (int i = 0; i < count; ++i) {
    const PortSolve& solve = parts[i];
    if (solve.form == Form::cubic) {
      if (!(solve.ports == 1 ? solve_cubic_part<1>(solve, u, b)
                             : solve_cubic_part<0>(solve, u, b))) {
        return false;
      }
    } else if (solve.ports == 1) {
      solve_affine<1>(solve, u, b);
    } else if (solve.ports == 2) {
      solve_affine<2>(solve, u, b);
    } else {
      solve_affine<0>(solve, u, b);
    }
    u += solve.ports;
    b += solve.ports;
  }
  return true;
}

}  // namespace

const SmallIslandKernels kSmallIslandKernels = {pair_sweep, solve_parts};

}  // namespace portwave::PORTWAVE_ISA
