#include "portwave/coupling/impedance/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "impedance/impedance_rules.hpp"
#include "impedance/response_tools.hpp"
#include "impedance/two_ports.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "system/balance_row.hpp"
#include "waves/condensed_equation.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

std::vector<double> impedances_of(const Junction& junction, std::span<const double> impedance) {
  std::vector<double> out;
  for (const int port : junction.waves) out.push_back(impedance[at(port)]);
  return out;
}

/// How strongly a port of a part acts on the part's other ports: Σ |Y_jl|²/(Y_jj Y_ll). Infinite
/// where the port has no match.
double interaction(const Matrix& response, Eigen::Index own) {
  double sum = 0.0;
  for (Eigen::Index other = 0; other < response.rows(); ++other) {
    if (other == own) continue;
    const double there = response(own, other), back = response(other, own);
    if (there == 0.0 && back == 0.0) continue;
    sum +=
        0.5 * (there * there + back * back) / std::abs(response(own, own) * response(other, other));
  }
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

/// The side of a two-port junction whose match both take: 0 or 1.
int leaf_side(const PortMatches& matches, const Junction& junction) {
  constexpr double kTie = 1e-6;  // equal parts differ by round-off
  double size[2];
  bool linear[2];
  for (int side : {0, 1}) {
    const int port = junction.waves[at(side)];
    const int part = matches.system().scalar_ports()[at(port)].part;
    size[side] = matches.is_own(port) ? interaction(matches.responses().of(part),
                                                    port - matches.system().first_scalar_port(part))
                                      : std::numeric_limits<double>::infinity();
    linear[side] = matches.system().parts()[at(part)].component->capabilities().linear;
  }
  const double margin = kTie * (1.0 + std::min(size[0], size[1]));
  if (size[0] < size[1] - margin) return 0;
  if (size[1] < size[0] - margin) return 1;
  if (linear[0] != linear[1]) return linear[0] ? 0 : 1;
  return junction.waves[0] < junction.waves[1] ? 0 : 1;
}

/// The matches of the stages of every port as one (stage_scales), where they have one. `response` is
/// that of the stages' ports, all of one stage after all of the one before.
void match_stages(const Matrix& response, std::span<const Causality> causality, int stages,
                  std::span<double> match) {
  const Eigen::Index ports = response.rows() / stages;
  for (Eigen::Index j = 0; stages > 1 && j < ports; ++j) {
    const auto port_of = [&](Eigen::Index stage) {
      return static_cast<std::size_t>(stage * ports + j);
    };
    bool sound = true;
    Matrix own(stages, stages);
    for (Eigen::Index i = 0; i < stages; ++i) {
      sound = sound && is_impedance(match[port_of(i)]);
      for (Eigen::Index k = 0; k < stages; ++k) own(i, k) = response(i * ports + j, k * ports + j);
    }
    const Vector scales = sound ? stage_scales(own) : Vector{};
    for (Eigen::Index i = 0; i < scales.size(); ++i) {
      match[port_of(i)] = match_of(1.0 / scales[i], causality[port_of(i)]);
    }
  }
}

/// The largest c for which a part with impedances cγ is firmly nonexpansive; 0 when none is.
///
/// |Sα − Sβ|² ≤ ⟨Sα − Sβ, α − β⟩ says eᵀf ≥ Σ γf² of the differences. With inputs û in units of the
/// waves, f̂ = F û, it is sym(M̂) ⪰ c FᵀF.
double fne_scaling(const Matrix& response, std::span<const Causality> causality,
                   std::span<const double> impedance) {
  constexpr double kRoundOff = 1e-12;
  const Matrix M = scaled_response(response, causality, impedance);
  Matrix F = M;
  for (Eigen::Index j = 0; j < F.rows(); ++j) {
    if (causality[static_cast<std::size_t>(j)] == Causality::effort_in) continue;
    F.row(j).setZero();
    F(j, j) = 1.0;
  }
  const SymmetricEigen power = symmetric_eigen(0.5 * (M + M.transpose()));
  const double zero = kRoundOff * std::max(1.0, M.cwiseAbs().maxCoeff());
  Matrix weighted = F * power.vectors;
  for (Eigen::Index j = 0; j < weighted.cols(); ++j) {
    const double eigenvalue = power.values[j];
    if (eigenvalue < -zero) return 0.0;
    if (eigenvalue > zero) {
      weighted.col(j) /= std::sqrt(eigenvalue);
    } else if (weighted.col(j).squaredNorm() > 1e3 * zero) {
      return 0.0;  // a direction without loss that still lets power through
    } else {
      weighted.col(j).setZero();
    }
  }
  const Matrix gram = weighted.transpose() * weighted;
  const double largest = symmetric_eigenvalues(gram).maxCoeff();
  return largest > 0.0 ? 1.0 / largest : 1.0;
}

/// seen_impedance of two ports whose efforts alone, or flows alone, are bound: exact where both weights are
/// equal. Empty for others.
std::optional<double> seen_across(const DiracStructure& dirac, std::span<const double> impedance,
                                  int own) {
  const int other = 1 - own;
  const double gamma = impedance[at(other)];
  if (const auto w = balance_of_two(dirac.F, dirac.E)) {
    return gamma * ((*w)[at(own)] * (*w)[at(own)] / ((*w)[at(other)] * (*w)[at(other)]));
  }
  if (const auto w = balance_of_two(dirac.E, dirac.F)) {
    return (*w)[at(other)] * (*w)[at(other)] * gamma / ((*w)[at(own)] * (*w)[at(own)]);
  }
  return std::nullopt;
}

}  // namespace

