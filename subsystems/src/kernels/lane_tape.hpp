#pragma once

// A TapeProgram for G groups of W lanes, for kernel sources alone: the same bits on every instruction set but for functions of
// the C library, and in every lane those that it has alone.

#include "kernels/lane_exponential.hpp"
#include "kernels/lane_sine.hpp"
#include "portwave/subsystems/base/tape_program.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

template <int W, int G = 1>
class LaneTape {
 public:
  using V = Vec<W>;
  using Code = TapeProgram::Code;

  LaneTape(const TapeProgram& program, double* registers)
      : program_(program), registers_(registers) {
    for (int i = 0; i < program.constants; ++i) {
      const V constant = V::all(program.constant[i]);
      each([&](int g) { put(program.variables + i, g, constant); });
    }
  }

  /// Where the variables are to be put.
  double* variable(int i, int g = 0) { return place(i, g); }
  V result(int i, int g = 0) const { return at(program_.result[i], g); }

  void run() {
    for (int i = 0; i < program_.steps; ++i) {
      const TapeProgram::Step& step = program_.step[i];
      switch (step.code) {
        case Code::add:
          each([&](int g) { put(step.to, g, at(step.a, g) + at(step.b, g)); });
          break;
        case Code::subtract:
          each([&](int g) { put(step.to, g, at(step.a, g) - at(step.b, g)); });
          break;
        case Code::multiply:
          each([&](int g) { put(step.to, g, at(step.a, g) * at(step.b, g)); });
          break;
        case Code::divide:
          each([&](int g) { put(step.to, g, at(step.a, g) / at(step.b, g)); });
          break;
        case Code::negate:
          each([&](int g) { put(step.to, g, negate(at(step.a, g))); });
          break;
        case Code::root:
          each([&](int g) { put(step.to, g, root(at(step.a, g))); });
          break;
        case Code::magnitude:
          each([&](int g) { put(step.to, g, abs(at(step.a, g))); });
          break;
        case Code::less:
          each([&](int g) {
            put(step.to, g,
                compared(at(step.a, g), at(step.b, g),
                         [](auto x, auto y, auto yes, auto no) { return x < y ? yes : no; }));
          });
          break;
        case Code::equal:
          each([&](int g) {
            put(step.to, g,
                compared(at(step.a, g), at(step.b, g),
                         [](auto x, auto y, auto yes, auto no) { return x == y ? yes : no; }));
          });
          break;
        case Code::choose:
          each([&](int g) {
            V yes = at(step.b, g);
            for_each_part([](auto& to, const auto& x, const auto& z,
                             const auto& other) { to = x != z ? to : other; },
                          yes, at(step.a, g), V::all(0.0), at(step.c, g));
            put(step.to, g, yes);
          });
          break;
        case Code::sine:
          each([&](int g) {
            const LaneSine<W> both = LaneSine<W>::of(at(step.a, g));
            put(step.b, g, both.cosine);
            put(step.to, g, both.sine);
          });
          break;
        case Code::cosine:
          each([&](int g) {
            const LaneSine<W> both = LaneSine<W>::of(at(step.a, g));
            put(step.b, g, both.sine);
            put(step.to, g, both.cosine);
          });
          break;
        case Code::exponential:
          each([&](int g) { put(step.to, g, LaneExponential<W>::of(at(step.a, g))); });
          break;
        default: {
          double from[W * G], second[W * G];  // the registers of `to` may be those of an argument
          each([&](int g) {
            at(step.a, g).store(from + g * W);
            at(step.b, g).store(second + g * W);
          });
          program_.other(step.code, from, second, place(step.to, 0), W * G);
        }
      }
    }
  }

 private:
  double* place(int i, int g) const { return registers_ + (i * G + g) * W; }
  V at(int i, int g) const { return V::load(place(i, g)); }
  void put(int i, int g, V value) { value.store(place(i, g)); }
  template <class Act>
  [[gnu::always_inline]] static void each(Act act) {
    for (int g = 0; g < G; ++g) act(g);
  }

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
  static V compared(V a, V b, Compare compare) {
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
