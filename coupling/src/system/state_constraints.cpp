#include "portwave/coupling/system/state_constraints.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"
#include "system/part_there.hpp"

namespace portwave {
namespace {

using Vector = Eigen::VectorXd;

/// Residuals below this part of what they are summed from are rounding.
constexpr double kRounding = 1e-12;

}  // namespace

struct StateConstraints::Impl {
  const System* system;
  FoundConstraints found;
  std::vector<Source> sources;
  std::vector<int> group_of_constraint, group_of_impulse;
  std::vector<char> is_tied;  // by part; empty: none are

  /// Parts that were looked at in an instant.
  using Parts = std::map<int, PartThere>;

  const PartThere& there(Parts& parts, int part, const StateInstant& at_it) const {
    const auto found_it = parts.find(part);
    if (found_it != parts.end()) return found_it->second;
    return parts.try_emplace(part, system->parts()[at(part)], at_it.state(part)).first->second;
  }

  TermSum sum_of(int constraint, Parts& parts, const StateInstant& at_it) const {
    TermSum sum;
    const FoundConstraint& own = found.constraints[at(constraint)];
    for (const PortTerm& term : own.ports) {
      const int part = part_of(term.port);
      sum.add(term.weight, there(parts, part, at_it)
                               .output(term.port - system->first_scalar_port(part), at_it, part));
    }
    for (const AlgebraicTerm& term : own.equations) {
      sum.add(term.weight, there(parts, term.part, at_it).equation(term.number, at_it, term.part));
    }
    if (std::abs(sum.value) <= kRounding * sum.made_of) sum.value = 0.0;
    return sum;
  }

  int part_of(int port) const { return system->scalar_ports()[at(port)].part; }

  template <class Terms, class Visit>
  void for_parts(const Terms& ports, const std::vector<AlgebraicTerm>& algebraic,
                 const Visit& visit) const {
    for (const PortTerm& term : ports) visit(part_of(term.port));
    for (const AlgebraicTerm& term : algebraic) visit(term.part);
  }

  /// Constraints and impulses that share a part hang together.
  void group() {
    std::map<int, int> parent;
    const std::function<int(int)> root = [&](int i) {
      const auto place = parent.try_emplace(i, i).first;
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return place->second = i;
    };
    const auto join = [&](const auto& ports, const auto& algebraic) {
      int first = -1;
      for_parts(ports, algebraic, [&](int part) {
        if (first < 0) first = part;
        parent[root(part)] = root(first);
      });
    };
    for (const FoundConstraint& own : found.constraints) join(own.ports, own.equations);
    for (const FoundImpulse& own : found.impulses) join(own.ports, own.unknowns);
    const auto group_of = [&](const auto& ports, const auto& algebraic) {
      int out = -1;
      for_parts(ports, algebraic, [&](int part) { out = root(part); });
      return out;
    };
    for (const FoundConstraint& own : found.constraints) {
      group_of_constraint.push_back(group_of(own.ports, own.equations));
    }
    for (const FoundImpulse& own : found.impulses) {
      group_of_impulse.push_back(group_of(own.ports, own.unknowns));
    }
  }

