#include "portwave/runtime/stepper.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/energy_book.hpp"
#include "portwave/runtime/executor.hpp"

namespace portwave {
namespace {

std::string_view describe(StepFault fault) {
  switch (fault) {
    case StepFault::none:
      return "no fault";
    case StepFault::not_converged:
      return "the implicit step did not converge";
    case StepFault::not_finite:
      return "a wave or state is not finite";
    case StepFault::threw:
      return "a callback threw";
  }
  return "unknown fault";
}

std::string step_error_text(const std::string& part, std::int64_t step, int iteration, int budget,
                            StepFault fault, const std::string& detail) {
  std::string where = fmt::format("inner iteration {}", iteration);
  if (iteration < 0) where = "freezing";
  if (iteration >= budget) where = "the commit";
  std::string text =
      fmt::format("part \"{}\" failed in step {}, {}: {}", part, step, where, describe(fault));
  if (!detail.empty()) text += " (" + detail + ")";
  return text + "; the state is that before the step";
}

/// Runs of doubles are all finite; written so that it vectorises.
bool all_finite(const std::vector<double>& values) {
  int bad = 0;
  for (const double v : values) bad |= std::abs(v) <= std::numeric_limits<double>::max() ? 0 : 1;
  return bad == 0;
}

Issues check(const System& system, const StepperOptions& options) {
  Issues issues;
  const CouplingMethod& m = options.method;
  const auto expect = [&](bool good, const char* where, const char* what) {
    if (!good) issues.push_back({where, what});
  };
  expect(m.iterations >= 0, "/method/iterations", "must be >= 0");
  expect(m.relaxation > 0.0 && m.relaxation < 2.0, "/method/relaxation", "must be in (0, 2)");
  expect(m.tolerance >= 0.0 && std::isfinite(m.tolerance), "/method/tolerance",
         "must be finite and >= 0");
  expect(options.threads >= 1 && options.threads <= kMaxThreads, "/threads", "must be in 1..1024");
  expect(options.lanes_per_task >= 1, "/lanes_per_task", "must be >= 1");
  const std::size_t ports = system.scalar_ports().size();
  expect(m.impedance.size() == ports || m.impedance.size() == 1, "/method/impedance",
         "must have one value, or one per scalar port");
  expect(m.initial_waves.empty() || m.initial_waves.size() == ports, "/method/initial_waves",
         "must be empty or have one value per scalar port");
  expect(std::all_of(m.initial_waves.begin(), m.initial_waves.end(),
                     [](double b) { return std::isfinite(b); }),
         "/method/initial_waves", "must be finite");
  return issues;
}

std::vector<double> impedance_by_port(const System& system, const CouplingMethod& method) {
  if (method.impedance.size() == system.scalar_ports().size()) return method.impedance;
  return std::vector<double>(system.scalar_ports().size(), method.impedance.front());
}

const System& checked(const System& system, const StepperOptions& options) {
  throw_if_any(check(system, options));
  return system;
}

}  // namespace

StepError::StepError(std::string part, std::int64_t step, int iteration, int budget,
                     StepFault fault, const std::string& detail)
    : std::runtime_error(step_error_text(part, step, iteration, budget, fault, detail)),
      part_(std::move(part)),
      step_(step),
      iteration_(iteration),
      fault_(fault) {}

/// A macro-step in order: freeze, iterate, commit, book. Vectors with a `next` are written by the
/// step and become current only when all of it has succeeded.
struct Stepper::Impl {
  Impl(const System& system, const StepperOptions& given)
      : options(given),
        waves(checked(system, given), given.step_s, impedance_by_port(system, given.method)),
        executor(given.threads == 1
                     ? make_serial_executor(waves)
                     : make_tbb_executor(waves, given.threads, given.lanes_per_task)),
        x(waves.initial_state()),
        x_next(x.size()),
        b(initial_waves()),
        b_next(b.size()),
        a(b.size()),
        a_next(b.size()),
        u(b.size()),
        b_trial(b.size()),
        input(static_cast<std::size_t>(waves.input_size())),
        energy(system.parts().size()),
        book(waves, x.data(), b.data()) {
    refuse_non_finite_start();
    certificate.max_passivity_residual_J = book.max_passivity_residual();
    if (options.certify == Certify::full) {
      u_start.resize(b.size());
      certifier.emplace(waves, options.method.relaxation);
    }
  }

