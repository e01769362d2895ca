#include "expressions/expression_part.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/workspace.hpp"
#include "expressions/expression_batch.hpp"
#include "expressions/turning_tape.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

using Node = ExpressionGraph::Node;
using Entries = ExpressionPhysics::Entries;

/// What a part evaluates. Its structure has the places of all entries, also where they are 0.
struct ExpressionPart::Programs {
  Programs(ExpressionPhysics physics, int ports, int externals);

  void set_structure(const double* x, Structure& out) const;
  Structure structure_at(const double* x) const;
  /// Calls put(row, column, value) for the entries of the lower half, and those of the upper one.
  template <class Put>
  void for_each_curvature(const double* x, Put put) const;

  /// What H adds up, the sum of the magnitudes of its terms; 0 of a polynomial.
  double terms_at(const double* x) const;

  ExpressionTape energy, terms, slopes, curvature, entries;
  std::vector<std::pair<int, int>> places;  // of the results of `curvature`, row ≥ column
  int degree = 0;                           // of a polynomial H; 0: it is none
  bool is_constant = true, is_smooth = true;
  std::vector<bool> depends_on;  // the structure, on each state
  SplitEnergy split;
  TurningTape turning;
  Structure pattern;  // with zeros as values
};

namespace {
namespace expression_part {

std::array<SparseMatrix*, 6> matrices_of(Structure& s) {
  return {&s.J, &s.R, &s.G, &s.P, &s.S, &s.N};
}
std::array<const SparseMatrix*, 6> matrices_of(const Structure& s) {
  return {&s.J, &s.R, &s.G, &s.P, &s.S, &s.N};
}

void fill(const Entries& entries, SparseMatrix& matrix) {
  std::vector<Eigen::Triplet<double>> places;
  places.reserve(entries.size());
  for (const auto& entry : entries) places.emplace_back(entry.row, entry.column, 0.0);
  matrix.setFromTriplets(places.begin(), places.end());
  matrix.makeCompressed();
}

bool has_pattern(const Structure& a, const Structure& b) {
  const auto own = matrices_of(a), other = matrices_of(b);
  for (std::size_t m = 0; m < own.size(); ++m) {
    if (!own[m]->isCompressed() || own[m]->rows() != other[m]->rows() ||
        own[m]->cols() != other[m]->cols() || own[m]->nonZeros() != other[m]->nonZeros()) {
      return false;
    }
  }
  return true;
}

/// The part's own keys, in place of those of the class that it is built on. `is_constant`: its matrices are.
Issues in_own_words(const Issues& issues, bool is_constant) {
  constexpr std::string_view kStructure = "/structure_at";
  constexpr std::string_view kNotFinite = "is not finite";
  Issues out;
  for (const Issue& issue : issues) {
    std::string where = issue.where;
    if (where.starts_with("/hamiltonian")) where = "/energy";
    std::string what = issue.what;
    if (where.starts_with(kStructure)) {
      where = where.substr(kStructure.size());
    } else if (!is_constant && what.ends_with(kNotFinite)) {
      what += " at the default state: set \"default_state\" to states where it is";
    }
    out.push_back({where, what});
  }
  return out;
}

/// H = ½xᵀQx exactly: a polynomial of degree 2 without terms of lower degree. Q if it is that, and ≥ 0.
std::optional<SparseMatrix> quadratic_form(const ExpressionTape& energy,
                                           const ExpressionTape& slopes, int degree,
                                           const Eigen::MatrixXd& Q) {
  const auto n = static_cast<std::size_t>(slopes.variables());
  std::vector<double> zero(n, 0.0), g(n);
  double H = 0.0;
  energy(zero.data(), &H);
  slopes(zero.data(), g.data());
  const auto is_zero = [](double value) { return value == 0.0; };
  const bool has_degree = degree == 2 || n == 0;
  if (!has_degree || H != 0.0 || !std::ranges::all_of(g, is_zero)) return std::nullopt;
  SparseMatrix sparse = Q.sparseView();
  if (!validate_storage(sparse, static_cast<int>(n)).empty()) return std::nullopt;
  return sparse;
}

/// States to try: the start, and some within half the size of it.
std::vector<std::vector<double>> places_near(const std::vector<double>& start,
                                             const std::vector<double>& size) {
  constexpr int kMore = 4;
  std::vector<std::vector<double>> places{start};
  std::uint64_t random = 20260316;
  for (int k = 0; k < kMore; ++k) {
    std::vector<double> x = start;
    for (std::size_t i = 0; i < x.size(); ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      x[i] += size[i] * (static_cast<double>(random >> 11) * 0x1.0p-53 - 0.5);
    }
    places.push_back(std::move(x));
  }
  return places;
}

/// A matrix that must be symmetric, or skew, and what is seen of its entries.
class SymmetryCheck {
 public:
  SymmetryCheck(std::string_view name, const Entries& entries, bool is_skew)
      : name_(name), is_skew_(is_skew) {
    for (const auto& entry : entries) values_[{entry.row, entry.column}] = entry.value;
  }

