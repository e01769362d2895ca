// Steps by a method without waves.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "parallel/clock.hpp"
#include "parallel/pace.hpp"
#include "parallel/step_profiler.hpp"
#include "parallel/threads/faster_of_two.hpp"
#include "parallel/threads/parallel_for_each.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/network/explicit_method.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/network/network_trials.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "step/event_watch.hpp"
#include "step/run_certificate.hpp"
#include "step/sizes/hidden_inputs.hpp"
#include "step/sizes/trial_steps.hpp"
#include "step/states/start_ports.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// Within a step an input is seen at so many places, at least, and its ends.
constexpr int kSeenOfInputs = 3;
/// Kicks, drifts and Taylor series look at more: of a pulse wider than this share of a step they see enough for a
/// comparison with half of it.
constexpr double kWidestHidden = 0.1;

class NetworkEngine final : public StepEngine, public FollowingEngine {
 public:
  NetworkEngine(const System& system, const StepperOptions& given,
                std::unique_ptr<Together> together)
      : StepEngine(given.step_s, std::move(together)),
        options_(given),
        model_(make_network_model(system, given.start_s, given.method)),
        has_active_(model_->has_active()),
        method_(made_method(*model_)),
        is_shared_(shares_steps()),
        runner_(make_block_runner(given.executor, given.threads, given.arena, method_->tasks(),
                                  method_->shared_cost_ns())),
        effort_(system.scalar_ports().size(), 0.0),
        flow_(effort_.size(), 0.0),
        start_ports_(given),
        pace_(given.time.pace, given.interrupted) {
    choice_.method = given.method;
    choice_.reason = method_->description();
    method_->set_interrupted(given.interrupted);
    refuse_non_finite_start();
    settings_.assign(model_->settings().begin(), model_->settings().end());
    if (given.sizes) {
      sizes_.emplace(*model_, *method_, trials(), *given.sizes, given.step_s,
                     watches_of(system, given));
    }
    if (!given.sizes && given.certify != Certify::none) {
      const bool is_fine = dynamic_cast<const NetworkTrials*>(method_.get()) != nullptr;
      hidden_.emplace(system, nullptr,
                      is_fine ? kWidestHidden : std::numeric_limits<double>::infinity());
      if (hidden_->empty()) hidden_.reset();
    }
    open_ledger();
    if (given.profile) profiler_.emplace(*given.profile, 0);
    if (given.time.pace > 0.0) {
      late_.emplace(std::numeric_limits<double>::infinity(), 0.0, 1e-9 * method_->shared_cost_ns());
    }
    if (this->together().is_alone()) return;
    const int ranks = given.ranks->size();
    execution_ = is_shared_ ? fmt::format("{}, on each of {} ranks", runner_.description, ranks)
                            : fmt::format(
                                  "{}, on the first of {} ranks alone: this method has "
                                  "nothing here that they could share",
                                  runner_.description, ranks);
    if (is_shared_) this->together().join(*this, settings_);
  }
  ~NetworkEngine() override { together().leave(); }
  NetworkEngine(const NetworkEngine&) = delete;
  NetworkEngine& operator=(const NetworkEngine&) = delete;

  // Several ranks.
  void follow(const Hooks& hooks) override {
    hooks_ = &hooks;
    together().follow(hooks.told);
  }
  void carry_out(Together::Order::Kind kind, double value) override {
    if (kind == Together::Order::Kind::settings_changed) return settings_changed();
    try {
      const StepReport report =
          kind == Together::Order::Kind::step ? step_by(value) : step_towards(value);
      if (hooks_->stepped) hooks_->stepped(report);
    } catch (const StepError&) {  // rank 0 reports it
    }
  }
  void take_jump(std::span<const std::byte> /*bytes*/) override {}  // there are none without waves
  double read(const QuantityTerm& term) override { return portwave::read(*this, term); }
  void fetch_state() override { dynamic_cast<ExplicitMethod&>(*method_).fetch(); }

