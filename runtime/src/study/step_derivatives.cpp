#include "portwave/runtime/study/step_derivatives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include <Eigen/SparseLU>
#include <fmt/format.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "study/part_step.hpp"

namespace portwave {

/// (I − P Bₐ), factorised; empty where there are no waves.
struct StepSolver {
  Eigen::SparseLU<SparseMatrix> lu;
};

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Triplets = std::vector<Eigen::Triplet<double>>;

/// Why it has no derivatives; empty where it has.
std::string derivative_defect(const Stepper& stepper) {
  if (!stepper.method().method.couples_by_waves()) {
    return "the method couples without waves: derivatives of steps need \"method\": \"wave\" or "
           "another with waves";
  }
  if (stepper.step_sizes() != nullptr) return "steps choose their size: give `step_s` alone";
  if (stepper.signal_graph() != nullptr) {
    return "it has blocks of a controller: make their inputs \"settable\" and set them";
  }
  const System& system = stepper.system();
  if (system.slice() != nullptr) return "it is a slice of a larger system";
  if (!system.cuts().empty()) {
    return fmt::format("part \"{}\" is cut into pieces: leave out \"cut\"",
                       system.cuts().front().name);
  }
  for (const Part& part : system.parts()) {
    const Capabilities own = part.component->capabilities();
    if (own.linear || (own.restorable && own.linearisable && own.repeatable)) continue;
    return fmt::format("part \"{}\" is a foreign program, whose steps cannot be differentiated",
                       part.name);
  }
  return {};
}

}  // namespace

VectorXd StepDerivatives::tangent(const VectorXd& state, const VectorXd& input,
                                  const VectorXd& parameter) const {
  VectorXd out = Xx * state + Xu * input + Xp * parameter;
  if (solver) {
    const VectorXd b = Bx * state + Bu * input + Bp * parameter;
    const VectorXd right = P * b;
    const VectorXd a = solver->lu.solve(right);
    out += Xa * a;
  }
  return out;
}

StepDerivatives::Cotangents StepDerivatives::adjoint(const VectorXd& next) const {
  Cotangents out{Xx.transpose() * next, Xu.transpose() * next, Xp.transpose() * next};
  if (!solver) return out;
  const VectorXd right = Xa.transpose() * next;
  // The transpose of a const LU is not offered.
  const VectorXd a =
      const_cast<Eigen::SparseLU<SparseMatrix>&>(solver->lu).transpose().solve(right);
  const VectorXd b = P.transpose() * a;
  out.state += Bx.transpose() * b;
  out.input += Bu.transpose() * b;
  out.parameter += Bp.transpose() * b;
  return out;
}

MatrixXd StepDerivatives::by_state() const {
  MatrixXd out(states(), states());
  for (int i = 0; i < states(); ++i) {
    out.col(i) = tangent(VectorXd::Unit(states(), i), VectorXd::Zero(inputs()),
                         VectorXd::Zero(parameters()));
  }
  return out;
}

MatrixXd StepDerivatives::by_input() const {
  MatrixXd out(states(), inputs());
  for (int i = 0; i < inputs(); ++i) {
    out.col(i) = tangent(VectorXd::Zero(states()), VectorXd::Unit(inputs(), i),
                         VectorXd::Zero(parameters()));
  }
  return out;
}

MatrixXd StepDerivatives::by_parameter() const {
  MatrixXd out(states(), parameters());
  for (int i = 0; i < parameters(); ++i) {
    out.col(i) = tangent(VectorXd::Zero(states()), VectorXd::Zero(inputs()),
                         VectorXd::Unit(parameters(), i));
  }
  return out;
}

class StepDifferentiator::Own {
 public:
  Own(Stepper& stepper, const Scenario& scenario, double step_s,
      std::span<const std::string> parameters)
      : stepper_(stepper),
        system_(staged_system(stepper.system(), stepper.waves()->integrators().plan)),
        step_s_(step_s),
        waves_(system_, step_s, impedances(), WaveDiscretisation::Grouping::none) {
    for (int i = 0; i < parts(); ++i) {
      const PartSlot& slot = waves_.slot(i);
      steps_.emplace_back(*waves_.batch(slot.batch).batch);
      first_.push_back(states_);
      states_ += steps_.back().n;
      typical_.push_back(stepper.system().parts()[at(i)].component->typical_state());
      affine_.emplace_back();
    }
    find_junctions();
    find_inputs();
    for (const std::string& path : parameters) add_parameter(scenario, path);
  }