  /// The first defect of each pair.
  Issues defects(ExpressionGraph graph, const std::vector<StateVariable>& states,
                 const std::vector<std::vector<double>>& places) const {
    std::vector<std::pair<int, int>> pairs;
    std::vector<Node> results;
    const auto value = [&](int i, int j) {
      const auto found = values_.find({i, j});
      return found == values_.end() ? graph.number(0.0) : found->second;
    };
    for (const auto& [place, node] : values_) {
      const auto [i, j] = place;
      const bool is_second = i > j && values_.contains({j, i});
      const Node own = value(i, j), other = value(j, i);
      const bool has_numbers = graph.number_of(own) && graph.number_of(other);
      if (is_second || has_numbers) continue;
      if (graph.is_zero(is_skew_ ? graph.sum(own, other) : graph.difference(own, other))) continue;
      pairs.push_back(place);
      results.insert(results.end(), {own, other});
    }
    const ExpressionTape tape(std::move(graph), results);
    std::vector<double> values(results.size());
    std::vector<bool> is_told(pairs.size(), false);
    Issues issues;
    for (const std::vector<double>& x : places) {
      tape(x.data(), values.data());
      for (std::size_t k = 0; k < pairs.size(); ++k) {
        const double own = values[2 * k], other = values[2 * k + 1];
        const double defect = std::abs(is_skew_ ? own + other : own - other);
        if (is_told[k] || !(defect > 1e-12 * (std::abs(own) + std::abs(other)))) continue;
        is_told[k] = true;
        issues.push_back(issue(pairs[k], own, other, states, x));
      }
    }
    return issues;
  }

 private:
  Issue issue(std::pair<int, int> place, double own, double other,
              const std::vector<StateVariable>& states, const std::vector<double>& x) const {
    const auto [i, j] = place;
    std::string where_it_is;
    for (std::size_t k = 0; k < std::min<std::size_t>(x.size(), 8); ++k) {
      where_it_is += fmt::format("{}{} = {:.3g}", k == 0 ? "" : ", ", states[k].name, x[k]);
    }
    std::string rule =
        i == j
            ? fmt::format("must be 0 on the diagonal; at {} it is {:.6g}", where_it_is, own)
            : fmt::format("must be {} ({},{}); at {} they are {:.6g} and {:.6g}",
                          is_skew_ ? "the opposite of" : "equal to", j, i, where_it_is, own, other);
    return {fmt::format("/{}/{}/{}", name_, i, j), std::move(rule)};
  }

  std::string_view name_;
  bool is_skew_;
  std::map<std::pair<int, int>, Node> values_;
};

/// Equal where ports and matrices are.
std::string key_of(const Signature& signature, const Structure& structure) {
  std::string key = fmt::format("port_hamiltonian/{}", signature.input_size());
  for (const Port& port : signature.ports) {
    key += fmt::format("/{}{}", port.causality == Causality::effort_in ? 'e' : 'f', port.dimension);
  }
  for (const SparseMatrix* M : matrices_of(structure)) {
    key += "|";
    for (int j = 0; j < M->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*M, j); it; ++it) {
        key += fmt::format(" {} {} {:a}", it.row(), j, it.value());
      }
    }
  }
  return key + "|";
}