  /// The network is set up anew.
  void component_changed(int part, double more_J) override {
    if (is_shared_) throw std::invalid_argument("several ranks step the system");
    auto* const before = dynamic_cast<ExplicitMethod*>(method_.get());
    if (before == nullptr) {
      throw std::logic_error(
          fmt::format("the method \"{}\" couples without waves: parts stay as they are",
                      to_string(options_.method.kind())));
    }
    std::unique_ptr<NetworkModel> model =
        make_network_model(system(), options_.start_s, options_.method);
    std::unique_ptr<NetworkMethod> method = made_method(*model);
    dynamic_cast<ExplicitMethod&>(*method).take_over(*before, part, more_J);
    method->set_interrupted(options_.interrupted);
    if (sizes_) sizes_->exchange(*model, *method, dynamic_cast<NetworkTrials&>(*method));
    method_ = std::move(method);
    model_ = std::move(model);
    has_active_ = model_->has_active();
    choice_.reason = method_->description();
    has_changed(more_J);
  }
  void component_restored(int /*part*/) override {}
  void put_state(int part, std::span<const double> state, double /*more_J*/) override {
    const int number = model_->block_of_part(part);
    if (number < 0) return;
    const std::span<const double> now = method_->state();
    std::vector<double> states(now.begin(), now.end());
    std::ranges::copy(state, states.begin() + model_->blocks()[at(number)].first);
    states_changed(states);
  }
  void states_changed(std::span<const double> states) override {
    if (is_shared_) throw std::logic_error("several ranks step the system: its states stay");
    double more_J = 0.0;
    for (int i = 0; i < static_cast<int>(model_->blocks().size()); ++i) {
      more_J -= method_->storage(i);
    }
    if (!method_->set_state(states)) {
      throw std::logic_error(
          fmt::format("the method \"{}\" couples without waves: its states cannot be set while it "
                      "is stepped",
                      to_string(options_.method.kind())));
    }
    for (int i = 0; i < static_cast<int>(model_->blocks().size()); ++i) {
      more_J += method_->storage(i);
    }
    has_changed(more_J);
    if (sizes_) sizes_->restart();
  }
  std::span<double> settings() override { return settings_; }
  void settings_changed() override {
    const Together::Order order(together(), Together::Order::Kind::settings_changed);
    start_ports_.forget();
    if (sizes_) sizes_->inputs_jump();
  }

  const StepClock& clock() const override { return method_->clock(); }
  const System& system() const override { return model_->system(); }
  int threads() const override { return runner_.threads; }
  int tasks() const override { return runner_.tasks; }
  const std::string& execution() const override {
    return execution_.empty() ? runner_.description : execution_;
  }

  std::span<const double> state(int part) override {
    const int index = model_->block_of_part(part);
    if (index < 0) return {};
    const NetworkBlock& block = model_->blocks()[at(index)];
    return method_->state().subspan(at(block.first), at(block.size));
  }
  const StepSizeStatistics* step_sizes() const override {
    return sizes_ ? &sizes_->statistics() : nullptr;
  }
  EffortFlow effort_flow(int scalar_port) override {
    if (clock().steps() == 0 || is_changed_) return start_ports_.of(scalar_port, *this);
    if (ports_step_ != clock().steps()) find_ports();
    return {effort_[at(scalar_port)], flow_[at(scalar_port)]};
  }
  bool has_states_within() const override { return sizes_ || model_->has_states_within(); }
  bool has_ports_within() const override { return has_states_within(); }
  void state_at(int part, double time_s, std::span<double> state) override {
    const int number = model_->block_of_part(part);
    if (number < 0) return;
    if (is_changed_) return StepEngine::state_at(part, time_s, state);
    const NetworkBlock& block = model_->blocks()[at(number)];
    const std::span<double> own = state.first(at(block.size));
    if (sizes_) {
      return trials().state_within(NetworkTrials::Step::committed, block.first,
                                   share_of_step(time_s), own);
    }
    model_->state_within(*method_, number, share_of_step(time_s), own);
  }
  EffortFlow port_at(int scalar_port, double time_s) override {
    if (!has_ports_within() || clock().steps() == 0 || is_changed_) return effort_flow(scalar_port);
    if (within_.step != clock().steps() || within_.time_s != time_s) {
      within_.effort.resize(effort_.size());
      within_.flow.resize(flow_.size());
      const double share = share_of_step(time_s);
      if (sizes_) {
        trials().ports_within(NetworkTrials::Step::committed, share, within_.effort, within_.flow);
      } else {
        model_->ports_within(*method_, share, within_.effort, within_.flow);
      }
      within_.step = clock().steps();
      within_.time_s = time_s;
    }
    return {within_.effort[at(scalar_port)], within_.flow[at(scalar_port)]};
  }
  double storage(int part) override {
    const int block = model_->block_of_part(part);
    return block < 0 ? 0.0 : method_->storage(block);
  }