  void refuse_non_finite_start() const {
    Issues issues;
    for (std::size_t i = 0; i < waves.places().size(); ++i) {
      if (std::isfinite(book.storage(static_cast<int>(i)))) continue;
      issues.push_back({fmt::format("/subsystems/{}/initial_state", i),
                        "the stored energy of this state is not finite"});
    }
    if (!std::isfinite(book.totals().initial_tank_J)) {
      issues.push_back({"/method/initial_waves", "the energy of these waves is not finite"});
    }
    throw_if_any(std::move(issues));
  }

  std::vector<double> initial_waves() const {
    std::vector<double> out(static_cast<std::size_t>(waves.wave_size()), 0.0);
    const std::vector<double>& by_port = options.method.initial_waves;
    for (std::size_t j = 0; j < by_port.size(); ++j) {
      out[static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)))] = by_port[j];
    }
    return out;
  }

  StepReport step() {
    freeze();
    const InnerResult inner = iterate();
    commit(inner);
    return record(inner);
  }

  void freeze() {
    const double* driven = nullptr;
    if (waves.driven()) {
      fail_if(waves.sample_inputs(time(), input.data()), -1);
      driven = input.data();
    }
    fail_if(executor->freeze(x.data(), driven), -1);
  }

  InnerResult iterate() {
    executor->exchange(b.data(), u.data());
    if (certifier) std::copy(u.begin(), u.end(), u_start.begin());
    const CouplingMethod& m = options.method;
    InnerResult inner =
        executor->iterate({m.iterations, m.relaxation, m.tolerance, m.tolerance_per_part}, u.data(),
                          b_trial.data(), a_next.data());
    fail_if(inner.status, inner.failed_at);
    return inner;
  }

  void commit(const InnerResult& inner) {
    fail_if(executor->advance(a_next.data(), x_next.data(), b_next.data(), energy.data()),
            options.method.iterations);
    if (!all_finite(x_next) || !all_finite(b_next)) find_non_finite(inner);
    for (std::size_t i = 0; i < energy.size(); ++i) {
      if (std::isfinite(energy[i].storage_J) && std::isfinite(energy[i].external_supply_J))
        continue;
      fail_if({waves.part_of_energy()[i], StepFault::not_finite, "its energy overflows"},
              options.method.iterations);
    }
  }

  StepReport record(const InnerResult& inner) {
    const double stored_before = book.totals().final_J;
    StepReport report{inner.iterations, inner.residual, inner.converged,
                      book.book(a_next.data(), b_next.data(), energy.data())};
    if (certifier) {
      certifier->examine(waves,
                         {.index = steps,
                          .iterations = inner.iterations,
                          .u_start = u_start,
                          .stored_change_J = report.energy.stored_J - stored_before,
                          .mismatch_J = report.energy.mismatch_J,
                          .supplied_J = report.energy.supplied_J},
                         certificate);
    }
    update_certificate();
    x.swap(x_next);
    b.swap(b_next);
    a.swap(a_next);
    ++steps;
    ++statistics.steps;
    statistics.total += inner.iterations;
    statistics.max = std::max(statistics.max, inner.iterations);
    if (options.method.tolerance > 0.0 && !inner.converged) ++statistics.not_converged;
    return report;
  }

  void update_certificate() {
    certificate.max_passivity_residual_J = book.max_passivity_residual();
    certificate.worst_passivity_part = book.worst_part();
    certificate.worst_passivity_step = book.worst_step();
    if (book.violated()) certificate.status = CertificateStatus::violated;
  }

  void fail_if(const PhaseStatus& status, int iteration) const {
    if (status.ok()) return;
    throw StepError(waves.system().parts()[static_cast<std::size_t>(status.part)].name, steps,
                    iteration, options.method.iterations, status.fault, status.detail);
  }

  /// A NaN or infinity reached the commit: frozen maps are pure, so the iteration is run again,
  /// looking at every wave, to name the first part and iteration that made one.
  [[noreturn]] void find_non_finite(const InnerResult& inner);

  double time() const { return static_cast<double>(steps) * options.step_s; }

  StepperOptions options;
  WaveDiscretisation waves;
  std::unique_ptr<Executor> executor;
  std::vector<double> x, x_next;
  std::vector<double> b, b_next;
  std::vector<double> a, a_next;
  std::vector<double> u, b_trial;  // inner iterate and trial outgoing waves
  std::vector<double> input;
  std::vector<StepEnergy> energy;
  EnergyBook book;
  std::int64_t steps = 0;
  IterationStatistics statistics;
  Certificate certificate;
  std::vector<double> u_start;             // Certify::full
  std::optional<StepCertifier> certifier;  // Certify::full
};

