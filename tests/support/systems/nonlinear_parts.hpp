#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

// Small nonlinear parts with known properties, for the tests of this folder.

namespace portwave::testing {

/// H = ¼|q|⁴ + q₁²q₂ + ½|p|²/m, not separable and not convex; a force on mass 1, a friction on 2,
/// an external force on mass 2. State (q₁, q₂, p₁, p₂). Ports: effort-in "push".
inline std::unique_ptr<NonlinearPortHamiltonian> coupled_quartic(
    NonlinearPortHamiltonian::Options options = {}, bool with_hessian = true) {
  constexpr double m = 2.0;
  Hamiltonian H;
  H.value = [](const double* x) {
    const double r2 = x[0] * x[0] + x[1] * x[1];
    return 0.25 * r2 * r2 + x[0] * x[0] * x[1] + 0.5 * (x[2] * x[2] + x[3] * x[3]) / m;
  };
  H.gradient = [](const double* x, double* g) {
    const double r2 = x[0] * x[0] + x[1] * x[1];
    g[0] = r2 * x[0] + 2.0 * x[0] * x[1];
    g[1] = r2 * x[1] + x[0] * x[0];
    g[2] = x[2] / m;
    g[3] = x[3] / m;
  };
  if (with_hessian) {
    H.hessian = [](const double* x, double* h) {
      const double r2 = x[0] * x[0] + x[1] * x[1];
      std::fill(h, h + 16, 0.0);
      h[0] = r2 + 2.0 * x[0] * x[0] + 2.0 * x[1];
      h[1] = h[4] = 2.0 * x[0] * x[1] + 2.0 * x[0];
      h[5] = r2 + 2.0 * x[1] * x[1];
      h[10] = h[15] = 1.0 / m;
    };
  }
  Structure s = Structure::zero(4, 2);
  for (const int i : {0, 1}) {
    s.J.insert(i, i + 2) = 1.0;
    s.J.insert(i + 2, i) = -1.0;
  }
  s.R.insert(3, 3) = 0.3;
  s.G.insert(2, 0) = 1.0;
  s.G.insert(3, 1) = 1.0;
  Signature signature{"coupled_quartic",
                      {{"q1", "m"}, {"q2", "m"}, {"p1", "kg m/s"}, {"p2", "kg m/s"}},
                      {{"push", Causality::effort_in, Domain::translation, 1}},
                      {{"force", "N"}}};
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

/// Pendulum, H = ½p² + 9(1 − cos θ) + offset, torque port and friction. State (θ, p).
inline std::unique_ptr<NonlinearPortHamiltonian> pendulum(
    NonlinearPortHamiltonian::Options options = {}, double offset_J = 0.0) {
  Hamiltonian H;
  H.value = [offset_J](const double* x) {
    return 0.5 * x[1] * x[1] + 9.0 * (1.0 - std::cos(x[0])) + offset_J;
  };
  H.gradient = [](const double* x, double* g) {
    g[0] = 9.0 * std::sin(x[0]);
    g[1] = x[1];
  };
  H.hessian = [](const double* x, double* h) {
    h[0] = 9.0 * std::cos(x[0]);
    h[1] = h[2] = 0.0;
    h[3] = 1.0;
  };
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.R.insert(1, 1) = 0.1;
  s.G.insert(1, 0) = 1.0;
  Signature signature{"pendulum",
                      {{"theta", "rad"}, {"p", "N m s"}},
                      {{"torque", Causality::effort_in, Domain::rotation, 1}},
                      {}};
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

/// Chain of n unit masses, H = Σ½pᵢ² + Σ[½r² + ¼r⁴] with r = qᵢ₊₁ − qᵢ, qₙ held; a force on the
/// first mass. States (q₁ … qₙ, p₁ … pₙ), convex. No Hessian callback.
inline std::unique_ptr<NonlinearPortHamiltonian> quartic_chain(
    int n, NonlinearPortHamiltonian::Options options = {}) {
  Hamiltonian H;
  H.value = [n](const double* x) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) {
      const double r = (i + 1 < n ? x[i + 1] : 0.0) - x[i];
      sum += 0.5 * x[n + i] * x[n + i] + 0.5 * r * r + 0.25 * r * r * r * r;
    }
    return sum;
  };
  H.gradient = [n](const double* x, double* g) {
    std::fill(g, g + n, 0.0);
    for (int i = 0; i < n; ++i) {
      const double r = (i + 1 < n ? x[i + 1] : 0.0) - x[i];
      const double force = r + r * r * r;
      g[i] -= force;
      if (i + 1 < n) g[i + 1] += force;
      g[n + i] = x[n + i];
    }
  };
  Structure s = Structure::zero(2 * n, 1);
  Signature signature{
      "quartic_chain", {}, {{"push", Causality::effort_in, Domain::translation, 1}}, {}};
  for (int i = 0; i < 2 * n; ++i) {
    signature.states.push_back({(i < n ? "q" : "p") + std::to_string(i % n + 1), ""});
    s.J.insert(i, (i + n) % (2 * n)) = i < n ? 1.0 : -1.0;
  }
  s.R.insert(2 * n - 1, 2 * n - 1) = 0.2;
  s.G.insert(n, 0) = 1.0;
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

/// Capacitor with H = cosh(q) − 1 fed through a lossy feedthrough: convex, one state, flow-in.
///   q' = f,  e = sinh(q) + 0.2 f
inline std::unique_ptr<NonlinearPortHamiltonian> stiffening_capacitor(
    NonlinearPortHamiltonian::Options options = {}) {
  Hamiltonian H;
  H.value = [](const double* x) { return std::cosh(x[0]) - 1.0; };
  H.gradient = [](const double* x, double* g) { g[0] = std::sinh(x[0]); };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  s.S.insert(0, 0) = 0.2;
  Signature signature{"stiffening_capacitor",
                      {{"q", "C"}},
                      {{"terminals", Causality::flow_in, Domain::electrical, 1}},
                      {}};
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

/// Free rigid body: H = ½ΣLᵢ²/Iᵢ, J(L) = [L]×, a drag |L|²·drag on every axis, and a torque port of
/// dimension 3. The structure depends on the state; without drag and torque |L| is conserved.
inline std::unique_ptr<NonlinearPortHamiltonian> rigid_body(double drag = 0.05) {
  Hamiltonian H;
  H.value = [](const double* x) {
    return 0.5 * (x[0] * x[0] / 1.0 + x[1] * x[1] / 2.0 + x[2] * x[2] / 3.0);
  };
  H.gradient = [](const double* x, double* g) {
    for (int i = 0; i < 3; ++i) g[i] = x[i] / (i + 1.0);
  };
  H.hessian = [](const double*, double* h) {
    std::fill(h, h + 9, 0.0);
    for (int i = 0; i < 3; ++i) h[4 * i] = 1.0 / (i + 1.0);
  };
  NonlinearPortHamiltonian::Options options;
  options.default_state = {1.0, 0.6, -0.8};
  options.structure_at = [drag](const double* x, Structure& out) {
    out.J.coeffRef(0, 1) = -x[2];
    out.J.coeffRef(1, 0) = x[2];
    out.J.coeffRef(0, 2) = x[1];
    out.J.coeffRef(2, 0) = -x[1];
    out.J.coeffRef(1, 2) = -x[0];
    out.J.coeffRef(2, 1) = x[0];
    const double r2 = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    for (int i = 0; i < 3; ++i) out.R.coeffRef(i, i) = drag * r2;
  };
  Structure s = Structure::zero(3, 3);
  options.structure_at(options.default_state.data(), s);
  for (int i = 0; i < 3; ++i) s.G.insert(i, i) = 1.0;
  Signature signature{"rigid_body",
                      {{"L1", "N m s"}, {"L2", "N m s"}, {"L3", "N m s"}},
                      {{"torque", Causality::effort_in, Domain::rotation, 3}},
                      {}};
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

}  // namespace portwave::testing
