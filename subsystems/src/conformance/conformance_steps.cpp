#include <cstring>

#include "conformance/conformance_tools.hpp"
#include "core/port_closure.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

// The laws of a part's step: of the batch that solves it. Those of the physics are in
// conformance.cpp.

namespace portwave {
namespace {

using conformance::energy_size;
using conformance::fastest_rate;
using conformance::FrozenMap;
using conformance::moved;
using conformance::moved_size;
using conformance::own_batch;
using conformance::Sampler;
using conformance::sweep;
using conformance::Tally;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Outcome = FrozenMap::Outcome;

FrozenMap frozen_map(const Subsystem& part, Sampler& sampler, double h) {
  const VectorXd impedance = sampler.impedance();
  VectorXd x = sampler.state();
  return {own_batch(part), h, impedance, std::move(x), sampler.inputs()};
}

bool solved(Tally& tally, const Outcome& outcome, const std::string& where) {
  if (outcome.status.ok()) return true;
  tally.fail(fmt::format("port solve: {}, {}", to_string(outcome.status.fault), where));
  return false;
}

double wave_energy(const VectorXd& a) { return 0.5 * a.squaredNorm(); }

}  // namespace

double conformance::energy_size(const Subsystem& part, const VectorXd& x, const VectorXd& a,
                                const Outcome& out) {
  VectorXd g(x.size());
  part.discrete_gradient(x.data(), out.x_next.data(), g.data());
  return std::abs(part.storage(x.data())) + std::abs(part.storage(out.x_next.data())) +
         wave_energy(a) + wave_energy(out.b) + std::abs(out.energy.external_supply_J) +
         std::abs(out.energy.dissipated_J) +
         g.cwiseAbs().dot(moved_size(part, x.cwiseAbs() + out.x_next.cwiseAbs()));
}

namespace {

bool same_bits(const VectorXd& x, const VectorXd& y) {
  return x.size() == y.size() &&
         (x.size() == 0 || std::memcmp(x.data(), y.data(),
                                       static_cast<std::size_t>(x.size()) * sizeof(double)) == 0);
}

bool same_bits(const Outcome& one, const Outcome& other) {
  const auto energies = [](const StepEnergy& energy) -> VectorXd {
    return Eigen::Vector3d(energy.change_J, energy.external_supply_J, energy.dissipated_J);
  };
  return same_bits(one.b, other.b) && same_bits(one.x_next, other.x_next) &&
         same_bits(energies(one.energy), energies(other.energy));
}

void see_same(Tally& tally, bool same, const char* what, const std::string& where) {
  tally.see(same ? 0.0 : 1.0, 0.5,
            [&] { return fmt::format("{}, {}", same ? "the same bits" : what, where); });
}

/// u of the scalar ports and external inputs.
VectorXd port_inputs(const Subsystem& part, const std::vector<PortClosure>& closures,
                     const VectorXd& a, const VectorXd& b, const VectorXd& external) {
  VectorXd u(a.size() + part.signature().input_size());
  for (Eigen::Index j = 0; j < a.size(); ++j) {
    u[j] = closures[static_cast<std::size_t>(j)].input(a[j], b[j]);
  }
  u.tail(external.size()) = external;
  return u;
}

/// What E does not see of x⁺, by the efforts that it stands for.
void see_algebraic(Tally& tally, const Subsystem& part, const VectorXd& x, const VectorXd& x_next,
                   const VectorXd& expected, const std::string& where) {
  if (part.linear_form().E == nullptr) return;
  VectorXd z(x.size()), z_expected(x.size());
  part.discrete_gradient(x.data(), x_next.data(), z.data());
  part.discrete_gradient(x.data(), expected.data(), z_expected.data());
  const double size = z_expected.cwiseAbs().maxCoeff();
  tally.see((z - z_expected).cwiseAbs().maxCoeff(), 1e-9 * size,
            [&] { return fmt::format("the discrete gradient differs, {}", where); });
}

}  // namespace

LawReport check_energy_law(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("energy_law");
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    FrozenMap map = frozen_map(part, sampler, h);
    const VectorXd a = sampler.waves();
    const Outcome out = map.advance(a);
    if (!solved(tally, out, where)) return;
    const double allowed = 1e-12 * energy_size(part, map.state(), a, out);
    const double stored = part.storage(out.x_next.data()) - part.storage(map.state().data());
    const double supplied = wave_energy(a) - wave_energy(out.b) + out.energy.external_supply_J;
    const double defect = stored - supplied + out.energy.dissipated_J;
    tally.see(std::abs(defect), allowed,
              [&] { return fmt::format("energy balance off by {:.3e} J, {}", defect, where); });
    const double misreported = out.energy.change_J - stored;
    tally.see(std::abs(misreported), allowed,
              [&] { return fmt::format("change_J off by {:.3e} J, {}", misreported, where); });
    if (part.is_active()) return;
    tally.see(-out.energy.dissipated_J, allowed, [&] {
      return fmt::format("dissipation {:.3e} J < 0, {}", out.energy.dissipated_J, where);
    });
    tally.see(stored - supplied, allowed, [&] {
      return fmt::format("stored {:.3e} J more than supplied, {}", stored - supplied, where);
    });
  });
  return std::move(tally).report();
}

