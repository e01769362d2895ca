#include "portwave/coupling/network/dynamic_iteration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "network/linear_solver.hpp"
#include "portwave/coupling/network/kick_drift.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/network/splitting.hpp"
#include "portwave/coupling/network/taylor.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Refuses a μ with which the weighted norm may rise: such an iteration may overflow before it
/// converges. `study iteration` follows it all the same.
void check_monotone(double step_s, const DynamicParameters& used) {
  if (used.kind != IterationKind::lions_mercier || used.bounds.monotone) return;
  const bool midpoint = used.integrator == Integrator::midpoint;
  const double decay = step_s * used.omega;
  const double most = midpoint ? std::tanh(decay) : -std::expm1(-decay);
  const double own = step_s * used.mu;
  std::string what = fmt::format(
      "the iteration may grow without bound: step_s * mu = {:.6g} must be at most {} = {:.6g} "
      "({}). Take mu <= {:.6g}",
      own, midpoint ? "tanh(step_s * omega)" : "1 - exp(-step_s * omega)", most,
      to_string(used.integrator), most / step_s);
  if (own < 1.0) {
    what += fmt::format(", or omega >= {:.6g}",
                        (midpoint ? std::atanh(own) : -std::log1p(-own)) / step_s);
  } else {
    what += fmt::format("; with this mu no omega would do unless steps are shorter than {:.6g} s",
                        1.0 / used.mu);
  }
  throw ConfigError("/method/mu", what + "; \"auto\" for both chooses such values");
}

}  // namespace

struct DynamicIterationMethod::Impl {
  Impl(const CondensedSystem& s, double h, const DynamicIteration& given)
      : system(s), step_s(h), method(given), iteration(s, h, given) {
    check_monotone(h, iteration.parameters());
    const Eigen::VectorXd start = s.initial_state();
    x.assign(start.data(), start.data() + start.size());
    previous = x;
    states.assign(static_cast<std::size_t>(iteration.window_steps()) * x.size(), 0.0);
    energies.resize(static_cast<std::size_t>(iteration.window_steps()));
    history.reserve(static_cast<std::size_t>(given.iterations));
    for (const CondensedBlock& block : s.blocks()) {
      energy.emplace_back(0.5 * SparseMatrix(SparseMatrix(block.Q.transpose()) * block.E));
    }
    for (int i = 0; i < static_cast<int>(energy.size()); ++i) stored += storage(i);
    served = iteration.window_steps();
  }

  /// Without the vector that a product would take memory for: steps ask for it.
  double storage(int block) const {
    const auto i = static_cast<std::size_t>(block);
    const double* const own = x.data() + system.blocks()[i].first;
    double sum = 0.0;
    for (Eigen::Index j = 0; j < energy[i].outerSize(); ++j) {
      double column = 0.0;
      for (SparseMatrix::InnerIterator it(energy[i], j); it; ++it) {
        column += it.value() * own[it.row()];
      }
      sum += own[j] * column;
    }
    return sum;
  }

  /// Iterates the window that begins now.
  void run_window(const ForEach& each, const NetworkMethod& method_of_step) {
    iteration.begin(clock.time_s(), x);
    history.clear();
    converged = stalled = false;
    residual = 0.0;
    double usual = 0.0;  // what divergence is measured by
    for (int k = 0; k < method.iterations; ++k) {
      if (method_of_step.is_interrupted()) fail(k, StepFault::not_converged, "interrupted");
      const WaveformChange change = iteration.iterate(each);
      if (!change.finite)
        fail(k, StepFault::not_finite, "the waveforms overflow: the iteration diverges");
      note(change);
      if (k == 0) usual = std::max(change.size, change.change);
      if (usual > 0.0 && change.change > method.divergence_limit * usual) {
        fail(k, StepFault::not_converged,
             fmt::format("the iteration diverges: waveforms change by {:.2g} times their size at "
                         "the start, which leaves nothing of them in double precision; {}",
                         change.change / usual,
                         method.kind == IterationKind::lions_mercier
                             ? "leave lambda, mu and omega to \"auto\", or take shorter steps"
                             : "take shorter windows or \"lions-mercier\""));
      }
      residual = change.size > 0.0 ? change.change / change.size : 0.0;
      if (method.tolerance > 0.0 && what_is_left(change) <= method.tolerance * change.size) {
        converged = true;
        break;
      }
      if (method.tolerance > 0.0 && is_round_off(change)) {
        stalled = true;
        break;
      }
    }
    iteration.finish(each, states, energies);
    for (std::size_t step = 0; step < energies.size(); ++step) {
      if (std::isfinite(energies[step].stored_J)) continue;
      fail(static_cast<int>(history.size()), StepFault::not_finite, "the waveforms overflow");
    }
  }

