#include "portwave/coupling/impedance/integrator_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <exception>
#include <unordered_map>

#include <fmt/format.h>

#include "impedance/response_tools.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "system/balance_row.hpp"

namespace portwave {
namespace {

using Complex = std::complex<double>;

/// What a scalar port shows of its part: y = (D + s/jω)u of a fast input.
struct FastPort {
  double direct = 0.0;   ///< D, nonlinear resistances left out
  double storage = 0.0;  ///< s = (G + P)ᵀ∇²H(G − P)
  double output = 0.0;   ///< |y| at the start without inputs
  double usual = 0.0;    ///< |y| at the typical state
};

struct FastPart {
  std::vector<FastPort> ports;
  double rate = 0.0;  ///< max Rᵢᵢ ∂²H/∂xᵢ²
};

double product(const SparseMatrix& A, int i, const SparseMatrix& B, int j, double sign_of_b,
               const SparseMatrix& M, const SparseMatrix& C, double sign_of_c) {
  // (A + sign_of_c C)ᵢᵀ M (B + sign_of_b C)ⱼ would allocate as much: columns of ports are short.
  Eigen::SparseVector<double> left = A.col(i), right = B.col(j);
  left += sign_of_c * Eigen::SparseVector<double>(C.col(i));
  right += sign_of_b * Eigen::SparseVector<double>(C.col(j));
  const Eigen::SparseVector<double> moved = M * right;
  return left.dot(moved);
}

FastPart fast_part(const Subsystem& part, const double* x) {
  const Signature& signature = part.signature();
  const int n = signature.state_size(), p = signature.wave_size();
  FastPart out;
  out.ports.resize(at(p));
  Structure s = part.structure();
  if (!part.constant_structure()) part.structure_at(x, s);
  for (int j = 0; j < p; ++j) out.ports[at(j)].direct = s.S.coeff(j, j) + s.N.coeff(j, j);
  if (n == 0 || part.linear_form().E != nullptr) return out;
  const SparseMatrix K = hessian_at(part, x);
  Eigen::VectorXd g(n);
  part.gradient(x, g.data());
  const std::vector<double> typical = part.typical_state();
  const Eigen::VectorXd usual = K * Eigen::Map<const Eigen::VectorXd>(typical.data(), n);
  for (int i = 0; i < n; ++i) {
    out.rate = std::max(out.rate, s.R.coeff(i, i) * K.coeff(i, i));
  }
  for (int j = 0; j < p; ++j) {
    FastPort& port = out.ports[at(j)];
    port.storage = product(s.G, j, s.G, j, -1.0, K, s.P, 1.0);
    const Eigen::SparseVector<double> column =
        Eigen::SparseVector<double>(s.G.col(j)) + Eigen::SparseVector<double>(s.P.col(j));
    port.output = std::abs(column.dot(g));
    port.usual = std::abs(column.dot(usual));
  }
  return out;
}

class DecaySearch {
 public:
  DecaySearch(const System& system, double step_s) : system_(system), h_(step_s) {
    std::unordered_map<const Component*, const FastPart*> known;  // of linear parts
    parts_.resize(system.parts().size());
    decays_.resize(system.parts().size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = system.parts()[i];
      parts_[i].ports.resize(at(part.component->signature().wave_size()));
      const Subsystem* const physics = part.port_hamiltonian();
      if (physics == nullptr) continue;
      try {
        parts_[i] = fast_part(*physics, part.initial_state.data());
      } catch (const std::exception&) {  // a callback outside its domain
        continue;
      }
      const double own = h_ * parts_[i].rate;
      if (std::isfinite(own)) decays_[i].h_lambda = std::max(0.0, own);
    }
    for (const Junction& junction : system.junctions()) look(junction);
  }

  std::vector<PartDecay> take() { return std::move(decays_); }