  /// What an impulse does: its sizes, by number of the impulse, and the states before it.
  struct Impact {
    std::vector<int> impulses;
    Vector sizes;
    std::map<int, Vector> x, z;  // before, by part
  };
  Odds impact(std::vector<int> violated, const StateInstant& at_it) const;
  void find_energies(Odds& odds, Parts& parts, const Impact& impact, const StateInstant& at_it,
                     int group) const;
};

StateConstraints::StateConstraints(const System& system, const StateOf& state,
                                   const InputOf& branches) {
  auto impl = std::make_unique<Impl>();
  impl->system = &system;
  impl->found = find_constraints(system, state, branches);
  impl->group();
  if (!impl->found.constraints.empty()) impl->is_tied.assign(system.parts().size(), 0);
  Impl::Parts parts;
  const StateInstant here = {.state = state, .input = {}};
  for (int i = 0; i < static_cast<int>(impl->found.constraints.size()); ++i) {
    const FoundConstraint& own = impl->found.constraints[at(i)];
    std::map<std::pair<int, int>, double> weights;
    for (const PortTerm& term : own.ports) {
      const int part = impl->part_of(term.port);
      impl->there(parts, part, here)
          .for_sources(term.port - system.first_scalar_port(part), [&](int input, double weight) {
            weights[{part, input}] += term.weight * weight;
          });
    }
    for (const AlgebraicTerm& term : own.equations) {
      impl->there(parts, term.part, here)
          .for_equation_sources(term.number, [&](int input, double weight) {
            weights[{term.part, input}] += term.weight * weight;
          });
    }
    for (const auto& [place, weight] : weights) {
      impl->sources.push_back({i, place.first, place.second, weight});
    }
    impl->for_parts(own.ports, own.equations, [&](int part) { impl->is_tied[at(part)] = 1; });
  }
  impl_ = std::move(impl);
}

StateConstraints::~StateConstraints() = default;
StateConstraints::StateConstraints(StateConstraints&&) noexcept = default;
StateConstraints& StateConstraints::operator=(StateConstraints&&) noexcept = default;

int StateConstraints::size() const { return static_cast<int>(impl_->found.constraints.size()); }

bool StateConstraints::ties(int part) const {
  return !impl_->is_tied.empty() && impl_->is_tied[at(part)] != 0;
}

bool StateConstraints::turns(int part, std::span<const double> state) const {
  const Subsystem* const physics = impl_->system->parts()[at(part)].port_hamiltonian();
  if (!ties(part) || physics == nullptr || physics->constant_structure()) return false;
  std::vector<double> elsewhere(state.begin(), state.end());
  for (std::size_t i = 0; i < elsewhere.size(); ++i) {
    elsewhere[i] += 0.3 + 0.1 * static_cast<double>(i % 5);  // no symmetry of angles
  }
  Structure here = physics->structure(), there = here;
  physics->structure_at(state.data(), here);
  physics->structure_at(elsewhere.data(), there);
  const auto column = [](const SparseMatrix& M, int port) { return Vector(M.col(port)); };
  const int first = impl_->system->first_scalar_port(part),
            ports = physics->signature().wave_size();
  for (const FoundConstraint& own : impl_->found.constraints) {
    for (const PortTerm& term : own.ports) {
      if (impl_->part_of(term.port) != part) continue;
      const int port = (term.port - first) % ports;
      if (column(here.G, port) != column(there.G, port)) return true;
      if (column(here.P, port) != column(there.P, port)) return true;
    }
  }
  return false;
}

std::span<const StateConstraints::Source> StateConstraints::sources() const {
  return impl_->sources;
}

bool StateConstraints::is_prescribed(int constraint) const {
  const FoundConstraint& own = impl_->found.constraints[at(constraint)];
  bool has_states = false;
  impl_->for_parts(own.ports, own.equations, [&](int part) {
    has_states |= impl_->system->parts()[at(part)].component->signature().state_size() > 0;
  });
  return !has_states;
}

StateConstraints::Residual StateConstraints::residual(int constraint,
                                                      const StateInstant& at_it) const {
  Impl::Parts parts;
  const TermSum sum = impl_->sum_of(constraint, parts, at_it);
  return {sum.value, sum.size};
}

bool StateConstraints::may_change() const {
  return !impl_->found.varying.empty() || !impl_->found.switched.empty();
}

std::string StateConstraints::switched(const InputOf& input) const {
  for (const SwitchedPort& own : impl_->found.switched) {
    const PortBranch now = branch_of(*impl_->system, own.part, own.port, input);
    if (now == own.branch) continue;
    return fmt::format("{} {}", printable(impl_->system->parts()[at(own.part)].name),
                       now == PortBranch::shorted ? "closes" : "opens");
  }
  return {};
}

bool StateConstraints::has_changed(const StateOf& state) const {
  return std::ranges::any_of(impl_->found.varying, [&](const VaryingPart& own) {
    const Part& part = impl_->system->parts()[at(own.part())];
    return own.has_changed(*part.port_hamiltonian(), state(own.part()));
  });
}

std::vector<StateConstraints::Odds> StateConstraints::odds(
    const StateInstant& at_it, double share, std::span<const double> amplitude) const {
  std::vector<double> extra(at(size()), 0.0);
  for (std::size_t i = 0; i < amplitude.size(); ++i) {
    const Source& source = impl_->sources[i];
    extra[at(source.constraint)] += std::abs(source.weight) * amplitude[i];
  }
  std::map<int, std::vector<std::pair<double, int>>> violated;  // by group
  Impl::Parts parts;
  for (int i = 0; i < size(); ++i) {
    const TermSum sum = impl_->sum_of(i, parts, at_it);
    const double size = std::max(sum.size, extra[at(i)]);
    if (!(sum.value * sum.value > share * size * size)) continue;
    violated[impl_->group_of_constraint[at(i)]].emplace_back(-std::abs(sum.value) / size, i);
  }
  std::vector<Odds> out;
  for (auto& [group, own] : violated) {
    std::ranges::sort(own);
    std::vector<int> numbers;
    for (const auto& [ratio, number] : own) numbers.push_back(number);
    out.push_back(impl_->impact(std::move(numbers), at_it));
  }
  return out;
}

StateConstraints::Odds StateConstraints::odds_of(std::span<const int> violated,
                                                 const StateInstant& at_it) const {
  return impl_->impact({violated.begin(), violated.end()}, at_it);
}

StateConstraints::Odds StateConstraints::Impl::impact(std::vector<int> violated,
                                                      const StateInstant& at_it) const {
  const int group = group_of_constraint[at(violated.front())];
  std::vector<int> constraints, impulses;
  for (int i = 0; i < static_cast<int>(group_of_constraint.size()); ++i) {
    if (group_of_constraint[at(i)] == group) constraints.push_back(i);
  }
  for (int i = 0; i < static_cast<int>(group_of_impulse.size()); ++i) {
    if (group_of_impulse[at(i)] == group) impulses.push_back(i);
  }
  Parts parts;
  for (const int i : constraints) {
    for_parts(found.constraints[at(i)].ports, found.constraints[at(i)].equations,
              [&](int part) { there(parts, part, at_it); });
  }
  // What each impulse, of size 1, makes of the states; by part.
  struct Column {
    int number;
    Vector dx;
  };
  std::map<int, std::vector<Column>> jumps;
  for (int b = 0; b < static_cast<int>(impulses.size()); ++b) {
    const FoundImpulse& own = found.impulses[at(impulses[at(b)])];
    std::map<int, Vector> of_part;
    const auto room = [&](int part) -> Vector& {
      Vector& out = of_part[part];
      if (out.size() == 0) out = Vector::Zero(there(parts, part, at_it).x().size());
      return out;
    };
    for (const PortTerm& term : own.ports) {
      const int part = part_of(term.port);
      if (system->parts()[at(part)].port_hamiltonian() == nullptr) continue;
      there(parts, part, at_it).add_jump(term, system->first_scalar_port(part), room(part));
    }
    for (const AlgebraicTerm& term : own.unknowns) {
      there(parts, term.part, at_it).add_jump(term, room(term.part));
    }
    for (auto& [part, Ex] : of_part) {
      if (Ex.isZero(0.0)) continue;
      jumps[part].push_back({b, parts.at(part).with_E(Ex)});
    }
  }
  Odds out;
  Impact done{impulses, Vector::Zero(static_cast<int>(impulses.size())), {}, {}};
  double size_before = 0.0;
  for (const auto& [part, own] : parts) {
    done.x[part] = own.x();
    done.z[part] = own.z();
    size_before += own.size_J();
  }
  // Newton's method for the sizes of the impulses; of linear parts its second step refines.
  constexpr int kMostSteps = 30;
  const auto rows = static_cast<int>(constraints.size()),
             columns = static_cast<int>(impulses.size());
  Vector r(rows), size_of_terms = Vector::Zero(rows);  // the largest: a held mass ends with none
  for (int step = 0;; ++step) {
    double worst = 0.0;
    for (int a = 0; a < rows; ++a) {
      const TermSum sum = sum_of(constraints[at(a)], parts, at_it);
      r[a] = sum.value;
      size_of_terms[a] = std::max(size_of_terms[a], sum.size);
      if (sum.value != 0.0) worst = std::max(worst, std::abs(sum.value) / size_of_terms[a]);
    }
    out.is_consistent = worst <= 1e-9;
    if (worst <= kRounding || step == kMostSteps || columns == 0) break;
    SparseEntries slopes;
    std::map<int, std::vector<std::pair<int, Vector>>> dz;
    for (const auto& [part, own] : jumps) {
      for (const Column& column : own) {
        dz[part].emplace_back(column.number, parts.at(part).slope(column.dx));
      }
    }
    for (int a = 0; a < rows; ++a) {
      const FoundConstraint& own = found.constraints[at(constraints[at(a)])];
      for (const PortTerm& term : own.ports) {
        const int part = part_of(term.port);
        const int port = term.port - system->first_scalar_port(part);
        for (const auto& [b, slope] : dz[part]) {
          slopes.emplace_back(a, b, term.weight * parts.at(part).output_slope(port, slope));
        }
      }
      for (const AlgebraicTerm& term : own.equations) {
        for (const Column& column : jumps[term.part]) {
          slopes.emplace_back(
              a, column.number,
              term.weight * parts.at(term.part).equation_slope(term.number, column.dx));
        }
      }
    }
    SparseMatrix S = sparse_matrix(rows, columns, slopes);
    const SparseMatrix right = (-r).eval().sparseView(0.0, 0.0);
    const Vector size = Vector(solve_in_range(S, right).col(0));
    if (!size.allFinite()) break;
    done.sizes += size;
    for (const auto& [part, own] : jumps) {
      Vector x = parts.at(part).x();
      for (const Column& column : own) x += size[column.number] * column.dx;
      parts.at(part).move_to(x);
    }
  }
  double size_after = 0.0;
  for (const auto& [part, own] : parts) {
    size_after += own.size_J();
    const Vector& before = done.x[part];
    for (int i = 0; i < static_cast<int>(before.size()); ++i) {
      const double size = std::max(std::abs(before[i]), std::abs(own.x()[i]));
      if (std::abs(own.x()[i] - before[i]) <= 1e-9 * size) continue;
      out.jumps.push_back({part, i, before[i], own.x()[i]});
    }
  }
  out.energy_J = std::max(size_before, size_after);
  find_energies(out, parts, done, at_it, group);
  out.violated = std::move(violated);
  return out;
}

/// The energies of the impulse, part by part. With D(x, x⁺) = H(x) − H(x⁺) − ∇H(x⁺)ᵀ(x − x⁺), which for convex
/// H is not negative, a part loses D, and receives ∇H(x⁺)ᵀΔx through its ports. Joints are lossless and hold
/// afterwards: the sum of that over all parts is what sources supply.
void StateConstraints::Impl::find_energies(Odds& odds, Parts& parts, const Impact& impact,
                                           const StateInstant& at_it, int group) const {
  constexpr double kNoise = 1e-13;
  double received_J = 0.0;  // through ports, by parts with states
  for (const auto& [part, own] : parts) {
    const Vector& x = impact.x.at(part);
    const Vector dx = own.x() - x;
    if (dx.isZero(0.0)) continue;
    const Vector& z = impact.z.at(part);
    PartImpulse jump{.part = part, .state = {}};
    const std::span<const double> given = at_it.state(part);
    jump.state.assign(given.begin(), given.end());
    const bool is_as_given = own.is_as_given();  // else the kernel of E is left out of x
    for (Eigen::Index i = 0; i < dx.size(); ++i) {
      double& state = jump.state[at(static_cast<int>(i))];
      state = is_as_given ? own.x()[i] : state + dx[i];
    }
    if (own.physics().is_linear()) {
      jump.impact_J = own.energy_of(own.z() - z, dx);
      jump.change_J = own.energy_of(own.z() + z, dx);
    } else {
      const double through_J = 2.0 * own.energy_of(own.z(), dx);
      const double before_J = own.physics().storage(x.data()), after_J = own.storage();
      jump.change_J = after_J - before_J;
      jump.impact_J = through_J - jump.change_J;
      const double noise_J =
          kNoise * (std::abs(before_J) + std::abs(after_J) + std::abs(through_J));
      if (std::abs(jump.impact_J) <= noise_J) jump.impact_J = std::max(jump.impact_J, 0.0);
    }
    received_J += jump.change_J + jump.impact_J;
    odds.change_J += jump.change_J;
    odds.impulse_J += jump.impact_J;
    odds.parts.push_back(std::move(jump));
  }
  odds.is_passive = odds.impulse_J >= -kNoise * odds.energy_J;
  // What each source supplies; rounding goes to the largest of them, or where there is none to the loss.
  const auto has_states = [&](int part) { return parts.at(part).x().size() > 0; };
  std::map<int, double> by_source;
  for (const Source& own : sources) {
    if (group_of_constraint[at(own.constraint)] == group) by_source.try_emplace(own.part, 0.0);
  }
  for (int b = 0; b < static_cast<int>(impact.impulses.size()); ++b) {
    for (const PortTerm& term : found.impulses[at(impact.impulses[at(b)])].ports) {
      const int part = part_of(term.port);
      const auto source = by_source.find(part);
      if (source == by_source.end() || has_states(part)) continue;
      const int port = term.port - system->first_scalar_port(part);
      source->second -=
          term.weight * impact.sizes[b] * parts.at(part).output(port, at_it, part).value;
    }
  }
  double left_J = received_J;
  for (const auto& [part, own] : by_source) left_J -= own;
  // Of a source within a part that has states nothing is known yet: the rest is what it supplies.
  const auto takes = std::ranges::max_element(by_source, {}, [&](const auto& own) {
    return std::pair(has_states(own.first), std::abs(own.second));
  });
  if (takes != by_source.end()) {
    takes->second += left_J;
  } else if (!odds.parts.empty()) {
    PartImpulse& largest = *std::ranges::max_element(odds.parts, {}, &PartImpulse::impact_J);
    largest.impact_J -= left_J;
  }
  for (const auto& [part, supplied_J] : by_source) {
    if (supplied_J == 0.0) continue;
    const auto own = std::ranges::find(odds.parts, part, &PartImpulse::part);
    if (own != odds.parts.end()) {
      own->supplied_J = supplied_J;
    } else {
      odds.parts.push_back({.part = part, .state = {}, .supplied_J = supplied_J});
    }
  }
}

bool StateConstraints::is_without_domain(const Odds& odds) const {
  const auto is_generic = [this](const Jump& jump) {
    const auto& ports = impl_->system->parts()[at(jump.part)].component->signature().ports;
    return std::ranges::all_of(ports,
                               [](const Port& port) { return port.domain == Domain::generic; });
  };
  return odds.is_consistent && !odds.jumps.empty() && std::ranges::all_of(odds.jumps, is_generic);
}

std::string StateConstraints::joints(int constraint) const {
  const FoundConstraint& own = impl_->found.constraints[at(constraint)];
  constexpr std::size_t kShown = 3, kPorts = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(own.junctions.size(), kShown); ++i) {
    const Junction& junction = impl_->system->junctions()[at(own.junctions[i])];
    if (i > 0) text += "; ";
    text += fmt::format("{} of ", junction.dirac.kind);
    for (std::size_t j = 0; j < std::min(junction.waves.size(), kPorts); ++j) {
      if (j > 0) text += ", ";
      text += printable(impl_->system->port_label(junction.waves[j]));
    }
    if (junction.waves.size() > kPorts) text += ", ...";
  }
  if (own.junctions.size() > kShown) {
    text += fmt::format("; and {} more", own.junctions.size() - kShown);
  }
  if (own.junctions.empty() && !own.equations.empty()) {
    text = fmt::format("a constraint within {}",
                       printable(impl_->system->parts()[at(own.equations.front().part)].name));
  }
  return text;
}