  /// The change or, where changes fall slowly, what is still to come of them: Δ ρ/(1 − ρ) by the
  /// ratio ρ of the last two. Nothing can be said of a single change, unless it is nil.
  double what_is_left(const WaveformChange& change) const {
    if (change.change == 0.0) return 0.0;
    const std::size_t k = history.size();
    const double ratio = k < 2 ? 1.0 : history[k - 1] / history[k - 2];
    if (!(ratio < 1.0)) return std::numeric_limits<double>::infinity();
    return change.change * std::max(1.0, ratio / (1.0 - ratio));
  }

  /// What is left has stopped to fall, at the size of rounding errors: more iterations change
  /// nothing.
  bool is_round_off(const WaveformChange& change) const {
    constexpr std::ptrdiff_t kRecent = 4;
    if (std::ssize(history) < 2 * kRecent || change.change > 1e-11 * change.size) return false;
    const double late = *std::min_element(history.end() - kRecent, history.end());
    const double early = *std::min_element(history.end() - 2 * kRecent, history.end() - kRecent);
    return late > 0.9995 * early;
  }

  /// Ratios of changes well above round-off.
  void note(const WaveformChange& change) {
    if (!history.empty() && change.change > 1e-11 * change.size && history.back() > 0.0) {
      largest_rise = std::max(largest_rise, change.change / history.back());
    }
    history.push_back(change.change);
  }

  [[noreturn]] void fail(int iteration_number, StepFault fault, const std::string& detail) const {
    throw NetworkFault(/*part=*/-1, iteration_number, fault, detail);
  }

  NetworkStep step(const ForEach& each, const NetworkMethod& self) {
    if (served == iteration.window_steps()) {
      run_window(each, self);
      served = 0;
    }
    const auto k = static_cast<std::size_t>(served);
    NetworkStep out;
    out.iterations = static_cast<int>(history.size());
    out.converged = converged;
    out.stalled = stalled;
    out.ends_window = served + 1 == iteration.window_steps();
    out.residual = residual;
    const WaveformIteration::StepEnergies& e = energies[k];
    out.energy.stored_J = e.stored_J;
    out.energy.supplied_J = e.supplied_J;
    out.energy.dissipated_J = e.dissipated_J;
    out.energy.mismatch_J = e.supplied_J - e.dissipated_J - (e.stored_J - stored);
    out.energy.max_passivity_residual_J = e.stored_J - stored - e.supplied_J;
    out.energy_scale_J = std::abs(e.stored_J) + std::abs(stored) + std::abs(e.supplied_J);
    // H is a sum of terms that may cancel; how large they are is asked only where it matters.
    const bool asks = out.energy.max_passivity_residual_J > 1e-13 * out.energy_scale_J;
    if (asks) out.energy_scale_J += term_size_of_state();
    previous.swap(x);
    std::copy_n(states.data() + k * x.size(), x.size(), x.data());
    if (asks) out.energy_scale_J += term_size_of_state();
    stored = e.stored_J;
    ++served;
    clock.advance(step_s);
    return out;
  }

  double term_size_of_state() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < energy.size(); ++i) {
      sum += term_size(energy[i], x.data() + system.blocks()[i].first);
    }
    return sum;
  }

  const CondensedSystem& system;
  double step_s;
  DynamicIteration method;
  WaveformIteration iteration;
  std::vector<double> x, previous, states;
  std::vector<SparseMatrix> energy;
  std::vector<WaveformIteration::StepEnergies> energies;
  std::vector<double> history;
  bool converged = false, stalled = false;
  double residual = 0.0;
  double largest_rise = 0.0;
  double stored = 0.0;
  int served = 0;  ///< steps of the window that are handed out
  StepClock clock{system.start_s()};
};

DynamicIterationMethod::DynamicIterationMethod(const CondensedSystem& system, double step_s,
                                               const DynamicIteration& options)
    : impl_(std::make_unique<Impl>(system, step_s, options)) {}
DynamicIterationMethod::~DynamicIterationMethod() = default;