void Stepper::Impl::find_non_finite(const InnerResult& inner) {
  const auto first_bad = [&](const std::vector<double>& b_now) {
    for (std::size_t part = 0; part < waves.places().size(); ++part) {
      const PartPlace& place = waves.places()[part];
      const int size = waves.batches()[static_cast<std::size_t>(place.batch)].batch->wave_size();
      for (int j = place.wave; j < place.wave + size; ++j) {
        if (!std::isfinite(b_now[static_cast<std::size_t>(j)])) return static_cast<int>(part);
      }
    }
    return -1;
  };
  executor->exchange(b.data(), u.data());
  for (int k = 0; k < inner.iterations; ++k) {
    fail_if(waves.scatter_all(u.data(), b_trial.data()), k);
    if (const int part = first_bad(b_trial); part >= 0) {
      fail_if({part, StepFault::not_finite, {}}, k);
    }
    const Interconnection& coupling = waves.interconnection();
    coupling.douglas_rachford(coupling.all(), options.method.relaxation, b_trial.data(), u.data());
  }
  int part = first_bad(b_next);
  for (std::size_t i = 0; part < 0 && i < waves.places().size(); ++i) {
    const int size = waves.system().parts()[i].subsystem->signature().state_size();
    for (int j = waves.places()[i].state; j < waves.places()[i].state + size; ++j) {
      if (!std::isfinite(x_next[static_cast<std::size_t>(j)])) part = static_cast<int>(i);
    }
  }
  fail_if({std::max(part, 0), StepFault::not_finite, {}}, options.method.iterations);
  throw std::logic_error("unreachable: fail_if throws for a fault");
}

Stepper::Stepper(const System& system, const StepperOptions& options)
    : impl_(std::make_unique<Impl>(system, options)) {}
Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;
Stepper& Stepper::operator=(Stepper&&) noexcept = default;

StepReport Stepper::step() { return impl_->step(); }

void Stepper::run(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) impl_->step();
}

const System& Stepper::system() const { return impl_->waves.system(); }
std::int64_t Stepper::step_index() const { return impl_->steps; }
double Stepper::time_s() const { return impl_->time(); }
int Stepper::threads() const { return impl_->executor->threads(); }

std::span<const double> Stepper::state(int part) const {
  const auto index = static_cast<std::size_t>(part);
  const auto size =
      static_cast<std::size_t>(system().parts()[index].subsystem->signature().state_size());
  return {impl_->x.data() + impl_->waves.places()[index].state, size};
}

std::span<const double> Stepper::state(std::string_view part) const {
  const int index = system().find_part(part);
  if (index < 0) throw std::out_of_range("no part is named \"" + std::string(part) + "\"");
  return state(index);
}

double Stepper::incident_wave(int scalar_port) const {
  return impl_->a[static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port))];
}

double Stepper::outgoing_wave(int scalar_port) const {
  return impl_->b[static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port))];
}

EffortFlow Stepper::effort_flow(int scalar_port) const {
  const auto place = static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port));
  if (impl_->steps == 0) return {0.0, 0.0};
  return WaveTransform(impl_->waves.impedance()[place], impl_->options.step_s)
      .to_effort_flow({impl_->a[place], impl_->b[place]});
}

double Stepper::effort(int scalar_port) const { return effort_flow(scalar_port).effort; }
double Stepper::flow(int scalar_port) const { return effort_flow(scalar_port).flow; }
double Stepper::storage(int part) const { return impl_->book.storage(part); }

void Stepper::set_iterations(int iterations) {
  if (iterations < 0) throw ConfigError("/method/iterations", "must be >= 0");
  impl_->options.method.iterations = iterations;
}

const EnergyTotals& Stepper::energy() const { return impl_->book.totals(); }
const Certificate& Stepper::certificate() const { return impl_->certificate; }
const IterationStatistics& Stepper::iterations() const { return impl_->statistics; }

}  // namespace portwave