  StepDerivatives step(StepReport* report) {
    const VectorXd x = present();
    const double time_s = stepper_.time_s();
    const std::int64_t impulses = stepper_.impulses().count;
    std::vector<double> settings;
    for (const System::SettableInput& input : stepper_.system().settable_inputs()) {
      settings.push_back(stepper_.input(input.part, input.input));
    }
    const StepReport made = stepper_.step();
    if (report != nullptr) *report = made;
    if (stepper_.impulses().count != impulses) {
      throw std::runtime_error(
          "an impulse made states jump in this step, which has no derivatives");
    }
    AlignedVector input(waves_.input_size(), 0.0);
    PhaseStatus failure;
    if (!waves_.sample_inputs(time_s, input.data(), failure, settings)) {
      throw std::runtime_error("inputs of this step cannot be sampled again");
    }
    z_.clear();
    for (int i = 0; i < parts(); ++i) {
      const PartStep& own = steps_[at(i)];
      VectorXd z(own.w + own.n + own.q);
      z.segment(own.w, own.n) = x.segment(first_[at(i)], own.n);
      const std::size_t begin = waves_.batch(waves_.slot(i).batch).input;
      for (int j = 0; j < own.q; ++j) z[own.w + own.n + j] = input[begin + at(j)];
      z_.push_back(std::move(z));
    }
    start_at_waves_of_step();
    return solve();
  }

 private:
  struct Parameter {
    int part;
    double step;
    /// At θ ± step, θ ± 2 step, θ ± 3 step: ahead, then back.
    std::vector<std::shared_ptr<const Component>> components;
    std::vector<std::unique_ptr<StepBatch>> batches;
    std::vector<PartStep> steps;
  };
  struct InputOf {
    int part, input, slot;
    double scale;
  };

  int parts() const { return static_cast<int>(system_.parts().size()); }
  const std::string& name(int part) const { return stepper_.system().parts()[at(part)].name; }

  VectorXd present() const {
    VectorXd out(states_);
    for (int i = 0; i < parts(); ++i) {
      const std::span<const double> own = stepper_.state(i);
      std::ranges::copy(own, out.data() + first_[at(i)]);
    }
    return out;
  }

  int stages() const { return stepper_.waves()->stages(); }
  int staged(int port, int stage) const {
    return stages() == 1 ? port : staged_port(stepper_.system(), stages(), port, stage);
  }
  std::vector<double> impedances() const {
    std::vector<double> out(system_.scalar_ports().size(), 1.0);
    for (int j = 0; j < static_cast<int>(stepper_.system().scalar_ports().size()); ++j) {
      for (int s = 0; s < stages(); ++s) {
        const double own = stepper_.waves()->impedance(j, s);
        if (own > 0.0 && std::isfinite(own)) out[at(staged(j, s))] = own;
      }
    }
    return out;
  }

  void find_junctions() {
    wave_begin_.assign(at(parts() + 1), 0);
    for (int i = 0; i < parts(); ++i) wave_begin_[at(i + 1)] = wave_begin_[at(i)] + steps_[at(i)].w;
    const int waves = wave_begin_.back();
    std::vector<int> number(at(waves_.wave_size()), -1);
    for (int i = 0; i < parts(); ++i) {
      const PartSlot& slot = waves_.slot(i);
      for (int j = 0; j < steps_[at(i)].w; ++j) {
        number[at(slot.wave + j * slot.stride)] = wave_begin_[at(i)] + j;
      }
    }
    Triplets entries;
    const Interconnection& all = waves_.interconnection();
    for (int k = 0; k < all.size(); ++k) {
      const MatrixXd block = all.block(k);
      const std::span<const int> offsets = all.waves(k);
      for (Eigen::Index r = 0; r < block.rows(); ++r) {
        for (Eigen::Index c = 0; c < block.cols(); ++c) {
          entries.emplace_back(number[at(offsets[static_cast<std::size_t>(r)])],
                               number[at(offsets[static_cast<std::size_t>(c)])], block(r, c));
        }
      }
    }
    P_.resize(waves, waves);
    P_.setFromTriplets(entries.begin(), entries.end());
  }