Issues check_laws(const Structure& structure, int ports) {
  for (const SparseMatrix* D : {&structure.S, &structure.N}) {
    for (int j = 0; j < ports; ++j) {
      for (SparseMatrix::InnerIterator it(*D, j); it; ++it) {
        if (it.row() == j || it.row() >= ports) continue;
        return {{"/characteristics",
                 "where ports have a characteristic, S + N must be diagonal between all ports"}};
      }
    }
  }
  return {};
}

}  // namespace expression_part
}  // namespace

ExpressionPart::Programs::Programs(ExpressionPhysics physics, int ports, int externals)
    : split(physics.graph, physics.energy), turning(physics, ports, externals) {
  ExpressionGraph& graph = physics.graph;
  const int n = graph.variables();
  const std::vector<Node> gradient = graph.gradient(physics.energy);
  const std::vector<Node> hessian = graph.hessian(physics.energy);
  std::vector<Node> curvatures;
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      const Node node = hessian[static_cast<std::size_t>(j * n + i)];
      if (graph.is_zero(node)) continue;
      places.emplace_back(i, j);
      curvatures.push_back(node);
    }
  }
  degree = graph.degree(physics.energy).value_or(0);
  is_smooth = !graph.can_change_over(physics.energy);

  std::vector<Node> all;
  depends_on.assign(static_cast<std::size_t>(n), false);
  pattern = Structure::zero(n, ports + externals);
  const auto to = expression_part::matrices_of(pattern);
  const auto lists = physics.matrices();
  for (std::size_t m = 0; m < lists.size(); ++m) {
    // Column by column, as a compressed matrix holds them.
    std::ranges::sort(*lists[m], [](const auto& a, const auto& b) {
      return std::pair(a.column, a.row) < std::pair(b.column, b.row);
    });
    expression_part::fill(*lists[m], *to[m]);
    for (const auto& entry : *lists[m]) {
      all.push_back(entry.value);
      if (graph.number_of(entry.value)) continue;
      is_constant = false;
      for (int k = 0; k < n; ++k) {
        if (graph.depends_on(entry.value, k)) depends_on[static_cast<std::size_t>(k)] = true;
      }
    }
  }
  const std::vector<Node> value = {physics.energy};
  energy = ExpressionTape(graph, value);
  if (degree == 0) {
    const std::vector<Node> size = {graph.magnitude(physics.energy)};
    terms = ExpressionTape(graph, size);
  }
  slopes = ExpressionTape(graph, gradient);
  curvature = ExpressionTape(graph, curvatures);
  entries = ExpressionTape(graph, all);
}

double ExpressionPart::Programs::terms_at(const double* x) const {
  double out = 0.0;
  if (terms.results() > 0) terms(x, &out);
  return std::isfinite(out) ? std::abs(out) : 0.0;
}

void ExpressionPart::Programs::set_structure(const double* x, Structure& out) const {
  if (!expression_part::has_pattern(out, pattern)) out = pattern;
  detail::Workspace values(static_cast<std::size_t>(entries.results()));
  entries(x, values.data());
  const double* from = values.data();
  for (SparseMatrix* M : expression_part::matrices_of(out)) {
    std::copy(from, from + M->nonZeros(), M->valuePtr());
    from += M->nonZeros();
  }
}

Structure ExpressionPart::Programs::structure_at(const double* x) const {
  Structure out = pattern;
  set_structure(x, out);
  return out;
}

template <class Put>
void ExpressionPart::Programs::for_each_curvature(const double* x, Put put) const {
  detail::Workspace values(places.size());
  curvature(x, values.data());
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto [row, column] = places[k];
    put(row, column, values.data()[k]);
    if (row != column) put(column, row, values.data()[k]);
  }
}