// Where one row says Σ wf = 0, e = w s and a closed port takes f = e/γ; with e and f exchanged the
// sum is one of resistances. Otherwise (e, f) = (Fᵀλ, Eᵀλ) and the closed ports leave one λ.
double seen_impedance(const DiracStructure& dirac, std::span<const double> impedance, int own) {
  const Eigen::Index k = dirac.E.rows();
  if (k == 2) {
    if (const std::optional<double> seen = seen_across(dirac, impedance, own)) return *seen;
  }
  const auto others = [&](const Vector& w, auto&& term) {
    double sum = 0.0;
    for (Eigen::Index j = 0; j < k; ++j) {
      if (j != own) sum += term(w[j] * w[j], impedance[static_cast<std::size_t>(j)]);
    }
    return sum;
  };
  if (const auto w = balance_row(dirac.F, dirac.E)) {
    const double square = (*w)[own] * (*w)[own];
    return square / others(*w, [](double w2, double gamma) { return w2 / gamma; });
  }
  if (const auto w = balance_row(dirac.E, dirac.F)) {
    return others(*w, [](double w2, double gamma) { return w2 * gamma; }) / ((*w)[own] * (*w)[own]);
  }
  Matrix closed(k, k - 1);  // its columns: √γ⁻¹ e − √γ f of the closed ports
  for (Eigen::Index j = 0, column = 0; j < k; ++j) {
    if (j == own) continue;
    const double root = std::sqrt(impedance[static_cast<std::size_t>(j)]);
    closed.col(column) = dirac.F.col(j) / root - dirac.E.col(j) * root;
    const double norm = closed.col(column).norm();
    if (norm > 0.0) closed.col(column) /= norm;
    ++column;
  }
  const Matrix Q = pivoted_qr(closed).Q;
  const Vector lambda = Q.col(k - 1);
  return -dirac.F.col(own).dot(lambda) / dirac.E.col(own).dot(lambda);
}

namespace {

/// For ports without a match: what the matches of an island in each domain are about, their geometric mean; 1 where
/// there are none.
class UsualImpedances {
 public:
  explicit UsualImpedances(const System& system)
      : system_(system), of_(at(system.island_count()) * kDomains) {}

  void add(int part, Domain domain, double match) {
    Mean& own = of_[index(part, domain)];
    own.logarithms += std::log(match);
    ++own.count;
  }
  double of(int port) const {
    const ScalarPort& own = system_.scalar_ports()[at(port)];
    const Signature& signature = system_.parts()[at(own.part)].component->signature();
    const Mean& mean = of_[index(own.part, signature.ports[at(own.port)].domain)];
    return mean.count == 0 ? 1.0 : std::exp(mean.logarithms / mean.count);
  }

 private:
  static constexpr std::size_t kDomains = static_cast<std::size_t>(Domain::thermal) + 1;
  struct Mean {
    double logarithms = 0.0;
    int count = 0;
  };
  std::size_t index(int part, Domain domain) const {
    return at(system_.island_of_part(part)) * kDomains + static_cast<std::size_t>(domain);
  }

