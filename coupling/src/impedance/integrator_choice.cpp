#include "portwave/coupling/impedance/integrator_choice.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <exception>
#include <functional>
#include <unordered_map>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <fmt/format.h>

#include "impedance/fast_ports.hpp"
#include "impedance/own_decays.hpp"
#include "impedance/response_tools.hpp"
#include "portwave/coupling/impedance/one_sided_decays.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "system/balance_row.hpp"

namespace portwave {
namespace {

/// The fastest decay of a descriptor part without inputs [1/s]: of Eẋ = (J − R)Qx, or with many states the largest
/// ratio of diagonal entries; 0 for other parts.
double descriptor_rate(const Subsystem& part) {
  const LinearForm form = part.linear_form();
  if (form.E == nullptr || form.Q == nullptr) return 0.0;
  constexpr Eigen::Index kMostDense = 100;
  const SparseMatrix W = part.structure().J - part.structure().R, &Q = *form.Q;
  double out = 0.0;
  if (Q.rows() > kMostDense) {
    for (int i = 0; i < W.rows(); ++i) {
      const double inertia = form.E->coeff(i, i);
      if (!(inertia > 0.0)) continue;
      double own = 0.0;
      for (SparseMatrix::InnerIterator it(Q, i); it; ++it) own += W.coeff(i, it.row()) * it.value();
      out = std::max(out, -own / inertia);
    }
    return out;
  }
  // Rows and columns of E of size 1, so that small storages count as others do; then what E leaves out is eliminated.
  Eigen::MatrixXd dense(SparseMatrix(W * Q)), E(*form.E);
  for (Eigen::Index i = 0; i < E.rows(); ++i) {
    const double size = E.row(i).cwiseAbs().maxCoeff();
    const double scale = size > 0.0 ? size : dense.row(i).cwiseAbs().maxCoeff();
    if (!(scale > 0.0)) continue;
    E.row(i) /= scale;
    dense.row(i) /= scale;
  }
  for (Eigen::Index j = 0; j < E.cols(); ++j) {
    const double size = E.col(j).cwiseAbs().maxCoeff();
    if (!(size > 0.0)) continue;
    E.col(j) /= size;
    dense.col(j) /= size;
  }
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(E, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const Eigen::Index r = svd.rank(), others = E.rows() - r;
  if (r == 0) return 0.0;
  const Eigen::MatrixXd moved = svd.matrixU().transpose() * dense * svd.matrixV();
  Eigen::MatrixXd rates = moved.topLeftCorner(r, r);
  if (others > 0) {
    rates -= moved.topRightCorner(r, others) * moved.bottomRightCorner(others, others)
                                                   .completeOrthogonalDecomposition()
                                                   .solve(moved.bottomLeftCorner(others, r));
  }
  rates = svd.singularValues().head(r).cwiseInverse().asDiagonal() * rates;
  if (!rates.allFinite()) return 0.0;
  const Eigen::VectorXcd lambda = rates.eigenvalues();
  return std::max(0.0, -lambda.real().minCoeff());
}

class DecaySearch {
 public:
  DecaySearch(const System& system, double step_s, std::span<const char> exchanged)
      : system_(system), h_(step_s), exchanged_(exchanged) {
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
      const double own = h_ * std::max(parts_[i].rate, descriptor_rate(*physics));
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

  /// D of a port beside which others have outputs of `around`, and `usual` ones.
  double direct(int port, double around, double usual) const {
    const int part = system_.scalar_ports()[at(port)].part;
    if (!exchanged_.empty() && exchanged_[at(part)] != 0) return 0.0;
    const double linear = fast(port).direct;
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
    if (junction.waves.size() < 2 || (!w && junction.waves.size() > kMostJunctionPorts)) return;
    double around = 0.0, usual = 0.0;
    for (const int port : junction.waves) {
      around += fast(port).output;
      usual += fast(port).usual;
    }
    std::vector<FastTerm> terms;
    for (std::size_t k = 0; k < junction.waves.size(); ++k) {
      const int port = junction.waves[k];
      const double weight = w ? (*w)[static_cast<Eigen::Index>(k)] : 1.0;
      terms.push_back({direct(port, around, usual), fast(port).storage, weight * weight,
                       causality(port) == Causality::effort_in});
    }
    std::vector<std::complex<double>> work(terms.size());
    std::vector<double> rates(terms.size());
    for (const double beyond : {10.0, 1e3, 1e6}) {
      if (w) {
        joint_decays(terms, adds_admittances, beyond / h_, work, rates);
      } else {
        junction_decays(terms, junction.dirac.E, junction.dirac.F, beyond / h_, rates);
      }
      for (std::size_t k = 0; k < terms.size(); ++k) {
        const int port = junction.waves[k];
        PartDecay& decay = decays_[at(system_.scalar_ports()[at(port)].part)];
        if (h_ * rates[k] > decay.h_lambda) decay = {h_ * rates[k], port};
      }
    }
  }

  static constexpr double kMost = 1e100;

  const System& system_;
  double h_;
  std::span<const char> exchanged_;
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

/// Whether a part does so at its ports, as a gyrator does; a transformer or gear does not, nor does a source.
bool turns_flows_into_efforts(const Subsystem& part) {
  const std::vector<Causality> causality = scalar_causalities(part.signature());
  const SparseMatrix& N = part.structure().N;
  const auto ports = static_cast<Eigen::Index>(causality.size());
  for (Eigen::Index j = 0; j < std::min<Eigen::Index>(ports, N.outerSize()); ++j) {
    for (SparseMatrix::InnerIterator it(N, j); it; ++it) {
      if (it.value() == 0.0 || it.row() >= ports) continue;
      if (causality[at(static_cast<int>(it.row()))] == causality[at(static_cast<int>(j))])
        return true;
    }
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
  std::vector<char> is_driven(may), has_laws(may);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& component = *system.parts()[at(i)].component;
    const std::size_t island = at(system.island_of_part(i));
    const Subsystem* const physics = component.port_hamiltonian();
    const auto swings_by_itself = [&] {
      return physics->linear_form().E != nullptr && has_entries(physics->structure().J);
    };
    if (physics == nullptr || !physics->constant_structure() || swings_by_itself()) {
      const bool is_storage = physics == nullptr || component.signature().state_size() > 0;
      if (is_storage) may[island] = 1;
      if (physics == nullptr || is_storage) continue;
    }
    if (turns_flows_into_efforts(*physics)) may[island] = 1;
    if (has_entries(physics->structure().N)) is_driven[island] = 1;
    if (physics->has_port_laws()) has_laws[island] = 1;
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
    // What a source drives against a law is stiff for a while only: a rectifier conserves while it conducts.
    if (is_driven[i] != 0 && has_laws[i] != 0) may[i] = 1;
  }
  return may;
}

std::vector<PartDecay> fastest_decays(const System& system, double step_s,
                                      std::span<const char> exchanged) {
  return DecaySearch(system, step_s, exchanged).take();
}

/// A state that is damped among oscillations makes the inputs of its island those at the ends of steps: that has to pay.
constexpr double kAmongOscillations = 2.0;

/// What moves the constraints of rigid joints, which conserving steps of changing size would swing about.
enum class MovedBy : char { nothing, input, state };

/// By part that rigid joints tie: whether in its island an input that is not constant enters their constraints, or
/// parts whose structure turns with their state, as in a loop of arms.
std::vector<MovedBy> moved_constraints(const System& system) {
  const auto& parts = system.parts();
  std::vector<MovedBy> out(parts.size(), MovedBy::nothing);
  std::vector<MovedBy> by_island(at(system.island_count()), MovedBy::nothing);
  const StateConstraints constraints(
      system, [&](int part) -> std::span<const double> { return parts[at(part)].initial_state; });
  for (const StateConstraints::Source& source : constraints.sources()) {
    const Signal& input = parts[at(source.part)].inputs[at(source.input)];
    const bool is_constant = !input.is_callback() && std::isfinite(input(0.0)) &&
                             input.digest() == Signal::constant(input(0.0)).digest();
    if (!is_constant) by_island[at(system.island_of_part(source.part))] = MovedBy::input;
  }
  const auto count = static_cast<int>(parts.size());
  for (int i = 0; i < count; ++i) {
    if (!constraints.turns(i, parts[at(i)].initial_state)) continue;
    MovedBy& own = by_island[at(system.island_of_part(i))];
    if (own == MovedBy::nothing) own = MovedBy::state;
  }
  for (int i = 0; i < count; ++i) {
    if (constraints.ties(i)) out[at(i)] = by_island[at(system.island_of_part(i))];
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

/// Parts that store beside a resistance that may bind them within a step, and may be damped.
struct BesideOneSided {
  std::vector<char> parts;
  /// By part: the states that its ports show at such joints; 0 where it is tied to others that have some.
  std::vector<std::uint64_t> shown;
};

BesideOneSided beside_one_sided(const System& system, double step_s, int stages,
                                const std::function<bool(int part)>& may_damp,
                                const std::function<bool(int part)>& is_exchanged) {
  BesideOneSided out{std::vector<char>(system.parts().size(), 0),
                     std::vector<std::uint64_t>(system.parts().size(), 0)};
  const OneSidedDecays decays(system, step_s, resolved_decay(stages), may_damp, is_exchanged);
  for (const std::vector<int>& set : decays.sets()) {
    for (const int part : set) out.parts[at(part)] = 1;
  }
  for (const OneSidedDecays::Storage& own : decays.storages()) {
    for (const int state : own.shown) {
      if (state < kMostMasked) out.shown[at(own.part)] |= std::uint64_t{1} << state;
    }
  }
  return out;
}

/// Whether a decay of the part may be what a user wants followed: a large part has its own resolution, as that of a
/// line of cells, and generic ports are of networks that are compared with a method's own steps.
bool is_small_and_physical(const Part& part) {
  constexpr int kMostStates = 4;
  const Signature& own = part.component->signature();
  return own.state_size() <= kMostStates && std::ranges::none_of(own.ports, [](const Port& port) {
           return port.domain == Domain::generic;
         });
}

IntegratorChoice choose_integrators(const System& system, const WaveCoupling& method, double step_s,
                                    bool is_adaptive, std::span<const char> exchanged) {
  IntegratorChoice out;
  out.plan.stages = method.stages;
  const int parts = static_cast<int>(system.parts().size());
  const auto asked = [&](int part) {
    return system.parts()[at(part)].integrator.value_or(method.integrator);
  };
  std::vector<PartDecay> decays;
  std::vector<OwnDecays> own;
  std::vector<char> oscillates;
  std::vector<MovedBy> moved;
  BesideOneSided beside;
  const auto can_be_damped = [&](int part) {
    const Part& own_part = system.parts()[at(part)];
    return own_part.substeps == 1 && damping_defect(*own_part.component, method.stages).empty();
  };
  const auto may_damp = [&](int part) {
    return asked(part) != StageKind::gauss && can_be_damped(part);
  };
  const auto is_exchanged = [&](int part) {
    return !exchanged.empty() && exchanged[at(part)] != 0;
  };
  const auto look_beside = [&] {
    if (method.stages == 1 || !beside.parts.empty()) return;
    beside = beside_one_sided(system, step_s, method.stages, may_damp, [&](int part) {
      // One that stores itself, as a spring with a damper, is judged as it is at the start.
      return is_exchanged(part) &&
             system.parts()[at(part)].component->signature().state_size() == 0;
    });
  };
  std::vector<char> is_damped(at(parts), 0);
  std::vector<StageDamping> damping(at(parts));
  const std::vector<int> switching = switching_parts(system);
  for (int i = 0; i < parts; ++i) {
    const Part& part = system.parts()[at(i)];
    if (part.component->signature().state_size() == 0) continue;  // nothing moves
    if (asked(i) == StageKind::gauss) continue;
    if (asked(i) == StageKind::automatic) {
      if (system.slice() != nullptr) continue;
      if (is_adaptive && moved.empty()) moved = moved_constraints(system);
      if (!is_adaptive && decays.empty()) {
        decays = fastest_decays(system, step_s, exchanged);
        // With one stage nodes of circuits are left to swing, which is told: a damped one would take the inputs of all
        // to the ends of steps. With two stages they would stand still, unseen.
        own = own_decays(system, step_s, kAmongOscillations * resolved_decay(method.stages),
                         exchanged, method.stages > 1);
      }
      if (oscillates.empty()) oscillates = islands_that_may_oscillate(system);
      look_beside();
      const int switched = switching[at(system.island_of_part(i))];
      const bool swings = oscillates[at(system.island_of_part(i))] != 0;
      // Of what swings, the states alone that the one-sided part binds.
      const bool is_moved = is_adaptive && moved[at(i)] != MovedBy::nothing;
      const bool is_beside =
          !is_moved && !beside.parts.empty() && beside.parts[at(i)] != 0 &&
          (!swings || beside.shown[at(i)] == 0 || can_damp_single_states(*part.component));
      const bool needs_it = switched >= 0 || is_beside ? true
                            : is_adaptive              ? is_moved
                            : swings                   ? own[at(i)].state >= 0
                                     : decays[at(i)].h_lambda > resolved_decay(method.stages);
      const bool is_thrown = !is_adaptive && decays[at(i)].h_lambda > thrown_decay(method.stages) &&
                             is_small_and_physical(part);
      if (is_thrown && out.thrown < 0 && !(needs_it && can_be_damped(i))) out.thrown = i;
      if (!needs_it) continue;
      if (!can_be_damped(i)) continue;
      if (switched >= 0) {
        if (out.switched < 0) out.switched = switched;
      } else if (is_beside) {
        if (out.beside < 0) out.beside = i;
        if (swings && beside.shown[at(i)] != 0) {
          const int states = part.component->signature().state_size();
          const std::uint64_t all = ~std::uint64_t{0} >> (kMostMasked - states);
          damping[at(i)].conserved = all & ~beside.shown[at(i)];
        }
      } else if (is_adaptive) {
        int& first = moved[at(i)] == MovedBy::input ? out.driven : out.turning;
        if (first < 0) first = i;
      } else {
        if (swings) damping[at(i)].conserved = own[at(i)].conserved;
        const double h_lambda = swings ? own[at(i)].h_lambda : decays[at(i)].h_lambda;
        if (out.fastest < 0 || h_lambda > out.decay.h_lambda) {
          out.fastest = i;
          out.fastest_state = swings ? own[at(i)].state : -1;
          out.decay = swings ? PartDecay{h_lambda, -1} : decays[at(i)];
        }
      }
    }
    if (part.integrator == StageKind::damped) {
      if (part.damping.theta == 0.0) continue;
      damping[at(i)] = part.damping;
    }
    if (asked(i) == StageKind::damped && !is_adaptive && system.slice() == nullptr) {
      look_beside();
      if (out.beside < 0 && !beside.parts.empty() && beside.parts[at(i)] != 0) out.beside = i;
    }
    is_damped[at(i)] = 1;
    ++out.damped_parts;
  }
  if (out.damped_parts > 0) {
    if (oscillates.empty()) oscillates = islands_that_may_oscillate(system);
    for (int i = 0; i < parts && out.oscillating < 0; ++i) {
      if (is_damped[at(i)] != 0 && oscillates[at(system.island_of_part(i))] != 0)
        out.oscillating = i;
    }
  }
  // In a slice the nodes must be those of the others.
  if (out.damped_parts == 0 && method.integrator != StageKind::damped) return out;
  out.plan.is_damped = std::move(is_damped);
  const auto is_partly = [](const StageDamping& own_damping) {
    return own_damping != StageDamping{};
  };
  if (std::ranges::any_of(damping, is_partly)) out.plan.damping = std::move(damping);
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
  if (turning >= 0) {
    text += fmt::format("; rigid joints turn with what {} does",
                        in_quotes(system.parts()[at(turning)].name));
  }
  if (beside >= 0) {
    text += fmt::format("; a one-sided part may bind {} within a step",
                        in_quotes(system.parts()[at(beside)].name));
  }
  if (fastest < 0) return text;
  const Part& part = system.parts()[at(fastest)];
  const std::string name =
      in_quotes(fastest_state < 0
                    ? part.name
                    : part.name + "." + part.component->signature().states[at(fastest_state)].name);
  text += fmt::format("; {} decays by h·λ = {:.3g} within a step", name, decay.h_lambda);
  return text;
}

}  // namespace portwave
