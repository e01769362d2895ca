#pragma once

// A TapeProgram for W lanes, for kernel sources alone: the same bits on every instruction set but for functions of
// the C library, and in every lane those that it has alone.

#include "kernels/lane_exponential.hpp"
#include "kernels/lane_sine.hpp"
#include "portwave/subsystems/base/tape_program.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

template <int W>
class LaneTape {
 public:
  using V = Vec<W>;
  using Code = TapeProgram::Code;

  LaneTape(const TapeProgram& program, double* registers)
      : program_(program), registers_(registers) {
    double* to = registers + program.variables * W;
    for (int i = 0; i < program.constants; ++i, to += W) V::all(program.constant[i]).store(to);
  }

  /// Where the variables are to be put.
  double* variable(int i) { return registers_ + i * W; }
  V result(int i) const { return at(program_.result[i]); }

  void run() {
    for (int i = 0; i < program_.steps; ++i) {
      const TapeProgram::Step& step = program_.step[i];
      const V a = at(step.a);
      switch (step.code) {
        case Code::add:
          put(step.to, a + at(step.b));
          break;
        case Code::subtract:
          put(step.to, a - at(step.b));
          break;
        case Code::multiply:
          put(step.to, a * at(step.b));
          break;
        case Code::divide:
          put(step.to, a / at(step.b));
          break;
        case Code::negate:
          put(step.to, negate(a));
          break;
        case Code::root:
          put(step.to, root(a));
          break;
        case Code::magnitude:
          put(step.to, abs(a));
          break;
        case Code::less:
          put(step.to, each(a, at(step.b),
                            [](auto x, auto y, auto yes, auto no) { return x < y ? yes : no; }));
          break;
        case Code::equal:
          put(step.to, each(a, at(step.b),
                            [](auto x, auto y, auto yes, auto no) { return x == y ? yes : no; }));
          break;
        case Code::choose: {
          V yes = at(step.b);
          const V no = at(step.c), zero = V::all(0.0);
          for_each_part([&](auto& to, const auto& x, const auto& z,
                            const auto& other) { to = x != z ? to : other; },
                        yes, a, zero, no);
          put(step.to, yes);
          break;
        }
        case Code::sine: {
          const LaneSine<W> both = LaneSine<W>::of(a);
          put(step.b, both.cosine);
          put(step.to, both.sine);
          break;
        }
        case Code::cosine: {
          const LaneSine<W> both = LaneSine<W>::of(a);
          put(step.b, both.sine);
          put(step.to, both.cosine);
          break;
        }
        case Code::exponential:
          put(step.to, LaneExponential<W>::of(a));
          break;
        default: {
          double from[W], second[W];
          a.store(from);
          at(step.b).store(second);
          program_.other(step.code, from, second, registers_ + step.to * W, W);
        }
      }
    }
  }

 private:
  V at(int place) const { return V::load(registers_ + place * W); }
  void put(int place, V value) { value.store(registers_ + place * W); }

  template <class Act>
  static void for_each_part(Act act, V& to, const V& a, const V& b, const V& c) {
    if constexpr (W == 1) {
      act(to.part, a.part, b.part, c.part);
    } else {
      for (int i = 0; i < V::kParts; ++i) act(to.part[i], a.part[i], b.part[i], c.part[i]);
    }
  }
  /// 1 where it holds, else 0.
  template <class Compare>
  static V each(V a, V b, Compare compare) {
    V to = V::all(1.0);
    for_each_part([&](auto& out, const auto& x, const auto& y,
                      const auto& no) { out = compare(x, y, out, no); },
                  to, a, b, V::all(0.0));
    return to;
  }

  static V root(V a) {
    if constexpr (W == 1) {
      a.part = __builtin_sqrt(a.part);
    } else {
#if defined(__AVX512F__)
      for (auto& part : a.part) part = _mm512_maskz_sqrt_pd(0xff, part);
#elif defined(__AVX2__) && defined(__FMA__)
      for (auto& part : a.part) part = _mm256_sqrt_pd(part);
#else
      double values[W];
      a.store(values);
      for (double& value : values) value = __builtin_sqrt(value);
      a = V::load(values);
#endif
    }
    return a;
  }

  const TapeProgram& program_;
  double* registers_;
};

}  // namespace portwave::PORTWAVE_ISA