  const System& system_;
  std::vector<Mean> of_;
};

/// What a part without a match at its one port is to others: what gives no effort is soft, what gives no flow is hard. Of
/// those with more ports, and of switches and diodes, which may be either, nothing is known.
enum class Beside { soft, hard, unknown };

Beside beside(const System& system, int port) {
  const ScalarPort& own = system.scalar_ports()[at(port)];
  const Component& part = *system.parts()[at(own.part)].component;
  const Subsystem* const physics = part.port_hamiltonian();
  const bool is_either = physics == nullptr || physics->has_vertical_laws();
  if (is_either || part.signature().wave_size() != 1) return Beside::unknown;
  return part.signature().ports.front().causality == Causality::flow_in ? Beside::soft
                                                                        : Beside::hard;
}

/// Of such a port beside others that have a match: a hundred times beyond them, or their geometric mean. Else the usual
/// one.
double impedance_beside(std::span<const double> known, Beside own, double usual) {
  constexpr double kAround = 100.0;
  double least = std::numeric_limits<double>::infinity(), most = 0.0, logarithms = 0.0;
  int count = 0;
  for (const double value : known) {
    if (!is_impedance(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    logarithms += std::log(value);
    ++count;
  }
  if (count == 0) return usual;
  if (own == Beside::unknown) return std::exp(logarithms / count);
  return own == Beside::soft ? least / kAround : most * kAround;
}

}  // namespace

PortMatches::PortMatches(const PortResponses& responses)
    : responses_(responses), junction_of_(system().scalar_ports().size(), -1) {
  UsualImpedances usual(system());
  for (int i = 0; i < static_cast<int>(system().parts().size()); ++i) {
    Eigen::Index own = 0;
    for (const Port& port : system().parts()[at(i)].component->signature().ports) {
      for (int entry = 0; entry < port.dimension; ++entry, ++own) {
        values_.push_back(match_of(responses.matched(i, own), port.causality));
        is_own_.push_back(is_impedance(values_.back()));
        if (is_own_.back()) usual.add(i, port.domain, values_.back());
      }
    }
  }
  for (int i = 0; i < static_cast<int>(system().junctions().size()); ++i) {
    const Junction& junction = system().junctions()[at(i)];
    for (const int port : junction.waves) junction_of_[at(port)] = i;
    if (std::ranges::all_of(junction.waves, [&](int port) { return is_own(port); })) continue;
    std::vector<double> known = impedances_of(junction, values_);
    const std::vector<double> matches = known;
    for (std::size_t j = 0; j < known.size(); ++j) {
      const int port = junction.waves[j];
      if (!is_own(port))
        known[j] = impedance_beside(matches, beside(system(), port), usual.of(port));
    }
    const bool alone = std::ranges::none_of(junction.waves, [&](int port) { return is_own(port); });
    for (std::size_t j = 0; j < known.size(); ++j) {
      if (is_own(junction.waves[j])) continue;
      const int port = junction.waves[j];
      const double seen = alone || known.size() < 2
                              ? 0.0
                              : seen_impedance(junction.dirac, known, static_cast<int>(j));
      values_[at(port)] = is_impedance(seen) ? seen : usual.of(port);
    }
  }
}

// M̂ of the ends, with unit diagonal, is scaled by c: the modes it moves reflect (1 − cλ)/(1 + cλ).
// Of modes that it hardly moves hardly anything is emitted.
void match_ends(const PortMatches& matches, std::vector<double>& impedance) {
  constexpr double kHardlyMoved = 1e-2;
  const System& system = matches.system();
  std::vector<Eigen::Index> ends, others;
  std::vector<double> inverse;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const Matrix& response = matches.responses().of(part);
    const int first = system.first_scalar_port(part);
    ends.clear();
    for (int j = 0; j < response.rows(); ++j) {
      if (matches.is_end(first + j)) ends.push_back(j);
    }
    if (ends.empty()) continue;
    others.clear();
    inverse.clear();
    const std::vector<Causality> causality =
        scalar_causalities(system.parts()[at(part)].component->signature());
    for (int j = 0; j < response.rows(); ++j) {
      if (matches.is_end(first + j)) continue;
      others.push_back(j);
      inverse.push_back(closing(impedance[at(first + j)], causality[at(j)]));
    }
    const Matrix closed = closed_response(response, ends, others, inverse);
    std::vector<double> match;
    std::vector<Causality> own;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      own.push_back(causality[static_cast<std::size_t>(ends[i])]);
      const bool resolved = is_resolved(closed(row, row), response(ends[i], ends[i]));
      match.push_back(resolved ? match_of(closed(row, row), own.back()) : 0.0);
    }
    if (!std::ranges::all_of(match, is_impedance)) continue;
    // The ends of one stage: those of the others act on one another in the same way.
    const int stages = system.parts()[at(part)].component->stages();
    const auto few = static_cast<Eigen::Index>(ends.size()) / stages;
    const Matrix scaled = scaled_response(closed.topLeftCorner(few, few), own, match);
    match_stages(closed, own, stages, match);
    const Vector modes = symmetric_eigenvalues(0.5 * (scaled + scaled.transpose()));
    const double largest = modes.maxCoeff();
    double smallest = largest;
    for (const double mode : modes) {
      if (mode > kHardlyMoved * largest) smallest = std::min(smallest, mode);
    }
    const double scale = 1.0 / std::sqrt(largest * smallest);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      impedance[at(first + static_cast<int>(ends[i]))] =
          own[i] == Causality::effort_in ? match[i] * scale : match[i] / scale;
    }
  }
}