namespace {

std::string with_unit(double value, std::string_view unit) {
  return unit.empty() || unit == "-" ? fmt::format("{:.6g}", value)
                                     : fmt::format("{:.6g} {}", value, printable(unit));
}

}  // namespace

std::string StateConstraints::values(int constraint, const StateInstant& at_it) const {
  const System& system = *impl_->system;
  const FoundConstraint& own = impl_->found.constraints[at(constraint)];
  std::vector<std::string> texts;
  const auto add = [&](std::string text) {
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  };
  const auto add_input = [&](int part, int number) {
    const Part& placed = system.parts()[at(part)];
    const ExternalInput& input = placed.component->signature().inputs[at(number)];
    add(fmt::format("{}.{} = {}", printable(placed.name), printable(input.name),
                    with_unit(at_it.input(part, number), input.unit)));
  };
  const auto add_state = [&](int part, int state) {
    const Part& placed = system.parts()[at(part)];
    const StateVariable& variable = placed.component->signature().states[at(state)];
    add(fmt::format("{}.{} = {}", printable(placed.name), printable(variable.name),
                    with_unit(at_it.state(part)[at(state)], variable.unit)));
  };
  Impl::Parts parts;
  for (const PortTerm& term : own.ports) {
    const int part = impl_->part_of(term.port);
    const PartThere& there = impl_->there(parts, part, at_it);
    const int local = term.port - system.first_scalar_port(part);
    int inputs = 0;
    there.for_sources(local, [&](int input, double) {
      add_input(part, input);
      ++inputs;
    });
    if (there.x().size() == 0) {
      if (inputs == 0) add(fmt::format("{} = 0", printable(system.port_label(term.port))));
      continue;
    }
    if (const int state = there.only_state(local); state >= 0) {
      add_state(part, state);
      continue;
    }
    const ScalarPort& scalar = system.scalar_ports()[at(term.port)];
    const Port& port = there.physics().signature().ports[at(scalar.port)];
    const bool gives_flow = port.causality == Causality::effort_in;
    const DomainUnits unit = units(port.domain);
    add(fmt::format(
        "{}.{} = {}", printable(system.port_label(term.port)), gives_flow ? "flow" : "effort",
        with_unit(there.output(local, at_it, part).value, gives_flow ? unit.flow : unit.effort)));
  }
  for (const AlgebraicTerm& term : own.equations) {
    const PartThere& there = impl_->there(parts, term.part, at_it);
    const Subsystem& physics = there.physics();
    const auto& descriptor = dynamic_cast<const DescriptorPortHamiltonian&>(physics);
    const DescriptorForm& form = descriptor.form();
    const SparseMatrix A = descriptor_rate(form.J, form.R, form.Q).transpose();
    const SparseMatrix row = A * SparseMatrix(descriptor.algebraic().equations().col(term.number));
    for (SparseMatrix::InnerIterator it(row, 0); it; ++it) {
      add_state(term.part, static_cast<int>(it.row()));
    }
    there.for_equation_sources(term.number,
                               [&](int input, double) { add_input(term.part, input); });
  }
  constexpr std::size_t kShown = 6;
  if (texts.size() == 1) return texts[0] + " against 0";
  if (texts.size() == 2) return texts[0] + " against " + texts[1];
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + texts[i];
  }
  return texts.size() > kShown ? text + fmt::format(", ... ({} in all)", texts.size()) : text;
}