  void find_inputs() {
    for (int i = 0; i < parts(); ++i) {
      const Part& part = system_.parts()[at(i)];
      for (int j = 0; j < steps_[at(i)].q; ++j) {
        if (!part.input_is_driven[at(j)]) continue;
        const int slot = part.inputs[at(j)].slot();
        if (slot < 0) continue;
        const double scale = part.input_nodes.empty() ? 1.0 : part.input_nodes[at(j)].scale;
        settable_.push_back({i, j, slot, scale});
      }
    }
  }

  void add_parameter(const Scenario& scenario, const std::string& path) {
    const ParameterSlot slot = find_parameter(stepper_, scenario, path);
    const Part& given = stepper_.system().parts()[at(slot.part)];
    const double value = scenario.recipes->value(*given.component, slot.parameter);
    if (value == 0.0) {
      throw std::invalid_argument(fmt::format(
          "\"{}\" is 0, where derivatives by it are not taken: give it a value beside 0", path));
    }
    constexpr double kShare = 2e-3;
    Parameter out{slot.part, kShare * std::abs(value), {}, {}, {}};
    const StagePlan& plan = stepper_.waves()->integrators().plan;
    std::vector<double> gamma;
    const PartSlot& place = waves_.slot(slot.part);
    for (int j = 0; j < steps_[at(slot.part)].w; ++j) {
      gamma.push_back(waves_.impedance()[static_cast<std::size_t>(place.wave + j * place.stride)]);
    }
    for (const int k : {1, 2, 3, -1, -2, -3}) {
      std::shared_ptr<const Component> own =
          scenario.recipes->with(*given.component, slot.parameter, value + k * out.step);
      out.components.push_back(own);
      if (!plan.keeps(slot.part, given.substeps)) {
        own = staged_part(own, plan.rule_of(slot.part), given.substeps);
        out.components.push_back(own);
      }
      const Component* const only = own.get();
      out.batches.push_back(own->make_batch({&only, 1}));
      out.batches.back()->prepare(step_s_, gamma.data());
      out.steps.emplace_back(*out.batches.back());
    }
    parameters_.push_back(std::move(out));
  }

  /// e and f of the step's own impedances as incident waves of those here.
  void start_at_waves_of_step() {
    const WaveView& view = *stepper_.waves();
    std::vector<double> by_port(system_.scalar_ports().size(), 0.0);
    for (int j = 0; j < static_cast<int>(stepper_.system().scalar_ports().size()); ++j) {
      for (int s = 0; s < stages(); ++s) {
        const WavePair pair = view.waves_at(j, s);
        const int port = staged(j, s);
        const double theirs = view.impedance(j, s);
        const double own = waves_.impedance()[at(waves_.wave_of_port(port))];
        if (!(theirs > 0.0) || !std::isfinite(theirs)) continue;
        const double e = std::sqrt(0.5 * theirs) * (pair.incident + pair.outgoing);
        const double f = (pair.incident - pair.outgoing) / std::sqrt(2.0 * theirs);
        by_port[at(port)] = (e + own * f) / std::sqrt(2.0 * own);
      }
    }
    for (int i = 0; i < parts(); ++i) {
      const int first = system_.first_scalar_port(i);
      for (int j = 0; j < steps_[at(i)].w; ++j) z_[at(i)][j] = by_port[at(first + j)];
    }
  }

  /// (b, x⁺) of a part at its z. Errors: std::runtime_error.
  VectorXd value(int part) {
    auto out = steps_[at(part)](z_[at(part)]);
    if (!out) {
      throw std::runtime_error(
          fmt::format("the step of part \"{}\" could not be solved again", name(part)));
    }
    return *std::move(out);
  }