std::vector<double> leaf_impedances(const PortMatches& matches) {
  const System& system = matches.system();
  std::vector<double> own(matches.values().begin(), matches.values().end());
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& part = *system.parts()[at(i)].component;
    if (part.stages() == 1) continue;
    const std::vector<Causality> causality = scalar_causalities(part.signature());
    const std::span<double> ports(own.data() + system.first_scalar_port(i), causality.size());
    match_stages(matches.responses().of(i), causality, part.stages(), ports);
  }
  std::vector<double> out = own;
  for (const Junction& junction : system.junctions()) {
    if (junction.waves.size() != 2) continue;
    const int side = leaf_side(matches, junction);
    const double known[] = {own[at(junction.waves[0])], own[at(junction.waves[1])]};
    const double across = seen_impedance(junction.dirac, known, 1 - side);
    if (is_impedance(across)) out[at(junction.waves[at(1 - side)])] = across;
  }
  match_ends(matches, out);
  return out;
}

// With γ the impedance that the network presents, nothing that a nonlinear port emits comes back to it at once. Its
// response g in place of g̃ then changes the solve of the interface equation by (g − g̃)/(g + γ) of what it was, as in
// Newton's method for the network; with γ = g̃ it is (g − g̃)/(g + g̃), whatever the network.
std::vector<double> across_impedances(const PortMatches& matches) {
  const System& system = matches.system();
  std::vector<double> out(matches.values().begin(), matches.values().end());
  const auto is_linear = [&](int port) {
    const Part& part = system.parts()[at(system.scalar_ports()[at(port)].part)];
    return part.component->capabilities().linear;
  };
  for (const Junction& junction : system.junctions()) {
    if (junction.waves.size() < 2) continue;
    const auto own = std::ranges::find_if_not(junction.waves, is_linear);
    if (own == junction.waves.end()) continue;
    const bool is_known = std::ranges::all_of(junction.waves, [&](int port) {
      return port == *own || (is_linear(port) && matches.is_own(port));
    });
    if (!is_known) continue;
    const double seen = seen_impedance(junction.dirac, impedances_of(junction, matches.values()),
                                       static_cast<int>(own - junction.waves.begin()));
    if (is_impedance(seen)) out[at(*own)] = seen;
  }
  return out;
}

TunedImpedance fne_impedances(const PortMatches& matches) {
  const System& system = matches.system();
  TunedImpedance out{{matches.values().begin(), matches.values().end()}, {}};
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[at(i)];
    const std::vector<Causality> causality = scalar_causalities(part.component->signature());
    if (causality.empty()) continue;
    const std::span<double> own(out.by_port.data() + system.first_scalar_port(i), causality.size());
    const double scaling = fne_scaling(matches.responses().of(i), causality, own);
    if (!(scaling > 0.0)) {
      return {{},
              fmt::format("no impedance makes subsystem \"{}\" firmly nonexpansive: some motion of "
                          "its ports takes no power but is not at rest",
                          part.name)};
    }
    for (double& value : own) value *= scaling;
  }
  return out;
}