LawReport check_nonexpansive(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("nonexpansive");
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    FrozenMap map = frozen_map(part, sampler, h);
    for (const double distance : {1.0, 1e-2, 1e-4}) {
      const VectorXd alpha = sampler.waves();
      const VectorXd beta = alpha + distance * sampler.waves();
      const Outcome S_alpha = map.scatter(alpha);
      const Outcome S_beta = map.scatter(beta);
      if (!solved(tally, S_alpha, where) || !solved(tally, S_beta, where)) return;
      const double in = (alpha - beta).norm();
      const double out = (S_alpha.b - S_beta.b).norm();
      const double round_off = 1e-12 * in + 1e-13 * (S_alpha.b.norm() + alpha.norm());
      tally.see(out - in, round_off,
                [&] { return fmt::format("|Sa - Sb| = {:.9g} |a - b|, {}", out / in, where); });
    }
  });
  return std::move(tally).report();
}

LawReport check_frozen_map_purity(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("frozen_map_purity");
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    const VectorXd impedance = sampler.impedance();
    const VectorXd x = sampler.state(), input = sampler.inputs();
    FrozenMap map(own_batch(part), h, impedance, x, input);
    const VectorXd a = sampler.waves();
    const Outcome scattered = map.scatter(a);
    map.freeze();
    const Outcome advanced = map.advance(a);
    if (!solved(tally, scattered, where) || !solved(tally, advanced, where)) return;
    see_same(tally, same_bits(scattered.b, advanced.b), "advance gave another b than scatter",
             where);
    for (int k = 0; k < 3; ++k) {
      const VectorXd other = sampler.waves();
      if (!solved(tally, map.scatter(other), where)) return;
      if (k > 0 && !solved(tally, map.advance(other), where)) return;
      // A warm start may move the last bits, no more.
      const Outcome again = map.scatter(a);
      if (!solved(tally, again, where)) return;
      const double allowed = 1e-13 * (a.norm() + scattered.b.norm());
      tally.see((again.b - scattered.b).norm(), allowed, [&] {
        return fmt::format("scatter gave another b after other solves, {}", where);
      });
      see_same(tally, same_bits(map.advance(a), advanced),
               "advance gave another result after other solves", where);
      map.freeze();
      see_same(tally, same_bits(map.advance(a), advanced),
               "advance gave another result after freezing again", where);
      map.freeze();
      see_same(tally, same_bits(map.scatter(a).b, scattered.b),
               "scatter gave another b after freezing again", where);
    }
    FrozenMap fresh(own_batch(part), h, impedance, x, input);
    see_same(tally, same_bits(fresh.advance(a), advanced), "a fresh batch gave another result",
             where);
    map.freeze();
    FrozenMap told(own_batch(part), h, map);
    if (!told.batch().record_regions().empty()) {
      see_same(tally, same_bits(told.advance(a), advanced),
               "a batch that was told of a record, and froze none, gave another result", where);
    }
    FrozenMap zero(own_batch(part), h, impedance, x, VectorXd::Zero(input.size()));
    const Outcome without = zero.advance(a);
    zero.freeze(nullptr);
    const Outcome null = zero.advance(a);
    if (!solved(tally, without, where) || !solved(tally, null, where)) return;
    see_same(tally, without.b == null.b && without.x_next == null.x_next,
             "a null input differs from zero inputs", where);
  });
  return std::move(tally).report();
}

