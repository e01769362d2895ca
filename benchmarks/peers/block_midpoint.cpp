// The monolithic step a careful engineer would write for this chain. The matrix of the velocity
// form is block tridiagonal with a single number s between neighbouring blocks:
//   T_b w_b − s_{b−1} e₀ w_{b−1,4} − s_b e₄ w_{b+1,0} = r_b.
// Its block LDLᵀ has the pivots S_b = T_b − s²_{b−1} (S⁻¹_{b−1})₄₄ e₀e₀ᵀ, so that with
//   t_b = S_b⁻¹ r_b,  g_b = s_{b−1} S_b⁻¹ e₀,  f_b = s_b S_b⁻¹ e₄
// both sweeps shrink to one multiply-add per block, z_b = t_{b,4} + g_{b,4} z_{b−1} and
// x_b = (t_b + g_b z_{b−1})₀ + f_{b,0} x_{b+1}. All the rest is independent from block to block and
// is stored mass by mass over the blocks, which fills the vector registers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "velocity_form.hpp"

namespace portwave::bench {
namespace {

/// A number per block, with one more before the first and one behind the last.
class Lanes {
 public:
  explicit Lanes(std::size_t blocks) : values_(blocks + 2, 0.0) {}
  double* data() { return values_.data() + 1; }
  const double* data() const { return values_.data() + 1; }

 private:
  std::vector<double> values_;
};

class BlockTridiagonal final : public MidpointPeer {
 public:
  BlockTridiagonal(const Chain& chain, double h)
      : h_(h),
        blocks_(chain.blocks.size()),
        stiffness_(blocks_),
        coupling_(blocks_),
        momentum_(blocks_),
        z_(blocks_),
        x_(blocks_) {
    for (auto* lanes : {&q_, &v_, &t_, &g_, &f_, &inverse_pivot_, &multiplier_}) {
      lanes->assign(kMasses, Lanes(blocks_));
    }
    for (std::size_t i = 0; i < chain.masses(); ++i) {
      q_[i % kMasses].data()[i / kMasses] = chain.q[i];
      v_[i % kMasses].data()[i / kMasses] = chain.v[i];
    }
    for (std::size_t b = 0; b < blocks_; ++b) {
      stiffness_.data()[b] = chain.blocks[b].stiffness_N_per_m;
      coupling_.data()[b] = chain.spring_after(b * kMasses + kMasses - 1);
      momentum_.data()[b] = 2.0 * chain.blocks[b].mass_kg / h;
    }
    factorise(velocity_matrix(chain, h));
  }

  void step() override {
    solve_blocks();
    sweep();
    update();
  }

  void read(std::span<double> q, std::span<double> v) const override {
    for (std::size_t i = 0; i < q.size(); ++i) {
      q[i] = q_[i % kMasses].data()[i / kMasses];
      v[i] = v_[i % kMasses].data()[i / kMasses];
    }
  }

 private:
  static_assert(kMasses == 5, "the loops over a block are written out for five masses");
  using PerMass = std::vector<Lanes>;

  void factorise(const Tridiagonal& matrix) {
    double carried = 0.0;  // s² (S⁻¹)₄₄ of the block before
    for (std::size_t b = 0; b < blocks_; ++b) {
      const double* diagonal = matrix.diagonal.data() + b * kMasses;
      const double* off = matrix.off_diagonal.data() + b * kMasses;
      std::array<double, kMasses> inverse{}, l{};
      for (std::size_t m = 0; m < kMasses; ++m) {
        double pivot = diagonal[m];
        if (m == 0) {
          pivot -= carried;
        } else {
          l[m] = off[m - 1] * inverse[m - 1];
          pivot -= l[m] * off[m - 1];
        }
        inverse[m] = 1.0 / pivot;
        inverse_pivot_[m].data()[b] = inverse[m];
        multiplier_[m].data()[b] = l[m];
      }
      const double before = b > 0 ? -matrix.off_diagonal[b * kMasses - 1] : 0.0;
      const double behind = b + 1 < blocks_ ? -off[kMasses - 1] : 0.0;
      const auto column = [&](std::size_t unit, double scale, PerMass& out) {
        std::array<double, kMasses> y{};
        for (std::size_t m = 0; m < kMasses; ++m) {
          y[m] = (m == unit ? scale : 0.0) - (m > 0 ? l[m] * y[m - 1] : 0.0);
        }
        for (std::size_t m = kMasses; m-- > 0;) {
          y[m] = y[m] * inverse[m] - (m + 1 < kMasses ? l[m + 1] * y[m + 1] : 0.0);
          out[m].data()[b] = y[m];
        }
      };
      column(0, before, g_);
      column(kMasses - 1, behind, f_);
      carried = behind * f_[kMasses - 1].data()[b];
    }
  }