  /// ∂(b, x⁺)/∂z of a part.
  MatrixXd jacobian(int part, bool waves_only) {
    PartStep& own = steps_[at(part)];
    const bool is_affine = waves_.batch(waves_.slot(part).batch).affine != nullptr;
    const int size = own.w + own.n + own.q;
    if (is_affine) {
      if (affine_[at(part)].size() == 0 && own.w + own.n > 0) {
        MatrixXd D(own.w + own.n, size);
        const auto none = own(VectorXd::Zero(size));
        for (int c = 0; c < size; ++c) {
          const auto column = own(VectorXd::Unit(size, c));
          if (!none || !column)
            throw std::runtime_error(fmt::format("part \"{}\" has no step map", name(part)));
          D.col(c) = *column - *none;
        }
        affine_[at(part)] = D;
      }
      return affine_[at(part)];
    }
    const VectorXd base = value(part);
    const VectorXd weights = weights_of(part, base);
    MatrixXd D = MatrixXd::Zero(own.w + own.n, size);
    for (int c = 0; c < (waves_only ? own.w : size); ++c) {
      if (c >= own.w + own.n && !is_settable(part, c - own.w - own.n)) continue;
      VectorXd z = z_[at(part)];
      const double before = z[c];
      const auto F = [&](double s) {
        z[c] = before + s;
        return own(z);
      };
      const auto column = derivative(F, reach(part, c, base, weights, F), weights);
      if (!column) refuse_kink(part);
      D.col(c) = *column;
    }
    return D;
  }

  [[noreturn]] void refuse_kink(int part) const {
    throw std::runtime_error(
        fmt::format("the step of part \"{}\" has a kink at this state, as where one-sided parts "
                    "change over, or a deadline ended it before its iteration converged: it has no "
                    "derivatives",
                    name(part)));
  }

  bool is_settable(int part, int input) const {
    return std::ranges::any_of(
        settable_, [&](const InputOf& own) { return own.part == part && own.input == input; });
  }

  /// What makes entries of (b, x⁺) comparable.
  VectorXd weights_of(int part, const VectorXd& base) const {
    const PartStep& own = steps_[at(part)];
    VectorXd out(own.w + own.n);
    const double waves = std::max(z_[at(part)].head(own.w).norm(), base.head(own.w).norm());
    out.head(own.w).setConstant(1.0 / std::max(waves, scale_of_waves_));
    for (int i = 0; i < own.n; ++i) out[own.w + i] = 1.0 / typical_[at(part)][at(i)];
    return out;
  }

  /// A change of z[c] that moves the step by a hundredth of usual sizes.
  double reach(int part, int c, const VectorXd& base, const VectorXd& weights,
               const std::function<std::optional<VectorXd>(double)>& F) const {
    constexpr double kShare = 4e-3;
    const PartStep& own = steps_[at(part)];
    if (c >= own.w && c < own.w + own.n) return kShare * typical_[at(part)][at(c - own.w)];
    const double size = c < own.w ? 1.0 / weights[c] : std::max(std::abs(z_[at(part)][c]), 1.0);
    const double probe = 1e-6 * size;
    const auto moved = F(probe);
    if (!moved) return probe;
    const double rate = (*moved - base).cwiseProduct(weights).cwiseAbs().maxCoeff() / probe;
    return rate > 0.0 ? std::min(kShare / rate, 1e3 * size) : kShare * size;
  }

  SparseMatrix sparse(Eigen::Index rows, Eigen::Index columns, const Triplets& entries) const {
    SparseMatrix out(rows, columns);
    out.setFromTriplets(entries.begin(), entries.end());
    return out;
  }

  std::shared_ptr<StepSolver> factorise(const Triplets& entries) const {
    const int waves = wave_begin_.back();
    if (waves == 0) return nullptr;
    SparseMatrix M = sparse(waves, waves, entries);
    SparseMatrix one(waves, waves);
    one.setIdentity();
    M = one - SparseMatrix(P_ * M);
    auto out = std::make_shared<StepSolver>();
    out->lu.compute(M);
    if (out->lu.info() != Eigen::Success) {
      throw std::runtime_error(
          "efforts and flows of this step are not determined: it has no derivatives");
    }
    return out;
  }