LawReport check_inexact_scatter(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("inexact_scatter");
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    FrozenMap map = frozen_map(part, sampler, h);
    const VectorXd limit = sampler.waves();
    std::vector<VectorXd> incident;
    for (const double away : {1.0, 0.3, 0.1, 3e-2, 1e-2, 0.5, 1e-4, 1e-8, 0.0, 0.0}) {
      incident.emplace_back(limit + away * sampler.waves());
    }
    std::vector<Outcome> first;
    for (const bool again : {false, true}) {
      map.freeze();
      for (std::size_t k = 0; k < incident.size(); ++k) {
        const VectorXd& a = incident[k];
        const Outcome near = map.inexact_scatter(a);
        if (!solved(tally, near, where)) return;
        if (again) {
          see_same(tally, same_bits(near.b, first[k].b),
                   "inexact_scatter gave another b after freezing again", where);
          continue;
        }
        first.push_back(near);
        FrozenMap fresh(own_batch(part), h, map.impedance(), map.state(), map.input());
        const Outcome exact = fresh.scatter(a);
        if (!solved(tally, exact, where)) return;
        const double distance = k < 2 ? 0.0 : (a - incident[k - 1]).norm();
        const double error = (near.b - exact.b).norm();
        tally.see(error,
                  StepBatch::kInexactScatterError * distance + 1e-13 * (a.norm() + exact.b.norm()),
                  [&] {
                    return fmt::format(
                        "inexact scatter {} is off by {:.3e} after a distance of {:.3e}, {}", k,
                        error, distance, where);
                  });
      }
    }
  });
  return std::move(tally).report();
}

LawReport check_affine_form(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("affine_form");
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    FrozenMap map = frozen_map(part, sampler, h);
    MatrixXd D_rows(part.signature().wave_size(), part.signature().wave_size());
    VectorXd b_offset(part.signature().wave_size());
    const AffineMap* const affine = map.batch().affine_map();
    if (affine == nullptr) return;
    affine->affine_matrix(0, D_rows.data());
    affine->affine_offset(0, map.record(), b_offset.data());
    const double* const matrix = D_rows.data();  // row by row
    const VectorXd a = sampler.waves();
    const Outcome out = map.scatter(a);
    if (!solved(tally, out, where)) return;
    for (Eigen::Index i = 0; i < a.size(); ++i) {
      double b = b_offset[i];
      double size = std::abs(b);
      for (Eigen::Index j = 0; j < a.size(); ++j) {
        b += matrix[i * a.size() + j] * a[j];
        size += std::abs(matrix[i * a.size() + j] * a[j]);
      }
      tally.see(std::abs(b - out.b[i]), 1e-13 * size, [&] {
        return fmt::format("b0 + D a = {:.17g}, S(a) = {:.17g}, {}", b, out.b[i], where);
      });
    }
  });
  return std::move(tally).report();
}

namespace {

/// What the equations of a step leave at its outcome, where Newton's method finds no solution to compare it with:
///   x⁺ − x = h v,  v = (J − R)∇̄H + (G − P)u,  y = (G + P)ᵀ∇̄H + (S + N)u,  the matrices over a step by h v.
/// For parts without an E and without laws of ports.
void see_equations(Tally& tally, const Subsystem& part, const FrozenMap& map, double h,
                   const VectorXd& impedance, const VectorXd& a, const VectorXd& input,
                   const Outcome& out, const std::string& where) {
  const auto closures = port_closures(part.signature(), h, impedance.data());
  const VectorXd u = port_inputs(part, closures, a, out.b, input);
  VectorXd g(map.state().size());
  part.discrete_gradient(map.state().data(), out.x_next.data(), g.data());
  Structure s = part.structure();
  const auto rate = [&]() -> VectorXd { return s.J * g - s.R * g + s.G * u - s.P * u; };
  part.structure_over(map.state().data(), VectorXd(out.x_next - map.state()).data(), h, s);
  part.structure_over(map.state().data(), VectorXd(h * rate()).data(), h, s);
  const VectorXd v = rate(), y = s.G.transpose() * g + s.P.transpose() * g + s.S * u + s.N * u;
  const VectorXd defect = (out.x_next - map.state() - h * v).cwiseAbs();
  const VectorXd size = out.x_next.cwiseAbs() + map.state().cwiseAbs() + h * v.cwiseAbs();
  for (Eigen::Index i = 0; i < defect.size(); ++i) {
    tally.see(defect[i], 1e-10 * size.maxCoeff(), [&] {
      return fmt::format("state {} off by {:.3e}, {} (equations)", i, defect[i], where);
    });
  }
  const double largest = y.cwiseAbs().maxCoeff();
  for (Eigen::Index j = 0; j < a.size(); ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    const double left = port.alpha * u[j] + port.beta * y[j] - port.s * a[j];
    const double terms =
        std::abs(port.alpha * u[j]) + port.beta * largest + std::abs(port.s * a[j]);
    tally.see(std::abs(left), 1e-9 * terms, [&] {
      return fmt::format("the wave relation of port {} off by {:.3e}, {} (equations)", j, left,
                         where);
    });
  }
}

}  // namespace