 private:
  const FastPort& fast(int port) const {
    const int part = system_.scalar_ports()[at(port)].part;
    return parts_[at(part)].ports[at(port - system_.first_scalar_port(part))];
  }
  Causality causality(int port) const {
    const ScalarPort& own = system_.scalar_ports()[at(port)];
    return system_.parts()[at(own.part)].component->signature().ports[at(own.port)].causality;
  }
  bool is_without_state(int port) const {
    const Part& part = system_.parts()[at(system_.scalar_ports()[at(port)].part)];
    return part.component->signature().state_size() == 0;
  }

  /// D of a port beside which others have outputs of `around`, and `usual` ones.
  double direct(int port, double around, double usual) const {
    const double linear = fast(port).direct;
    const int part = system_.scalar_ports()[at(port)].part;
    const Subsystem* const physics = system_.parts()[at(part)].port_hamiltonian();
    if (physics == nullptr || !physics->has_port_laws()) return linear;
    const int own = port - system_.first_scalar_port(part);
    const auto slope = [&](double u) {
      return std::max(physics->port_law(own, u).slope, physics->port_law(own, -u).slope);
    };
    const double nonlinear = std::min(slope(around), slope(std::max(around, usual)));
    return linear + (std::isnan(nonlinear) ? 0.0 : std::min(nonlinear, kMost));
  }

  void look(const Junction& junction) {
    // e = w·(a number) and Σ wf = 0: admittances add up; else impedances.
    bool adds_admittances = true;
    auto w = balance_row(junction.dirac.F, junction.dirac.E);
    if (!w) {
      w = balance_row(junction.dirac.E, junction.dirac.F);
      adds_admittances = false;
    }
    if (!w || junction.waves.size() < 2) return;
    double around = 0.0, usual = 0.0;
    for (const int port : junction.waves) {
      around += fast(port).output;
      usual += fast(port).usual;
    }
    for (const double beyond : {10.0, 1e3, 1e6}) {
      const double omega = beyond / h_;
      // Immittances that add up, of all ports, times w²; sources are next to nothing, and lossless.
      std::vector<Complex> own(junction.waves.size());
      double scale = 0.0;
      for (std::size_t k = 0; k < own.size(); ++k) {
        const int port = junction.waves[k];
        own[k] = Complex(direct(port, around, usual), -fast(port).storage / omega);
        if (std::abs(own[k]) > 0.0) scale = std::max(scale, std::abs(own[k]));
      }
      if (scale == 0.0) return;
      Complex sum = 0.0;
      for (std::size_t k = 0; k < own.size(); ++k) {
        const bool is_admittance = causality(junction.waves[k]) == Causality::effort_in;
        if (own[k] == 0.0) own[k] = Complex(0.0, -1e-15 * scale);
        if (is_admittance != adds_admittances) own[k] = 1.0 / own[k];
        own[k] *= (*w)[static_cast<Eigen::Index>(k)] * (*w)[static_cast<Eigen::Index>(k)];
        sum += own[k];
      }
      for (std::size_t k = 0; k < own.size(); ++k) judge(junction, k, *w, own, adds_admittances);
    }
  }

  void judge(const Junction& junction, std::size_t k, const Eigen::VectorXd& w,
             const std::vector<Complex>& all, bool adds_admittances) {
    const int port = junction.waves[k];
    const double weight = w[static_cast<Eigen::Index>(k)];
    if (!(fast(port).storage > 0.0) || weight == 0.0) return;
    Complex seen = 0.0;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (j != k) seen += all[j];
    }
    seen /= weight * weight;
    // What takes a flow sees an admittance, f = −Ye.
    const bool needs_admittance = causality(port) == Causality::flow_in;
    if (needs_admittance != adds_admittances) seen = 1.0 / seen;
    const Complex closed = seen / (1.0 + fast(port).direct * seen);
    const double h_lambda = h_ * fast(port).storage * closed.real();
    PartDecay& decay = decays_[at(system_.scalar_ports()[at(port)].part)];
    if (std::isfinite(h_lambda) && h_lambda > decay.h_lambda) decay = {h_lambda, port};
  }

  static constexpr double kMost = 1e100;