Issues check_symmetry(const ExpressionPhysics& physics, const std::vector<StateVariable>& states,
                      const std::vector<double>& start, const std::vector<double>& size) {
  using expression_part::SymmetryCheck;
  const auto places = expression_part::places_near(start, size);
  Issues issues;
  for (const SymmetryCheck& check :
       {SymmetryCheck("J", physics.J, true), SymmetryCheck("R", physics.R, false),
        SymmetryCheck("S", physics.S, false), SymmetryCheck("N", physics.N, true)}) {
    append(issues, "", check.defects(physics.graph, states, places));
  }
  return issues;
}

std::unique_ptr<Subsystem> ExpressionPart::make(Signature signature, ExpressionPhysics physics,
                                                std::vector<ExpressionLaw> laws, Options options) {
  const int n = signature.state_size(), p = signature.wave_size();
  const auto programs =
      std::make_shared<const Programs>(std::move(physics), p, signature.input_size());
  std::vector<double> start = options.default_state;
  start.resize(static_cast<std::size_t>(n), 0.0);
  Structure structure = programs->structure_at(start.data());
  const bool has_laws = std::ranges::any_of(laws, [](const auto& law) { return !law.is_zero(); });
  if (has_laws) throw_if_any(expression_part::check_laws(programs->pattern, p));
  try {
    const bool is_own_mean = options.discrete_gradient != DiscreteGradient::itoh_abe;
    if (!has_laws && programs->is_constant && is_own_mean) {
      Eigen::MatrixXd Q = Eigen::MatrixXd::Zero(n, n);
      programs->for_each_curvature(start.data(),
                                   [&Q](int i, int j, double value) { Q(i, j) = value; });
      if (const auto form = expression_part::quadratic_form(programs->energy, programs->slopes,
                                                            programs->degree, Q)) {
        LinearPortHamiltonian::Options linear;
        linear.allow_active = options.allow_active;
        linear.default_state = options.default_state;
        return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                       *form, std::move(linear));
      }
    }
    const int degree = programs->degree;
    const bool is_exact = degree > 0 && degree <= kMostPolynomialDegree;
    options.polynomial_degree = is_exact ? degree : 0;
    options.check_derivatives = false;
    if (!programs->is_constant) {
      options.structure_at = [programs](const double* x, Structure& out) {
        programs->set_structure(x, out);
      };
    }
    return std::unique_ptr<Subsystem>(new ExpressionPart(
        std::move(signature), std::move(structure), programs, std::move(laws), std::move(options)));
  } catch (const ConfigError& error) {
    throw ConfigError(expression_part::in_own_words(error.issues(), programs->is_constant));
  }
}

ExpressionPart::ExpressionPart(Signature signature, Structure structure,
                               const std::shared_ptr<const Programs>& programs,
                               std::vector<ExpressionLaw> laws, Options options)
    : NonlinearPortHamiltonian(
          std::move(signature), std::move(structure),
          Hamiltonian{
              .value =
                  [programs](const double* x) {
                    double H = 0.0;
                    programs->energy(x, &H);
                    return H;
                  },
              .gradient = [programs](const double* x, double* g) { programs->slopes(x, g); },
              .hessian =
                  [programs](const double* x, double* hessian) {
                    const int n = programs->slopes.variables();
                    std::fill(hessian, hessian + static_cast<std::ptrdiff_t>(n) * n, 0.0);
                    programs->for_each_curvature(
                        x, [=](int i, int j, double value) { hessian[j * n + i] = value; });
                  }},
          std::move(options)),
      programs_(programs),
      laws_(std::move(laws)),
      has_laws_(std::ranges::any_of(laws_, [](const auto& law) { return !law.is_zero(); })),
      terms_J_(std::max(NonlinearPortHamiltonian::storage_terms(),
                        programs->terms_at(default_state().data()))),
      split_(programs->split) {
  if (!is_mean() || has_laws_ || !programs_->is_constant || !has_lanes(split_, this->signature()))
    return;
  key_ = expression_part::key_of(this->signature(), this->structure()) + programs_->energy.bytes() +
         fmt::format("/{}", terms_J_);
}