  const MethodChoice& method() const override { return choice_; }
  std::string remarks() const override { return method_->remarks(); }
  std::int64_t halved_steps() const override {
    const auto* const own = dynamic_cast<const ExplicitMethod*>(method_.get());
    return own == nullptr ? 0 : own->halved_steps();
  }

  bool keeps_ledger() const override { return options_.certify != Certify::none; }
  EnergyTotals energy() const override { return totals_; }
  const Certificate& certificate() override { return certificate_; }
  const IterationStatistics& iterations() const override { return statistics_; }
  /// What inputs do between the places at which steps see them.
  std::optional<Resolution> resolution() const override {
    if (!hidden_) return std::nullopt;
    const Resolution out = hidden_->value();
    return out.kind == Resolution::Kind::resolved ? std::nullopt : std::optional(out);
  }
  std::optional<DeadlineScheduler::Statistics> deadline() const override {
    if (!late_) return std::nullopt;
    return late_->statistics();
  }
  std::size_t overhead_bytes() const override {
    return method_->bytes() + (sizes_ ? sizes_->bytes() : 0) +
           (effort_.capacity() + flow_.capacity()) * sizeof(double);
  }

  StepReport step_by(double step_s) override {
    const Together::Order order(together(), Together::Order::Kind::step, step_s);
    if (!method_->set_step(step_s) && step_s != this->step_s()) {
      throw std::logic_error(
          fmt::format("the method \"{}\" takes steps of one size only: those of {:g} s",
                      to_string(options_.method.kind()), this->step_s()));
    }
    return take(step_s, [this](const ForEach& each, StepReport&) { return method_->step(each); });
  }
  StepReport step_towards(double limit_s) override {
    if (!sizes_) return step_by(step_s());
    const Together::Order order(together(), Together::Order::Kind::step_towards, limit_s);
    return take(step_s(), [&](const ForEach& each, StepReport& report) {
      return sizes_->step(limit_s, each, report);
    });
  }

  Profile profile() override {
    if (!profiler_) throw std::logic_error("StepperOptions::profile was not asked for");
    return profiler_->profile(nullptr, nullptr, nullptr, nullptr);
  }
  void archive(StateArchive& archive) override {
    method_->archive(archive);
    if (sizes_) sizes_->archive(archive);
    if (hidden_) hidden_->archive(archive);
    archive.values(begins_window_, totals_, run_, worst_ratio_, is_changed_, between_J_);
    archive.expect(std::isfinite(between_J_), "what was supplied between steps");
    for (const std::span<double> own : {std::span<double>(settings_), model_->settings()}) {
      archive.array(own);
      archive.expect_finite(own, "a settable input");
    }
    archive_findings(archive, system(), certificate_);
    portwave::archive(archive, statistics_);
    if (!archive.reads()) return;
    ports_step_ = -1;
    within_.step = -1;
    start_ports_.forget();
    pace_.restart();
    if (is_shared_) together().send_state();
  }