/// How much rounding the step of a part with these impedances multiplies: the condition of I + M̂,
/// whose inverse is no larger than 1 where the part is passive. 1 for a single port.
double condition(const Matrix& response, const Signature& signature,
                 std::span<const double> impedance) {
  const Eigen::Index ports = response.rows();
  if (ports < 2) return 1.0;
  if (ports == 2) {
    TwoByTwo closed = scaled_two_ports(response, signature, impedance);
    closed.a00 += 1.0;
    closed.a11 += 1.0;
    return closed.norm() * TwoByTwoLu(closed).inverse().norm();
  }
  const std::vector<Causality> causality = scalar_causalities(signature);
  const Matrix closed =
      Matrix::Identity(ports, ports) + scaled_response(response, causality, impedance);
  return closed.norm() * lu_inverse(closed).norm();
}

/// The first part whose steps would round off energy; −1: none.
int find_ill_conditioned(const PortResponses& responses, std::span<const double> impedance) {
  constexpr double kWorst = 1e9;
  const System& system = responses.system();
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& part = *system.parts()[at(i)].component;
    if (condensed_form_of(system.parts()[at(i)]) != nullptr)
      continue;  // matched or not: by Cholesky
    const auto own = impedance.subspan(at(system.first_scalar_port(i)),
                                       static_cast<std::size_t>(responses.of(i).rows()));
    if (part.is_active()) continue;
    if (!(condition(responses.of(i), part.signature(), own) <= kWorst)) return i;
  }
  return -1;
}

std::vector<double> worst_conditions(const PortResponses& responses,
                                     std::span<const double> impedance) {
  const System& system = responses.system();
  std::vector<double> worst(at(system.island_count()), 1.0);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& part = *system.parts()[at(i)].component;
    if (part.is_active()) continue;
    const auto own = impedance.subspan(at(system.first_scalar_port(i)),
                                       static_cast<std::size_t>(responses.of(i).rows()));
    double value = condition(responses.of(i), part.signature(), own);
    // Where the response of a port is a small difference, closing it by its match solves for that.
    constexpr double kPerCancellation = 10.0;
    for_scalar_ports(part.signature(), [&](int port, Causality causality) {
      const double scale = causality == Causality::effort_in ? own[at(port)] : 1.0 / own[at(port)];
      const double cancels =
          scale * responses.terms(i, port) / (1.0 + scale * responses.of(i)(port, port));
      if (!(kPerCancellation * cancels <= value)) value = kPerCancellation * cancels;
    });
    double& largest = worst[at(system.island_of_part(i))];
    if (!(value <= largest)) largest = value;  // a NaN stays
  }
  return worst;
}

TunedImpedance checked(const PortResponses& responses, TunedImpedance tuned) {
  if (tuned.by_port.empty()) return tuned;
  const int part = find_ill_conditioned(responses, tuned.by_port);
  if (part < 0) return tuned;
  return {
      {},
      fmt::format("the impedances of this rule at subsystem \"{}\" are so far from what its ports "
                  "respond with that its steps would round off energy",
                  responses.system().parts()[at(part)].name)};
}

TunedImpedance tune_impedance(const PortResponses& responses, ImpedanceKind kind) {
  if (!responses.problem().empty()) return {{}, responses.problem()};
  const PortMatches matches(responses);
  switch (kind) {
    case ImpedanceKind::fne:
      return checked(responses, fne_impedances(matches));
    case ImpedanceKind::matched:
      return checked(responses, {{matches.values().begin(), matches.values().end()}, {}});
    case ImpedanceKind::leaf:
      return checked(responses, {leaf_impedances(matches), {}});
    case ImpedanceKind::adapted:
      return checked(responses, {adapted_impedances(matches), {}});
    case ImpedanceKind::across:
      return checked(responses, {across_impedances(matches), {}});
    case ImpedanceKind::given:
    case ImpedanceKind::automatic:
      break;
  }
  return {{}, "this is no tuning rule"};
}

TunedImpedance tune_impedance(const PortResponses& responses,
                              std::span<const ImpedanceKind> by_island) {
  const System& system = responses.system();
  TunedImpedance out;
  std::vector<ImpedanceKind> done;
  for (const ImpedanceKind kind : by_island) {
    if (std::ranges::find(done, kind) != done.end()) continue;
    done.push_back(kind);
    TunedImpedance own = tune_impedance(responses, kind);
    if (!own.problem.empty()) return own;
    if (out.by_port.empty()) out.by_port.resize(own.by_port.size());
    for (std::size_t port = 0; port < own.by_port.size(); ++port) {
      const int island = system.island_of_part(system.scalar_ports()[port].part);
      if (by_island[at(island)] == kind) out.by_port[port] = own.by_port[port];
    }
  }
  return out;
}

}  // namespace portwave