  const System& system_;
  double h_;
  std::vector<FastPart> parts_;
  std::vector<PartDecay> decays_;
};

}  // namespace

namespace {

/// Whether a joint lets an effort follow from flows, as gyrators do.
bool turns_flows_into_efforts(const DiracStructure& dirac) {
  for (Eigen::Index i = 0; i < dirac.E.rows(); ++i) {
    if (!dirac.E.row(i).isZero(0.0) && !dirac.F.row(i).isZero(0.0)) return true;
  }
  return false;
}

bool has_entries(const SparseMatrix& A) {
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      if (it.value() != 0.0) return true;
    }
  }
  return false;
}

/// Whether J joins two states that both store: a position that no spring holds does not.
bool exchanges_energy(const Subsystem& part, const double* x) {
  const SparseMatrix& J = part.structure().J;
  if (!has_entries(J)) return false;
  SparseMatrix K;
  try {
    K = hessian_at(part, x);
  } catch (const std::exception&) {  // a callback outside its domain
    return true;
  }
  Eigen::VectorXd stores = Eigen::VectorXd::Zero(K.cols());
  for (int j = 0; j < K.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(K, j); it; ++it) {
      if (it.value() != 0.0) stores[it.row()] = stores[j] = 1.0;
    }
  }
  for (int j = 0; j < J.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(J, j); it; ++it) {
      if (it.value() != 0.0 && stores[it.row()] * stores[j] > 0.0) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<char> islands_that_may_oscillate(const System& system) {
  std::vector<char> may(at(system.island_count()), 0), has_efforts(may), has_flows(may);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& component = *system.parts()[at(i)].component;
    const std::size_t island = at(system.island_of_part(i));
    const Subsystem* const physics = component.port_hamiltonian();
    if (physics == nullptr || physics->linear_form().E != nullptr ||
        !physics->constant_structure()) {
      const bool is_storage = physics == nullptr || component.signature().state_size() > 0;
      if (is_storage) may[island] = 1;
      if (physics == nullptr || is_storage) continue;
    }
    if (has_entries(physics->structure().N)) may[island] = 1;
    if (component.signature().state_size() == 0) continue;
    if (exchanges_energy(*physics, system.parts()[at(i)].initial_state.data())) may[island] = 1;
    const Structure& structure = physics->structure();
    int column = 0;
    for (const Port& port : component.signature().ports) {
      const bool takes_flow = port.causality == Causality::flow_in;
      // What stands behind a resistance, P, is of the kind that its port takes.
      if (has_entries(structure.G.middleCols(column, port.dimension))) {
        (takes_flow ? has_efforts : has_flows)[island] = 1;
      }
      if (has_entries(structure.P.middleCols(column, port.dimension))) {
        (takes_flow ? has_flows : has_efforts)[island] = 1;
      }
      column += port.dimension;
    }
  }
  for (const Junction& junction : system.junctions()) {
    if (junction.waves.empty() || !turns_flows_into_efforts(junction.dirac)) continue;
    may[at(system.island_of_part(system.scalar_ports()[at(junction.waves.front())].part))] = 1;
  }
  for (std::size_t i = 0; i < may.size(); ++i) {
    if (has_efforts[i] != 0 && has_flows[i] != 0) may[i] = 1;
  }
  return may;
}

std::vector<PartDecay> fastest_decays(const System& system, double step_s) {
  return DecaySearch(system, step_s).take();
}

/// By part: whether rigid joints tie it where an input that is not constant enters their constraints.
std::vector<char> driven_parts(const System& system) {
  const auto& parts = system.parts();
  std::vector<char> out(parts.size(), 0), is_driven(at(system.island_count()), 0);
  const StateConstraints constraints(
      system, [&](int part) -> std::span<const double> { return parts[at(part)].initial_state; });
  for (const StateConstraints::Source& source : constraints.sources()) {
    const Signal& input = parts[at(source.part)].inputs[at(source.input)];
    const bool is_constant = !input.is_callback() && std::isfinite(input(0.0)) &&
                             input.digest() == Signal::constant(input(0.0)).digest();
    if (!is_constant) is_driven[at(system.island_of_part(source.part))] = 1;
  }
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    if (is_driven[at(system.island_of_part(i))] != 0 && constraints.ties(i)) out[at(i)] = 1;
  }
  return out;
}