 private:
  /// Whether ranks share steps; otherwise the first one steps alone.
  bool shares_steps() {
    NetworkPeers* const peers = together().network_peers();
    auto* const method = dynamic_cast<ExplicitMethod*>(method_.get());
    return peers != nullptr && method != nullptr && method->share_among(*peers);
  }
  bool is_iteration() const { return options_.method.is<DynamicIteration>(); }
  bool has_tolerance() const { return portwave::has_tolerance(options_.method); }
  /// Precondition: steps choose their size.
  NetworkTrials& trials() const { return dynamic_cast<NetworkTrials&>(*method_); }

  /// Steps that choose their size: what a method prepares for one, such as how exactly it takes dampers, is prepared
  /// for a size that the tolerance asks for.
  std::unique_ptr<NetworkMethod> made_method(const NetworkModel& model) const {
    const auto made_for = [&](double step_s) {
      return model.make_method(step_s, options_.method, options_.certify != Certify::none);
    };
    std::unique_ptr<NetworkMethod> made = made_for(options_.step_s);
    if (auto* const own = dynamic_cast<ExplicitMethod*>(made.get());
        own != nullptr && options_.halves_once_more) {
      own->halve_once_more();
    }
    if (!options_.sizes) return made;
    const auto& trials = dynamic_cast<const NetworkTrials&>(*made);
    const double suited_s =
        trials.suited_step_s(TrialSteps::tolerance_of_step(*options_.sizes, trials.order()));
    return suited_s < options_.step_s ? made_for(suited_s) : std::move(made);
  }

  double share_of_step(double time_s) const {
    const double step_s = clock().last_step_s();
    const double share = step_s > 0.0 ? 1.0 - (clock().time_s() - time_s) / step_s : 1.0;
    return std::clamp(share, 0.0, 1.0);
  }

  /// A step with its account and times. `step`: takes it.
  template <class Step>
  StepReport take(double step_s, const Step& step) {
    const bool timed = options_.timed || profiler_ || late_.has_value();
    Clock::time_point start{}, ready{}, stepped{};
    if (timed) start = await_turn(step_s);
    if (timed) ready = Clock::now();
    StepReport report;
    report.step_s = step_s;  // unless the step chooses it
    std::ranges::copy(settings_, model_->settings().begin());
    const NetworkStep done = run(step, report);
    is_changed_ = false;
    if (timed) stepped = Clock::now();
    report.iterations = done.iterations;
    report.residual = done.residual;
    report.converged = has_tolerance() && done.converged;
    if (report.converged) {
      report.reason = StopReason::tolerance;
    } else if (done.stalled) {
      report.reason = StopReason::stalled;
    }
    report.begins_window = begins_window_;
    begins_window_ = done.ends_window;
    if (keeps_ledger()) {
      const double between_J = std::exchange(between_J_, 0.0);
      report.energy = done.energy;
      report.energy.changed_J = done.energy.stored_J - totals_.final_J + between_J;
      account(done);
      report.energy.supplied_J += between_J;
    }
    count(report, has_tolerance(), statistics_);
    if (hidden_) {
      const double taken_s = clock().last_step_s();
      hidden_->search(clock().steps() - 1, clock().time_s() - taken_s, taken_s,
                      gauss_stages(kSeenOfInputs), /*is_cut=*/false);
    }
    if (timed) {
      const Clock::time_point end = Clock::now();
      report.times = {seconds(ready - start), seconds(stepped - ready), seconds(end - stepped)};
      if (late_) report.slack_s = late_->finish({.inner_end = start, .end = end});
      if (profiler_) {
        profiler_->end(clock().steps() - 1, {start, ready, stepped, end}, report.iterations);
      }
    }
    return report;
  }