  static void append(const MatrixXd& from, int row, int column, Triplets& to) {
    for (Eigen::Index c = 0; c < from.cols(); ++c) {
      for (Eigen::Index r = 0; r < from.rows(); ++r) {
        if (from(r, c) == 0.0) continue;
        to.emplace_back(row + static_cast<int>(r), column + static_cast<int>(c), from(r, c));
      }
    }
  }

  /// Newton's method for a = P b, then the derivatives there.
  StepDerivatives solve() {
    const int waves = wave_begin_.back();
    scale_of_waves_ = 0.0;
    for (int i = 0; i < parts(); ++i) {
      scale_of_waves_ = std::max(scale_of_waves_, z_[at(i)].head(steps_[at(i)].w).norm());
    }
    if (scale_of_waves_ == 0.0) scale_of_waves_ = 1e-3;
    std::shared_ptr<StepSolver> lu;
    constexpr double kSmall = 1e-13;
    constexpr int kMost = 30;
    for (int k = 0; waves > 0 && k < kMost; ++k) {
      if (k % 4 == 0) {
        Triplets entries;
        for (int i = 0; i < parts(); ++i) {
          const int w = steps_[at(i)].w;
          if (w == 0) continue;
          append(jacobian(i, true).topLeftCorner(w, w), wave_begin_[at(i)], wave_begin_[at(i)],
                 entries);
        }
        lu = factorise(entries);
      }
      VectorXd a(waves), b(waves);
      for (int i = 0; i < parts(); ++i) {
        const int w = steps_[at(i)].w;
        a.segment(wave_begin_[at(i)], w) = z_[at(i)].head(w);
        b.segment(wave_begin_[at(i)], w) = value(i).head(w);
      }
      const VectorXd gap = P_ * b - a;
      const VectorXd change = lu->lu.solve(gap);
      for (int i = 0; i < parts(); ++i) {
        z_[at(i)].head(steps_[at(i)].w) += change.segment(wave_begin_[at(i)], steps_[at(i)].w);
      }
      if (change.norm() <= kSmall * std::max(a.norm(), scale_of_waves_)) break;
    }
    compare();
    return differentiated();
  }

  /// The step that was made must be the one that is differentiated.
  void compare() {
    constexpr double kSame = 1e-6;
    double worst = 0.0;
    int part = -1, state = -1;
    for (int i = 0; i < parts(); ++i) {
      const VectorXd own = value(i);
      const std::span<const double> made = stepper_.state(i);
      for (int k = 0; k < steps_[at(i)].n; ++k) {
        const double x = own[steps_[at(i)].w + k];
        const double size =
            std::max({std::abs(x), std::abs(made[at(k)]), 1e-3 * typical_[at(i)][at(k)]});
        const double off = std::abs(x - made[at(k)]) / size;
        if (!(off <= worst)) worst = off, part = i, state = k;
      }
    }
    if (worst <= kSame) return;
    // Parts that `auto` damps in single steps, or steps that it cuts.
    const std::string integrator = stepper_.waves()->integrator();
    const std::string why =
        integrator.empty()
            ? ""
            : fmt::format(", or the integrator has damped parts in this step alone, or cut it ({})",
                          integrator);
    throw std::runtime_error(fmt::format(
        "the step is not that of the coupled equations: state \"{}\" of part \"{}\" differs by "
        "{:.1e} of its size. Its iteration did not converge, or the guard acted, or a one-sided "
        "part "
        "changed over within the step{}. Remedies: \"integrator\": \"gauss\" or \"damped\" for all "
        "steps (/method), a smaller /method/tolerance, inputs that jump between steps",
        system_.parts()[at(part)].component->signature().states[at(state)].name, name(part), worst,
        why));
  }

