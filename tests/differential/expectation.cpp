#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "differential/judge.hpp"

namespace portwave::differential {
namespace {

/// Largest difference of each entry over the steps.
Vector largest_difference(const std::vector<LongVector>& a, const std::vector<LongVector>& b) {
  Vector result = Vector::Zero(a[0].size());
  for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n) {
    const Vector difference = (a[n] - b[n]).cwiseAbs().cast<double>();
    for (Eigen::Index k = 0; k < result.size(); ++k) {
      if (!(difference[k] <= result[k])) result[k] = difference[k];
    }
  }
  return result;
}

Vector largest(const std::vector<LongVector>& a) {
  Vector result = Vector::Zero(a[0].size());
  for (const LongVector& row : a) result = result.cwiseMax(row.cwiseAbs().cast<double>());
  return result;
}

/// Makes entries of one part and group equal to the largest of them.
void share_in_groups(const Network& network, Vector& v) {
  Eigen::Index first = 0;
  for (const PartData& part : network.parts) {
    for (int k = 0; k < part.states(); ++k) {
      for (int l = 0; l < part.states(); ++l) {
        if (part.group[static_cast<std::size_t>(k)] == part.group[static_cast<std::size_t>(l)]) {
          v[first + k] = std::max(v[first + k], v[first + l]);
        }
      }
    }
    first += part.states();
  }
}

struct Responses {
  Vector x, e, f;
};

Responses responses(const Course& course, const Course& disturbed) {
  return {largest_difference(course.x, disturbed.x), largest_difference(course.e, disturbed.e),
          largest_difference(course.f, disturbed.f)};
}

/// The most that an island stores, has been supplied and moves through its ports in a step.
std::vector<double> island_energies(const Network& network, const std::vector<int>& island,
                                    const Course& course) {
  const int count = 1 + *std::max_element(island.begin(), island.end());
  std::vector<double> energy(static_cast<std::size_t>(count), 0.0);
  const Account account = account_of(network, course);
  std::vector<double> supplied(energy.size(), 0.0);
  for (std::size_t i = 0; i < island.size(); ++i) {
    energy[static_cast<std::size_t>(island[i])] += static_cast<double>(account.initial[i]);
  }
  for (std::size_t n = 0; n < account.steps.size(); ++n) {
    std::vector<double> now(energy.size(), 0.0);
    for (std::size_t i = 0; i < island.size(); ++i) {
      const PartEnergies& part = account.steps[n][i];
      const auto k = static_cast<std::size_t>(island[i]);
      now[k] += static_cast<double>(part.stored) + part.waves;
      supplied[k] += static_cast<double>(std::abs(part.supplied));
    }
    for (std::size_t k = 0; k < energy.size(); ++k)
      energy[k] = std::max(energy[k], now[k] + supplied[k]);
  }
  return energy;
}

bool finite(const Course& course) {
  for (const LongVector& x : course.x) {
    for (const long double value : x) {
      if (!(std::abs(value) < 1e150L)) return false;
    }
  }
  return true;
}

/// States: the range of the group, or the deflection that stores the energy of the island.
Vector state_scales(const Network& network, const Expectation& expectation) {
  std::vector<LongVector> moved = expectation.course.x;
  for (LongVector& x : moved) x -= expectation.course.x[0];
  Vector scale = largest(moved);
  share_in_groups(network, scale);
  Eigen::Index first = 0;
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    const PartData& part = network.parts[i];
    const double energy =
        expectation.island_energy[static_cast<std::size_t>(expectation.island[i])];
    const Matrix M = part.E.transpose() * part.Q;
    for (int k = 0; k < part.states(); ++k) {
      if (M(k, k) > 0.0) {
        scale[first + k] = std::max(scale[first + k], std::sqrt(2.0 * energy / M(k, k)));
      }
    }
    first += part.states();
  }
  return scale;
}

}  // namespace

Expectation expect(const Network& network, const Tolerances& tolerances) {
  Expectation expectation;
  StepQuality quality;
  expectation.course = run_reference(network, &quality);
  if (!finite(expectation.course)) {
    expectation.well_posed = false;
    expectation.why_not = fmt::format("the reference is singular or overflows, 1/cond = {:.1e}",
                                      quality.reciprocal_condition);
    return expectation;
  }
  const Course& course = expectation.course;
  const std::vector<double> gamma = port_impedances(network);
  expectation.island = network.islands();
  expectation.island_energy = island_energies(network, expectation.island, course);
  expectation.state_scale = state_scales(network, expectation);
  const auto ports = static_cast<Eigen::Index>(network.ports());
  expectation.effort_scale = largest(course.e);
  expectation.flow_scale = largest(course.f);
  Eigen::Index port = 0;
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    for (int j = 0; j < network.parts[i].ports(); ++j, ++port) {
      const double g = gamma[static_cast<std::size_t>(port)];
      const double power =
          expectation.island_energy[static_cast<std::size_t>(expectation.island[i])] /
          network.step_s;
      if (!(g > 0.0)) continue;
      expectation.effort_scale[port] =
          std::max(expectation.effort_scale[port], std::sqrt(power * g));
      expectation.flow_scale[port] = std::max(expectation.flow_scale[port], std::sqrt(power / g));
    }
  }
  const Noise residuals{
      .tolerance = tolerances.tau, .island_energy = expectation.island_energy, .impedance = gamma};
  const Noise rounding{.rounding = 2.2e-16};
  const Responses of_residuals = responses(course, run_reference(network, nullptr, &residuals));
  const Responses of_rounding = responses(course, run_reference(network, nullptr, &rounding));
  const Responses of_double = responses(course, run_reference_in_double(network));
  // Rounded step maps are wrong by the same in every step; the solves of the reference are not.
  const double bias = std::max(1.0, std::sqrt(network.steps / 20.0));
  const auto allowed = [&](Vector Responses::*v, const Vector& scale) -> Vector {
    return tolerances.residuals * of_residuals.*v +
           tolerances.rounding * bias * (of_rounding.*v).cwiseMax(of_double.*v) +
           tolerances.floor * scale + Vector::Constant(scale.size(), 1e-290);
  };
  expectation.state_tolerance = allowed(&Responses::x, expectation.state_scale);
  share_in_groups(network, expectation.state_tolerance);
  expectation.effort_tolerance = allowed(&Responses::e, expectation.effort_scale);
  expectation.flow_tolerance = allowed(&Responses::f, expectation.flow_scale);
  // Where rounding alone decides, nobody can tell what is right. Rounding of the states themselves
  // is none.
  const auto judge = [&](const char* what, Vector Responses::*v, const Vector& scale,
                         const Vector& own) {
    const Vector lost = (of_rounding.*v).cwiseMax(of_double.*v);
    for (Eigen::Index k = 0; k < lost.size(); ++k) {
      if (lost[k] <= 1e-4 * scale[k] + 1e-12 * own[k] + 1e-280 || !expectation.well_posed) continue;
      expectation.well_posed = false;
      expectation.why_not =
          fmt::format("rounding moves {} {} by {:.1e} of its scale, 1/cond = {:.1e}", what, k,
                      lost[k] / scale[k], quality.reciprocal_condition);
    }
  };
  judge("state", &Responses::x, expectation.state_scale, largest(course.x));
  judge("effort", &Responses::e, expectation.effort_scale, Vector::Zero(ports));
  judge("flow", &Responses::f, expectation.flow_scale, Vector::Zero(ports));
  return expectation;
}

}  // namespace portwave::differential