/// By island: a part with vertical laws; −1: there is none.
std::vector<int> switching_parts(const System& system) {
  std::vector<int> out(at(system.island_count()), -1);
  for (int i = static_cast<int>(system.parts().size()) - 1; i >= 0; --i) {
    const Subsystem* const physics = system.parts()[at(i)].port_hamiltonian();
    if (physics != nullptr && physics->has_vertical_laws()) out[at(system.island_of_part(i))] = i;
  }
  return out;
}

IntegratorChoice choose_integrators(const System& system, const WaveCoupling& method, double step_s,
                                    bool is_adaptive) {
  IntegratorChoice out;
  out.plan.stages = method.stages;
  const int parts = static_cast<int>(system.parts().size());
  const auto asked = [&](int part) {
    return system.parts()[at(part)].integrator.value_or(method.integrator);
  };
  std::vector<PartDecay> decays;
  std::vector<char> oscillates, is_driven;
  std::vector<char> is_damped(at(parts), 0);
  const std::vector<int> switching = switching_parts(system);
  for (int i = 0; i < parts; ++i) {
    const Part& part = system.parts()[at(i)];
    if (part.component->signature().state_size() == 0) continue;  // nothing moves
    if (asked(i) == StageKind::gauss) continue;
    if (asked(i) == StageKind::automatic) {
      if (system.slice() != nullptr) continue;
      if (is_adaptive && is_driven.empty()) is_driven = driven_parts(system);
      if (!is_adaptive && decays.empty()) {
        decays = fastest_decays(system, step_s);
        oscillates = islands_that_may_oscillate(system);
      }
      const int switched = switching[at(system.island_of_part(i))];
      const bool needs_it = switched >= 0 ? true
                            : is_adaptive
                                ? is_driven[at(i)] != 0
                                : oscillates[at(system.island_of_part(i))] == 0 &&
                                      decays[at(i)].h_lambda > resolved_decay(method.stages);
      if (!needs_it) continue;
      if (part.substeps > 1 || !damping_defect(*part.component, method.stages).empty()) continue;
      if (switched >= 0) {
        if (out.switched < 0) out.switched = switched;
      } else if (is_adaptive) {
        if (out.driven < 0) out.driven = i;
      } else if (out.fastest < 0 || decays[at(i)].h_lambda > out.decay.h_lambda) {
        out.fastest = i;
        out.decay = decays[at(i)];
      }
    }
    is_damped[at(i)] = 1;
    ++out.damped_parts;
  }
  // In a slice the nodes must be those of the others.
  if (out.damped_parts == 0 && method.integrator != StageKind::damped) return out;
  out.plan.is_damped = std::move(is_damped);
  out.plan.nodes = StageNodes::radau;
  return out;
}

std::string IntegratorChoice::text(const System& system) const {
  if (damped_parts == 0) return {};
  std::string text =
      fmt::format("damped, with order {}, in {} of {} part{}", 2 * plan.stages - 1, damped_parts,
                  system.parts().size(), system.parts().size() == 1 ? "" : "s");
  if (switched >= 0) {
    text += fmt::format("; {} opens and closes what it is joined to",
                        in_quotes(system.parts()[at(switched)].name));
  }
  if (driven >= 0) {
    text += fmt::format("; an input drives {} through rigid joints",
                        in_quotes(system.parts()[at(driven)].name));
  }
  if (fastest < 0) return text;
  const std::string name = in_quotes(system.parts()[at(fastest)].name);
  text += fmt::format("; {} decays by h·λ = {:.3g} within a step", name, decay.h_lambda);
  return text;
}

}  // namespace portwave