std::string ExpressionPart::batch_key() const { return key_; }

std::unique_ptr<StepBatch> ExpressionPart::make_batch(
    std::span<const Component* const> parts) const {
  if (key_.empty()) return NonlinearPortHamiltonian::make_batch(parts);
  std::vector<ExpressionLane> lanes;
  for (const Component* part : parts) {
    const auto& own = dynamic_cast<const ExpressionPart&>(*part);
    lanes.push_back({&own, &own.split_});
  }
  return make_expression_batch(std::move(lanes), {.max_steps = options().max_newton_steps});
}

/// y and δ of a step, and V(y) where it is asked for.
struct ExpressionPart::BentStep {
  BentStep(const SplitEnergy& energy, const double* x, const double* x_next, double* room)
      : y(room), delta(room + energy.bent().size()) {
    for (std::size_t k = 0; k < energy.bent().size(); ++k) {
      const int i = energy.bent()[k];
      y[k] = x[i];
      delta[k] = x_next[i] - x[i];
    }
  }

  double* y;
  double* delta;
};

/// V̄ with its derivatives and noise.
template <class Take>
void ExpressionPart::with_mean(const double* x, const double* x_next, Take take) const {
  const std::size_t r = split_.bent().size();
  const std::size_t scratch = split_.scratch_size(1);
  detail::Workspace room(4 * r + r * r + scratch);
  const BentStep step(split_, x, x_next, room.data());
  double* const mean = room.data() + 2 * r;
  double* const noise = mean + r;
  double* const jacobian = noise + r;
  double* const rest = jacobian + r * r;
  double V = 0.0;
  if (!split_.is_exact()) split_.value<1>(step.y, &V, rest);
  split_.mean<1>(step.y, step.delta, &V, mean, jacobian, noise, rest);
  take(mean, jacobian, noise);
}

void ExpressionPart::discrete_gradient(const double* x, const double* x_next, double* g) const {
  if (!is_mean()) return NonlinearPortHamiltonian::discrete_gradient(x, x_next, g);
  const auto n = static_cast<Eigen::Index>(signature().state_size());
  const Eigen::Map<const Eigen::VectorXd> from(x, n), to(x_next, n);
  Eigen::Map<Eigen::VectorXd> out(g, n);
  out = split_.c();
  for (Eigen::Index j = 0; j < n; ++j) out += split_.Q().col(j) * (0.5 * (from[j] + to[j]));
  with_mean(x, x_next,
            [&](const double* mean, const double* /*jacobian*/, const double* /*noise*/) {
              for (std::size_t k = 0; k < split_.bent().size(); ++k)
                out[split_.bent()[k]] += mean[k];
            });
}

/// Zeros of ∂V̄/∂y⁺ are kept, so that the pattern does not depend on the state.
void ExpressionPart::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  if (!is_mean()) {
    return NonlinearPortHamiltonian::discrete_gradient_jacobian(x, x_next, jacobian);
  }
  const Eigen::MatrixXd& Q = split_.Q();
  for (int j = 0; j < static_cast<int>(Q.cols()); ++j) {
    for (int i = 0; i < static_cast<int>(Q.rows()); ++i) {
      if (Q(i, j) != 0.0) jacobian.emplace_back(i, j, 0.5 * Q(i, j));
    }
  }
  with_mean(x, x_next, [&](const double* /*mean*/, const double* slopes, const double* /*noise*/) {
    const std::vector<int>& bent = split_.bent();
    for (const int column : bent) {
      for (const int row : bent) jacobian.emplace_back(row, column, *slopes++);
    }
  });
}

void ExpressionPart::add_gradient_terms(const double* x, const double* x_next, const double* g,
                                        double* terms) const {
  if (!is_mean()) return NonlinearPortHamiltonian::add_gradient_terms(x, x_next, g, terms);
  with_mean(x, x_next,
            [&](const double* /*mean*/, const double* /*jacobian*/, const double* noise) {
              for (std::size_t k = 0; k < split_.bent().size(); ++k)
                terms[split_.bent()[k]] += noise[k];
            });
}