NetworkStep DynamicIterationMethod::step(const ForEach& each) { return impl_->step(each, *this); }
const StepClock& DynamicIterationMethod::clock() const { return impl_->clock; }
std::span<const double> DynamicIterationMethod::state() const { return impl_->x; }
std::span<const double> DynamicIterationMethod::previous_state() const { return impl_->previous; }
double DynamicIterationMethod::storage(int block) const { return impl_->storage(block); }
const DynamicParameters& DynamicIterationMethod::parameters() const {
  return impl_->iteration.parameters();
}
std::span<const double> DynamicIterationMethod::history() const { return impl_->history; }
double DynamicIterationMethod::largest_rise() const { return impl_->largest_rise; }

int DynamicIterationMethod::tasks() const { return impl_->iteration.tasks(); }
std::size_t DynamicIterationMethod::bytes() const {
  const Impl& i = *impl_;
  return i.iteration.bytes() +
         (i.x.capacity() + i.previous.capacity() + i.states.capacity()) * sizeof(double) +
         i.energies.capacity() * sizeof(WaveformIteration::StepEnergies);
}

std::string DynamicIterationMethod::remarks() const {
  if (impl_->largest_rise == 0.0) return {};
  const bool rose = impl_->largest_rise > 1.0 + 1e-9;
  return fmt::format("largest ratio of two changes in turn {:.3g}{}", impl_->largest_rise,
                     rose ? ": the norm of the change rose" : "");
}

double DynamicIterationMethod::shared_cost_ns() const {
  return impl_->iteration.iteration_cost_ns();  // one parallel phase; a step has several
}

void DynamicIterationMethod::archive(StateArchive& archive) {
  Impl& i = *impl_;
  for (std::vector<double>* own : {&i.x, &i.previous, &i.states}) archive.array(*own);
  archive.array(i.energies);
  archive.vector(i.history);
  archive.values(i.converged, i.stalled, i.residual, i.largest_rise, i.stored, i.served, i.clock);
  for (const std::vector<double>* own : {&i.x, &i.previous}) archive.expect_finite(*own, "a state");
  archive.expect(i.history.size() <= static_cast<std::size_t>(i.method.iterations),
                 "the number of iterations of a window");
  archive.expect(i.served >= 0 && i.served <= i.iteration.window_steps(),
                 "the number of steps of a window");
  archive.expect(i.clock.is_sound(), "the time");
}

std::string DynamicIterationMethod::description() const {
  const DynamicParameters& p = parameters();
  std::string text =
      fmt::format("windows of {} step{}, {}", impl_->iteration.window_steps(),
                  impl_->iteration.window_steps() == 1 ? "" : "s", to_string(p.integrator));
  if (p.kind != IterationKind::lions_mercier) return text;
  text += fmt::format("; {} metric, lambda {:.6g}, mu {:.6g}, omega {:.6g}, alpha {:.6g}; ",
                      to_string(p.metric), p.lambda, p.mu, p.omega, p.alpha);
  text += p.bounds.estimated ? "estimated " : "";
  text += p.bounds.rank_mu ? fmt::format("q {:.6g}, q* {:.6g} at lambda* {:.6g}", p.bounds.rate,
                                         p.bounds.optimal_rate, p.bounds.optimal_lambda)
                           : std::string("no bound on the rate: rank[mu E, (1-alpha) R] < n");
  return text + "; the norm of the change never rises";
}

std::unique_ptr<NetworkMethod> make_network_method(const CondensedSystem& system, double step_s,
                                                   const CouplingMethod& method, bool ledger) {
  if (const auto* const splitting = method.as<Splitting>()) {
    if (splitting->kind == SplittingKind::kick_drift) {
      return std::make_unique<KickDriftMethod>(system.system(), system.start_s(), step_s,
                                               *splitting);
    }
    if (splitting->kind == SplittingKind::taylor) {
      return std::make_unique<TaylorMethod>(system.system(), system.start_s(), step_s, *splitting);
    }
    if (order_of(*splitting) == 4) {
      return std::make_unique<FourthOrderSplitting>(system, step_s, *splitting, ledger);
    }
    return std::make_unique<SplittingMethod>(system, step_s, *splitting, ledger);
  }
  if (const auto* const dynamic = method.as<DynamicIteration>()) {
    return std::make_unique<DynamicIterationMethod>(system, step_s, *dynamic);
  }
  throw ConfigError("/method/kind",
                    fmt::format("\"{}\" couples by waves", to_string(method.kind())));
}

}  // namespace portwave