LawReport check_batch_equals_newton(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("batch_equals_newton");
  const Subsystem* parts[] = {&part};
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    const VectorXd impedance = sampler.impedance();
    const VectorXd x = sampler.state(), input = sampler.inputs(), a = sampler.waves();
    FrozenMap own(own_batch(part), h, impedance, x, input);
    FrozenMap newton(make_newton_batch(parts), h, impedance, x, input);
    const Outcome out = own.advance(a);
    const Outcome expected = newton.advance(a);
    if (!solved(tally, out, where)) return;
    if (expected.status.fault == StepFault::not_converged && part.linear_form().E == nullptr &&
        !part.has_port_laws()) {
      see_equations(tally, part, own, h, impedance, a, input, out, where);
      return;
    }
    if (!solved(tally, expected, where + " (Newton batch)")) return;

    // Terms of the state equation, whose round-off each component may carry.
    Structure s = part.structure();
    part.structure_over(x.data(), VectorXd(expected.x_next - x).data(), h, s);
    VectorXd g(x.size());
    part.discrete_gradient(x.data(), expected.x_next.data(), g.data());
    const auto closures = port_closures(part.signature(), h, impedance.data());
    const VectorXd u = port_inputs(part, closures, a, expected.b, input).cwiseAbs();
    const VectorXd rate = s.J.cwiseAbs() * g.cwiseAbs() + s.R.cwiseAbs() * g.cwiseAbs() +
                          s.G.cwiseAbs() * u + s.P.cwiseAbs() * u;
    const VectorXd size = moved_size(part, x) + moved_size(part, expected.x_next) + h * rate;
    const VectorXd defect = moved(part, out.x_next - expected.x_next).cwiseAbs();
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      tally.see(defect[i], 1e-10 * size[i], [&] {
        return fmt::format("{} off by {:.3e}, {}",
                           part.signature().states[static_cast<std::size_t>(i)].name, defect[i],
                           where);
      });
    }
    see_algebraic(tally, part, x, out.x_next, expected.x_next, where);
    const double energy = energy_size(part, x, a, expected);
    tally.see((out.b - expected.b).norm(), 1e-10 * std::sqrt(2.0 * energy), [&] {
      return fmt::format("b off by {:.3e}, {}", (out.b - expected.b).norm(), where);
    });
    const auto see_energy = [&](const char* name, double mine, double theirs) {
      tally.see(std::abs(mine - theirs), 1e-10 * energy,
                [&] { return fmt::format("{} off by {:.3e} J, {}", name, mine - theirs, where); });
    };
    see_energy("change_J", out.energy.change_J, expected.energy.change_J);
    see_energy("external_supply_J", out.energy.external_supply_J,
               expected.energy.external_supply_J);
    see_energy("dissipated_J", out.energy.dissipated_J, expected.energy.dissipated_J);
  });
  return std::move(tally).report();
}

namespace {

/// Column l of a matrix as lane l of an array with one row per port (see StepBatch::stride).
AlignedVector wave_array(const MatrixXd& by_lane, int stride) {
  AlignedVector out(static_cast<std::size_t>(by_lane.rows() * stride), 0.0);
  for (Eigen::Index j = 0; j < by_lane.rows(); ++j) {
    for (Eigen::Index l = 0; l < by_lane.cols(); ++l) {
      out[static_cast<std::size_t>(j * stride + l)] = by_lane(j, l);
    }
  }
  return out;
}

VectorXd lane_of(const AlignedVector& waves, int ports, int stride, int lane) {
  VectorXd out(ports);
  for (int j = 0; j < ports; ++j) out[j] = waves[static_cast<std::size_t>(j * stride + lane)];
  return out;
}

}  // namespace