int StateConstraints::part(int constraint) const {
  const FoundConstraint& own = impl_->found.constraints[at(constraint)];
  int first = -1;
  impl_->for_parts(own.ports, own.equations, [&](int part) {
    const bool has_states =
        impl_->system->parts()[at(part)].component->signature().state_size() > 0;
    if (first < 0 || (has_states &&
                      impl_->system->parts()[at(first)].component->signature().state_size() == 0)) {
      first = part;
    }
  });
  return first;
}

std::vector<int> StateConstraints::parts(int constraint) const {
  const FoundConstraint& own = impl_->found.constraints[at(constraint)];
  std::vector<int> out;
  impl_->for_parts(own.ports, own.equations, [&](int part) { out.push_back(part); });
  return out;
}

std::string StateConstraints::jumps(const Odds& odds) const {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(odds.jumps.size(), kShown); ++i) {
    const Jump& own = odds.jumps[i];
    const Part& part = impl_->system->parts()[at(own.part)];
    const StateVariable& state = part.component->signature().states[at(own.state)];
    const double after = std::abs(own.after) <= kRounding * std::abs(own.before) ? 0.0 : own.after;
    text += fmt::format("{}{}.{} {:.6g} -> {}", i == 0 ? "" : ", ", printable(part.name),
                        printable(state.name), own.before, with_unit(after, state.unit));
  }
  return odds.jumps.size() > kShown ? text + fmt::format(", ... ({} in all)", odds.jumps.size())
                                    : text;
}

}  // namespace portwave