bool ExpressionPart::hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const {
  programs_->for_each_curvature(
      x, [&hessian](int i, int j, double value) { hessian.emplace_back(i, j, value); });
  return true;
}

bool ExpressionPart::is_smooth() const { return programs_->is_smooth; }

bool ExpressionPart::structure_depends_on(int state) const {
  return programs_->depends_on[static_cast<std::size_t>(state)];
}

bool ExpressionPart::has_structure_slopes() const { return programs_->turning.is_known; }

void ExpressionPart::structure_slopes(const double* x, const double* g, const double* u,
                                      double* slopes) const {
  const TurningTape& turning = programs_->turning;
  const int n = signature().state_size(), inputs = structure().inputs();
  const auto room = static_cast<std::size_t>(2 * n + inputs);
  detail::Workspace values(room + turning.places.size());
  double* const arguments = values.data();
  double* const results = arguments + room;
  std::copy(x, x + n, arguments);
  std::copy(g, g + n, arguments + n);
  std::copy(u, u + inputs, arguments + 2 * n);
  turning.tape(arguments, results);
  std::fill(slopes, slopes + static_cast<std::ptrdiff_t>(n) * n, 0.0);
  for (std::size_t k = 0; k < turning.places.size(); ++k) {
    const auto [row, column] = turning.places[k];
    slopes[static_cast<std::ptrdiff_t>(column) * n + row] = results[k];
  }
}

ExpressionLaw::ExpressionLaw(const std::string& text, const std::vector<std::string>& names,
                             const std::vector<double>& constants, double reach)
    : reach_(reach) {
  std::vector<std::string> all = {"u"};
  all.insert(all.end(), names.begin(), names.end());
  ExpressionGraph graph(1);
  std::vector<Node> values = {graph.variable(0)};
  for (const double constant : constants) values.push_back(graph.number(constant));
  const Node law = graph.add(Expression::parse(text, all), values);
  is_zero_ = graph.is_zero(law);
  const std::vector<Node> results = {law, graph.gradient(law)[0]};
  tape_ = ExpressionTape(graph, results);
  check(text);
}

PortLawValue ExpressionLaw::within(double u) const {
  double values[2];
  tape_(&u, values);
  return {values[0], values[1]};
}

PortLawValue ExpressionLaw::operator()(double u) const {
  if (std::abs(u) <= reach_) return within(u);
  const double end = std::copysign(reach_, u);
  PortLawValue law = within(end);
  law.value += law.slope * (u - end);
  return law;
}

/// At sizes from 1e-12 of the reach on, and at places that lie evenly.
void ExpressionLaw::check(const std::string& text) const {
  if (is_zero_) return;
  constexpr int kPlaces = 400;
  std::vector<double> places;
  for (int k = 0; k <= kPlaces; ++k) {
    places.push_back(reach_ * std::pow(10.0, -12.0 * k / kPlaces));
    places.push_back(reach_ * k / kPlaces);
  }
  std::ranges::sort(places);
  const auto fail = [&](const std::string& what) {
    throw ConfigError("", fmt::format("the characteristic {} {}", in_quotes(text), what));
  };
  if (within(0.0).value != 0.0) {
    fail(fmt::format("must be 0 at u = 0, got {}", shown_number(within(0.0).value)));
  }
  for (const double side : {-1.0, 1.0}) {
    double last = 0.0;
    for (const double place : places) {
      const PortLawValue law = within(side * place);
      const double value = side * law.value;
      if (!std::isfinite(value) || !std::isfinite(law.slope)) {
        fail(fmt::format("is not finite at u = {}: give a lesser \"characteristic_range\"",
                         side * place));
      }
      if (value < last - 1e-12 * std::abs(last) || law.slope < 0.0) {
        fail(fmt::format("must not decrease, so that it never creates energy; it does at u = {}",
                         side * place));
      }
      last = value;
    }
  }
}

}  // namespace portwave