  void refuse_non_finite_start() const {
    Issues issues;
    for (int i = 0; i < static_cast<int>(model_->blocks().size()); ++i) {
      if (std::isfinite(method_->storage(i))) continue;
      issues.push_back({fmt::format("/subsystems/{}/initial_state", model_->blocks()[at(i)].part),
                        "the stored energy of this state is not finite"});
    }
    throw_if_any(std::move(issues));
  }

  Clock::time_point await_turn(double step_s) {
    const Clock::time_point now = pace_.await(clock().time_s());
    if (late_) {
      late_->set_deadline(pace_.left_s(clock().time_s() + step_s, now));
      late_->begin(now);
    }
    return now;
  }

  /// The step itself.
  template <class Step>
  NetworkStep run(const Step& step, StepReport& report) {
    try {
      if (!runner_.chooses) {
        return step(runner_.parallel ? *runner_.parallel : *runner_.serial, report);
      }
      const bool is_parallel = faster_.used() == FasterOfTwo::kParallel;
      const auto start = Clock::now();
      const NetworkStep done = step(is_parallel ? *runner_.parallel : *runner_.serial, report);
      window_s_ += seconds(Clock::now() - start);
      judge_speed(done);
      return done;
    } catch (const NetworkFault& fault) {
      fail(fault);
    }
  }

  /// A window is computed in its first step: whole windows are compared, per iteration.
  void judge_speed(const NetworkStep& done) {
    if (!done.ends_window) return;
    faster_.add(window_s_, 1.0 + done.iterations);
    window_s_ = 0.0;
  }

  [[noreturn]] void fail(const NetworkFault& fault) const {
    const bool iterates = is_iteration() && fault.iteration() >= 0;
    throw StepError(fault.part() < 0 ? std::string() : system().name_of_part(fault.part()),
                    clock().steps(), fault.iteration(),
                    iterates ? iterations_of(options_.method) : StepError::kNoIterations,
                    fault.fault(), fault.what());
  }

  void find_ports() {
    if (!sizes_ || !trials().mean_ports(effort_, flow_)) {
      model_->mean_ports(*method_, effort_, flow_);
    }
    ports_step_ = clock().steps();
  }

  /// Somebody has set states, or exchanged a part: what is stored more now is supplied.
  void has_changed(double more_J) {
    is_changed_ = true;
    start_ports_.forget();
    ports_step_ = within_.step = -1;
    totals_.final_J += more_J;
    totals_.max_J = std::max(totals_.max_J, totals_.final_J);
    run_.supplied.add(more_J);
    totals_.supplied_J = run_.supplied.value();
    between_J_ += more_J;
  }

  void open_ledger() {
    double stored = 0.0;
    for (int i = 0; i < static_cast<int>(model_->blocks().size()); ++i) {
      stored += method_->storage(i);
    }
    totals_.initial_J = totals_.final_J = totals_.max_J = stored;
    totals_.max_energy_ratio = stored > 0.0 ? 1.0 : std::numeric_limits<double>::quiet_NaN();
    certificate_.max_passivity_residual_J = -std::numeric_limits<double>::infinity();
  }

  void account(const NetworkStep& done) {
    const StepLedger& energy = done.energy;
    look_at_energies();
    totals_.final_J = energy.stored_J;
    totals_.tank_J = energy.tank_J;
    totals_.max_J = std::max(totals_.max_J, energy.stored_J);
    run_.supplied.add(energy.supplied_J);
    run_.dissipated.add(energy.dissipated_J);
    run_.mismatch.add(energy.mismatch_J);
    totals_.supplied_J = run_.supplied.value();
    totals_.dissipated_J = run_.dissipated.value();
    totals_.mismatch_J = run_.mismatch.value();
    if (totals_.initial_J > 0.0) {
      totals_.max_energy_ratio = std::max(
          totals_.max_energy_ratio, (totals_.final_J - totals_.supplied_J) / totals_.initial_J);
    }
    certify(done);
  }