  /// t_b = S_b⁻¹ r_b.
  void solve_blocks() {
    const double *q0 = q_[0].data(), *q1 = q_[1].data(), *q2 = q_[2].data(), *q3 = q_[3].data(),
                 *q4 = q_[4].data();
    const double *v0 = v_[0].data(), *v1 = v_[1].data(), *v2 = v_[2].data(), *v3 = v_[3].data(),
                 *v4 = v_[4].data();
    const double *l1 = multiplier_[1].data(), *l2 = multiplier_[2].data(),
                 *l3 = multiplier_[3].data(), *l4 = multiplier_[4].data();
    const double *i0 = inverse_pivot_[0].data(), *i1 = inverse_pivot_[1].data(),
                 *i2 = inverse_pivot_[2].data(), *i3 = inverse_pivot_[3].data(),
                 *i4 = inverse_pivot_[4].data();
    const double *k = stiffness_.data(), *kc = coupling_.data() - 1, *c = momentum_.data();
    double *__restrict t0 = t_[0].data(), *__restrict t1 = t_[1].data(),
           *__restrict t2 = t_[2].data(), *__restrict t3 = t_[3].data(),
           *__restrict t4 = t_[4].data();
#pragma GCC ivdep
    for (std::size_t b = 0; b < blocks_; ++b) {
      const double s01 = k[b] * (q1[b] - q0[b]), s12 = k[b] * (q2[b] - q1[b]);
      const double s23 = k[b] * (q3[b] - q2[b]), s34 = k[b] * (q4[b] - q3[b]);
      const double left = kc[b] * (q0[b] - q4[b - 1]);
      const double right = kc[b + 1] * (q0[b + 1] - q4[b]);
      const double y0 = c[b] * v0[b] + s01 - left;
      const double y1 = c[b] * v1[b] + s12 - s01 - l1[b] * y0;
      const double y2 = c[b] * v2[b] + s23 - s12 - l2[b] * y1;
      const double y3 = c[b] * v3[b] + s34 - s23 - l3[b] * y2;
      const double y4 = c[b] * v4[b] + right - s34 - l4[b] * y3;
      const double w4 = y4 * i4[b];
      const double w3 = y3 * i3[b] - l4[b] * w4;
      const double w2 = y2 * i2[b] - l3[b] * w3;
      const double w1 = y1 * i1[b] - l2[b] * w2;
      t4[b] = w4;
      t3[b] = w3;
      t2[b] = w2;
      t1[b] = w1;
      t0[b] = y0 * i0[b] - l1[b] * w1;
    }
  }

  /// The two recurrences from block to block: z_b up the chain, x_b down.
  void sweep() {
    const double *t0 = t_[0].data(), *t4 = t_[4].data();
    const double *g0 = g_[0].data(), *g4 = g_[4].data(), *f0 = f_[0].data();
    double *z = z_.data(), *x = x_.data();
    double carried = 0.0;
    for (std::size_t b = 0; b < blocks_; ++b) z[b] = carried = t4[b] + g4[b] * carried;
    carried = 0.0;
    for (std::size_t b = blocks_; b-- > 0;) {
      x[b] = carried = t0[b] + g0[b] * z[static_cast<std::ptrdiff_t>(b) - 1] + f0[b] * carried;
    }
  }

  /// w_b = t_b + g_b z_{b−1} + f_b x_{b+1}, and the step.
  void update() {
    const double *before = z_.data() - 1, *behind = x_.data() + 1;
    for (std::size_t m = 0; m < kMasses; ++m) {
      const double *t = t_[m].data(), *g = g_[m].data(), *f = f_[m].data();
      double* __restrict q = q_[m].data(), * __restrict v = v_[m].data();
#pragma GCC ivdep
      for (std::size_t b = 0; b < blocks_; ++b) {
        const double w = t[b] + g[b] * before[b] + f[b] * behind[b];
        q[b] += h_ * w;
        v[b] = 2.0 * w - v[b];
      }
    }
  }

  double h_;
  std::size_t blocks_;
  Lanes stiffness_, coupling_, momentum_;
  Lanes z_, x_;
  PerMass q_, v_, t_, g_, f_, inverse_pivot_, multiplier_;
};

}  // namespace

std::unique_ptr<MidpointPeer> block_tridiagonal(const Chain& chain, double step_s) {
  return std::make_unique<BlockTridiagonal>(chain, step_s);
}

}  // namespace portwave::bench