  StepDerivatives differentiated() {
    const int waves = wave_begin_.back();
    const auto inputs = static_cast<Eigen::Index>(stepper_.system().settable_inputs().size());
    Triplets Xx, Xu, Xp, Xa, Bx, Bu, Bp, Ba;
    for (int i = 0; i < parts(); ++i) {
      const PartStep& own = steps_[at(i)];
      const MatrixXd D = jacobian(i, false);
      const int row = wave_begin_[at(i)], first = first_[at(i)];
      append(D.topLeftCorner(own.w, own.w), row, row, Ba);
      append(D.block(0, own.w, own.w, own.n), row, first, Bx);
      append(D.bottomLeftCorner(own.n, own.w), first, row, Xa);
      append(D.block(own.w, own.w, own.n, own.n), first, first, Xx);
      for (const InputOf& input : settable_) {
        if (input.part != i) continue;
        const VectorXd column = input.scale * D.col(own.w + own.n + input.input);
        append(column.head(own.w), row, input.slot, Bu);
        append(column.tail(own.n), first, input.slot, Xu);
      }
    }
    for (int p = 0; p < static_cast<int>(parameters_.size()); ++p) {
      Parameter& own = parameters_[at(p)];
      const VectorXd weights = weights_of(own.part, value(own.part));
      std::array<VectorXd, 3> d;
      for (int k = 0; k < 3; ++k) {
        const auto ahead = own.steps[at(k)](z_[at(own.part)]),
                   back = own.steps[at(k + 3)](z_[at(own.part)]);
        if (!ahead || !back) refuse_kink(own.part);
        d[at(k)] = (*ahead - *back) / (2.0 * (k + 1) * own.step);
      }
      const VectorXd fourth = (4.0 * d[0] - d[1]) / 3.0;
      const VectorXd sixth = 1.5 * d[0] - 0.6 * d[1] + 0.1 * d[2];
      constexpr double kPoor = 1e-6;
      const double rounding =
          1e-15 / own.step * (1.0 + z_[at(own.part)].norm() * weights.maxCoeff());
      if ((sixth - fourth).cwiseProduct(weights).norm() >
          kPoor * sixth.cwiseProduct(weights).norm() + rounding) {
        refuse_kink(own.part);
      }
      append(sixth.head(steps_[at(own.part)].w), wave_begin_[at(own.part)], p, Bp);
      append(sixth.tail(steps_[at(own.part)].n), first_[at(own.part)], p, Xp);
    }
    const auto count = static_cast<Eigen::Index>(parameters_.size());
    StepDerivatives out;
    out.solver = factorise(Ba);
    out.Xx = sparse(states_, states_, Xx);
    out.Xu = sparse(states_, inputs, Xu);
    out.Xp = sparse(states_, count, Xp);
    out.Xa = sparse(states_, waves, Xa);
    out.Bx = sparse(waves, states_, Bx);
    out.Bu = sparse(waves, inputs, Bu);
    out.Bp = sparse(waves, count, Bp);
    out.P = P_;
    return out;
  }

  Stepper& stepper_;
  const System system_;  // with the stages of the steps
  double step_s_;
  WaveDiscretisation waves_;  // each part by itself
  std::vector<PartStep> steps_;
  std::vector<int> first_;       // by part: its first state
  std::vector<int> wave_begin_;  // by part: its first wave
  int states_ = 0;
  std::vector<std::vector<double>> typical_;
  std::vector<MatrixXd> affine_;  // constant derivatives; empty: not known yet
  std::vector<InputOf> settable_;
  std::vector<Parameter> parameters_;
  SparseMatrix P_;
  std::vector<VectorXd> z_;  // by part: (a, x, ū)
  double scale_of_waves_ = 0.0;
};

StepDifferentiator::StepDifferentiator(Stepper& stepper, const Scenario& scenario, double step_s,
                                       std::span<const std::string> parameters) {
  const std::string defect = derivative_defect(stepper);
  if (!defect.empty())
    throw std::invalid_argument("steps of this system have no derivatives: " + defect);
  own_ = std::make_unique<Own>(stepper, scenario, step_s, parameters);
}

StepDifferentiator::~StepDifferentiator() = default;

StepDerivatives StepDifferentiator::step(StepReport* report) { return own_->step(report); }

}  // namespace portwave