  /// Allowed ΔH − supply of a step. The remaining coupling error of a converged window is of the size of the
  /// tolerance; an active part has no such excuse.
  double allowed_J(const NetworkStep& done) const {
    constexpr double kPerTolerance = 10.0;
    // Energies of denormal numbers have no relative precision left.
    const double round_off_J =
        std::max(passivity_tolerance(done.energy_scale_J), std::numeric_limits<double>::min());
    if (!has_tolerance() || !done.converged || has_active_) return round_off_J;
    return std::max(round_off_J,
                    kPerTolerance * options_.method.dynamic().tolerance * done.energy_scale_J);
  }

  /// The account is that of the energies that are stepped: are they those of the parts, after every step? Where
  /// ranks share the steps all of them look.
  void look_at_energies() {
    const auto* const own = dynamic_cast<const ExplicitMethod*>(method_.get());
    if (own == nullptr || certificate_.broken_law) return;
    const int part = own->part_astray(is_shared_);
    if (part < 0) return;
    certificate_.broken_law = {BrokenLaw::Law::form, system().island_of_part(part),
                               clock().steps() - 1};
    certificate_.worst_passivity_part = part;
    certificate_.status = CertificateStatus::violated;
  }

  /// Splitting never creates energy; the remaining error of a dynamic iteration may.
  void certify(const NetworkStep& done) {
    const double residual_J = done.energy.max_passivity_residual_J;
    const double tolerance_J = allowed_J(done);
    certificate_.max_passivity_residual_J =
        std::max(certificate_.max_passivity_residual_J, residual_J);
    const double ratio = residual_J / std::max(tolerance_J, std::numeric_limits<double>::min());
    if (ratio > worst_ratio_) {
      worst_ratio_ = ratio;
      certificate_.worst_passivity_step = clock().steps() - 1;  // the method has counted it
    }
    if (residual_J <= tolerance_J) return;
    if (is_iteration() && !has_active_) {
      ++certificate_.steps_with_excess;
      if (certificate_.status == CertificateStatus::holds) {
        certificate_.status = CertificateStatus::conditional;
      }
    } else {
      certificate_.status = CertificateStatus::violated;
      certificate_.is_part_active = true;
    }
  }

  StepperOptions options_;
  std::unique_ptr<NetworkModel> model_;
  bool has_active_;
  std::unique_ptr<NetworkMethod> method_;
  std::vector<double>
      settings_;           ///< of the steps to come, by slot; empty where the method has none
  bool is_shared_;         ///< by several ranks
  std::string execution_;  ///< with several ranks
  const Hooks* hooks_ = nullptr;        ///< of the ranks that follow
  bool is_changed_ = false;             ///< since the last step: its states, or a part
  std::optional<TrialSteps> sizes_;     ///< if steps choose their size
  std::optional<HiddenInputs> hidden_;  ///< else, with an account: if inputs are functions of time
  BlockRunner runner_;
  FasterOfTwo faster_;
  double window_s_ = 0.0;
  MethodChoice choice_;
  // Values of the last step, computed on demand.
  std::vector<double> effort_, flow_;
  std::int64_t ports_step_ = 0;
  struct {
    std::int64_t step = -1;
    double time_s = 0.0;
    std::vector<double> effort, flow;
  } within_;  ///< likewise at a time within the last step
  StartPorts start_ports_;
  Pace pace_;
  std::optional<StepProfiler> profiler_;
  std::optional<DeadlineScheduler> late_;  ///< with a pace: records how late steps were
  bool begins_window_ = true;              ///< whether the next step does
  IterationStatistics statistics_;
  EnergyTotals totals_;
  double between_J_ = 0.0;  ///< supplied since the last step: the next one reports it
  struct {
    CompensatedSum supplied, dissipated, mismatch;
  } run_;  ///< sums from which members of `totals_` are computed
  Certificate certificate_;
  double worst_ratio_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<StepEngine> make_network_engine(const System& system, const StepperOptions& options,
                                                std::unique_ptr<Together> together) {
  return std::make_unique<NetworkEngine>(system, options, std::move(together));
}

}  // namespace portwave