LawReport check_lane_independence(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("lane_independence");
  if (part.batch_key().empty()) return std::move(tally).report();
  constexpr int kLanes = 2 * kLaneGroup + 5;
  const std::vector<const Component*> parts(kLanes, &part);
  sweep(part, options, [&](Sampler& sampler, double h, const std::string& where) {
    const Signature& s = part.signature();
    MatrixXd x(s.state_size(), kLanes), impedance(s.wave_size(), kLanes);
    MatrixXd input(s.input_size(), kLanes), a(s.wave_size(), kLanes);
    for (int l = 0; l < kLanes; ++l) {
      x.col(l) = sampler.state();
      impedance.col(l) = sampler.impedance();
      input.col(l) = sampler.inputs();
      a.col(l) = sampler.waves();
    }
    const auto batch = part.make_batch(parts);
    const int stride = batch->stride(), p = s.wave_size();
    AlignedVector gamma = wave_array(impedance, stride);
    for (double& value : gamma) value = value == 0.0 ? 1.0 : value;
    batch->prepare(h, gamma.data());
    AlignedVector record(batch->record_size()), next(batch->record_size());
    for (int l = 0; l < kLanes; ++l) batch->set_state(l, x.col(l).data(), record.data());
    const AlignedVector incident = wave_array(a, stride);
    AlignedVector scattered(incident.size()), b(incident.size());
    std::vector<double> columns[3];
    for (auto& column : columns) column.resize(static_cast<std::size_t>(stride));
    const EnergyColumns energy{columns[0].data(), columns[1].data(), columns[2].data()};
    // Ranges as several threads would take them.
    bool ok = true;
    for (const LaneRange range : {LaneRange{8, 21}, LaneRange{0, 8}}) {
      batch->freeze(range, record.data(), input.data());
      ok = ok && batch->scatter(range, record.data(), incident.data(), scattered.data()).ok();
    }
    for (const LaneRange range : {LaneRange{0, 16}, LaneRange{16, 21}}) {
      ok =
          ok &&
          batch->advance(range, record.data(), incident.data(), next.data(), b.data(), energy).ok();
    }
    if (!ok) return tally.fail("port solve failed, " + where);
    for (int l = 0; l < kLanes; ++l) {
      FrozenMap alone(own_batch(part), h, impedance.col(l), x.col(l), input.col(l));
      VectorXd x_next(s.state_size());
      batch->get_state(l, next.data(), x_next.data());
      const Outcome together{{}, lane_of(b, p, stride, l), x_next, energy.at(l)};
      const std::string lane = fmt::format("{}, lane {}", where, l);
      see_same(tally, same_bits(alone.scatter(a.col(l)).b, lane_of(scattered, p, stride, l)),
               "scatter alone and in a batch differ", lane);
      see_same(tally, same_bits(alone.advance(a.col(l)), together), "alone and in a batch differ",
               lane);
    }
  });
  return std::move(tally).report();
}

// Under a constant load a part with losses comes to rest: its increments become as small as round-off,
// and every step on the way there must be found.

namespace {

constexpr int kSteps = 400;

/// From a random state, with incident waves of e + γf = √(2γ)w and inputs that stay.
void hold(const Subsystem& part, Sampler& sampler, const VectorXd& impedance, VectorXd x, double h,
          const std::string& where, Tally& tally) {
  FrozenMap map(own_batch(part), h, impedance, std::move(x), sampler.inputs());
  const VectorXd a = std::sqrt(h) * sampler.waves();
  for (int k = 0; k < kSteps; ++k) {
    const auto at = [&] { return fmt::format("step {} of h={:g}, {}", k, h, where); };
    const FrozenMap::Outcome out = map.advance(a);
    if (!out.status.ok()) {
      tally.fail(fmt::format("port solve: {}, {}", to_string(out.status.fault), at()));
      return;
    }
    const double supplied =
        0.5 * (a.squaredNorm() - out.b.squaredNorm()) + out.energy.external_supply_J;
    const double defect = out.energy.change_J - supplied + out.energy.dissipated_J;
    tally.see(std::abs(defect), 1e-12 * energy_size(part, map.state(), a, out),
              [&] { return fmt::format("energy balance off by {:.3e} J, {}", defect, at()); });
    map.move_to(out.x_next);
  }
}

}  // namespace

LawReport check_rest_under_load(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("rest_under_load");
  Sampler sampler(part, options);
  if (sampler.usual().size() == 0) return std::move(tally).report();
  for (int trial = 0; trial < options.trials; ++trial) {
    const std::string where = fmt::format("trial={}, seed={}", trial, options.seed);
    const VectorXd impedance = sampler.impedance(), x = sampler.state();
    const double rate = fastest_rate(part, x, impedance);
    if (!(rate > 0.0) || !std::isfinite(rate)) continue;
    for (const double share : {0.05, 0.5}) {
      hold(part, sampler, impedance, x, share / rate, where, tally);
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave
