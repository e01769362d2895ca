#include "kick_loop.hpp"

#include <algorithm>
#include <vector>

#include "grid_loop.hpp"

namespace portwave::bench {
namespace {

/// Blanes & Moan, SRKN of 11 stages; both read the same backwards.
struct Scheme {
  double kick[12] = {.0414649985182624, .198128671918067, -.0400061921041533, .0752539843015807,
                     -.0115113874206879};
  double drift[11] = {.123229775946271, .290553797799558, -.127049212625417, -.246331761062075,
                      .357208872795928};
  Scheme() {
    kick[5] = 0.5 - (kick[0] + kick[1] + kick[2] + kick[3] + kick[4]);
    drift[5] = 1.0 - 2.0 * (drift[0] + drift[1] + drift[2] + drift[3] + drift[4]);
    for (int i = 0; i < 6; ++i) kick[11 - i] = kick[i];
    for (int i = 0; i < 5; ++i) drift[10 - i] = drift[i];
  }
};

class Loop final : public KickLoop {
 public:
  explicit Loop(std::size_t size) : n_(size), ld_(size + 4) {
    for (std::vector<double>* field : {&q_, &u_, &w_}) field->assign((n_ + 2) * ld_ + 8, 0.0);
    for (std::size_t node = 0; node < n_ * n_; ++node) {
      q_[at(node)] = grid_position(node);
      u_[at(node)] = grid_velocity(node);
    }
  }

  void step(double step_s) override {
    static const Scheme scheme;
    for (int stage = 0; stage < 12; ++stage) {
      kick(scheme.kick[stage] * step_s, stage > 0 ? kDamper : 0.0);
      if (stage < 11) drift(scheme.drift[stage] * step_s);
    }
  }
  double position(std::size_t node) const override { return q_[at(node)]; }
  double velocity(std::size_t node) const override { return u_[at(node)]; }

 private:
  static constexpr double kMass = 8.0, kGround = 100.0 / kMass, kCubic = 8000.0 / kMass;
  static constexpr double kSpring = 120.0 / kMass, kDamper = 0.05 / kMass;

  std::size_t at(std::size_t node) const { return (node / n_ + 1) * ld_ + node % n_ + 2; }

  /// Beyond the edges nodes move along, so that nothing pulls there.
  void mirror(std::vector<double>& x) const {
    std::copy_n(&x[ld_], ld_, x.data());
    std::copy_n(&x[n_ * ld_], ld_, &x[(n_ + 1) * ld_]);
    for (std::size_t i = 1; i <= n_; ++i) {
      x[i * ld_ + 1] = x[i * ld_ + 2];
      x[i * ld_ + n_ + 2] = x[i * ld_ + n_ + 1];
    }
  }

  void kick(double tau, double damper) {
    mirror(q_);
    mirror(w_);
    for (std::size_t i = 1; i <= n_; ++i) {
      const double *const q = &q_[i * ld_ + 2], *const w = &w_[i * ld_ + 2];
      double* const u = &u_[i * ld_ + 2];
#pragma GCC ivdep
      for (std::size_t j = 0; j < n_; ++j) {
        const double x = q[j];
        const double pull = kSpring * (q[j - 1] + q[j + 1] + q[j - ld_] + q[j + ld_] - 4.0 * x);
        const double loss = damper * (w[j - 1] + w[j + 1] + w[j - ld_] + w[j + ld_] - 4.0 * w[j]);
        u[j] += loss + tau * (pull - (kGround + kCubic * x * x) * x);
      }
    }
  }

  void drift(double tau) {
    mirror(u_);
    const double half = 0.5 * tau * tau;
    for (std::size_t i = 1; i <= n_; ++i) {
      const double* const u = &u_[i * ld_ + 2];
      double *const q = &q_[i * ld_ + 2], *const w = &w_[i * ld_ + 2];
#pragma GCC ivdep
      for (std::size_t j = 0; j < n_; ++j) {
        const double brake = kDamper * (u[j - 1] + u[j + 1] + u[j - ld_] + u[j + ld_] - 4.0 * u[j]);
        const double moved = tau * u[j] + half * brake;
        w[j] = moved;
        q[j] += moved;
      }
    }
  }

  std::size_t n_, ld_;
  std::vector<double> q_, u_, w_;
};

}  // namespace

std::unique_ptr<KickLoop> kick_loop(std::size_t size) { return std::make_unique<Loop>(size); }

}  // namespace portwave::bench
