#include "portwave/coupling/network/taylor.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/explicit/explicit_model.hpp"
#include "network/explicit/explicit_stepper.hpp"
#include "network/explicit/taylor/taylor_island.hpp"
#include "network/explicit/taylor/taylor_polynomial.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

struct TaylorMethod::Impl {
  Impl(std::shared_ptr<const LinearNetwork> shared, double step, int order)
      : owner(std::move(shared)),
        network(*owner),
        scheme(order),
        step_s(step),
        x(at(network.size())) {}

  double fastest_rate() const {
    double rate = 0.0;
    for (const TaylorIsland* const island : islands) rate = std::max(rate, island->fastest_rate());
    return rate;
  }

  std::shared_ptr<const LinearNetwork> owner;
  const LinearNetwork& network;
  TaylorScheme scheme;
  double step_s;
  std::unique_ptr<TaylorPolynomial> within;                    ///< null until somebody asks
  NetworkTrials::Step known = NetworkTrials::Step::committed;  ///< the step that it is of
  std::vector<double> x;                                       ///< scratch
  std::vector<const TaylorIsland*> islands;                    ///< of the stepper
};

TaylorMethod::TaylorMethod(const System& system, double start_s, double step_s,
                           const Splitting& options)
    : TaylorMethod(std::make_shared<const LinearNetwork>(system), start_s, step_s, options) {}
TaylorMethod::TaylorMethod(std::shared_ptr<const LinearNetwork> shared, double start_s,
                           double step_s, const Splitting& options)
    : impl_(std::make_unique<Impl>(std::move(shared), step_s, order_of(options))) {
  const LinearNetwork& network = impl_->network;
  std::vector<int> row_numbers(at(network.size()), -1), numbers;
  std::vector<std::unique_ptr<ExplicitIsland>> islands;
  const std::vector<std::vector<int>> states = ExplicitStepper::states_by_island(network);
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    if (states[at(i)].empty()) continue;
    auto island =
        std::make_unique<TaylorIsland>(network, states[at(i)], impl_->scheme, step_s, row_numbers);
    impl_->islands.push_back(island.get());
    islands.push_back(std::move(island));
    numbers.push_back(i);
  }
  set_stepper(std::make_unique<ExplicitStepper>(network, start_s, step_s, std::move(islands),
                                                std::move(numbers)));
}
TaylorMethod::~TaylorMethod() = default;

int TaylorMethod::depth_of_last_step() const { return stepper().depth_of_last_step(); }

double TaylorMethod::angle() const { return impl_->step_s * impl_->fastest_rate(); }

/// Of the move along w_{M+1}, which is near 1, only w_{M+2} is left.
int TaylorMethod::order() const { return impl_->scheme.order + 1; }

double TaylorMethod::suited_step_s(double tolerance) const {
  return impl_->scheme.longest_angle(tolerance) / impl_->fastest_rate();
}

void TaylorMethod::forget_states_within() {
  if (impl_->within != nullptr) impl_->within->forget();
}

void TaylorMethod::state_within(Step step, int first, double share, std::span<double> state) {
  Impl& i = *impl_;
  if (i.within == nullptr) i.within = std::make_unique<TaylorPolynomial>(i.network, i.scheme);
  if (!i.within->is_known() || i.known != step) {
    if (step == Step::attempted) {
      i.within->pass_through(this->state(), attempted(), clock().time_s(), stepper().step_s());
    } else {
      const double h = clock().last_step_s();
      i.within->pass_through(previous_state(), this->state(), clock().time_s() - h, h);
    }
    i.known = step;
  }
  i.within->state(first, share, state);
}

namespace {

/// Efforts and flows of all ports in a state within a step.
void find_ports(const LinearNetwork& network, std::span<const double> x,
                const Signal::StepPlace& place, std::span<double> effort, std::span<double> flow) {
  Eigen::VectorXd z = network.hessian * Eigen::Map<const Eigen::VectorXd>(
                                            x.data(), static_cast<Eigen::Index>(x.size()));
  z += Eigen::Map<const Eigen::VectorXd>(network.constant.data(), z.size());
  Eigen::VectorXd s(static_cast<Eigen::Index>(network.inputs.size()));
  for (int k = 0; k < static_cast<int>(s.size()); ++k) s[k] = network.input_in_step(k, place);
  network.ports(z.data(), s.data(), effort, flow);
}

}  // namespace

void TaylorMethod::ports_within(Step step, double share, std::span<double> effort,
                                std::span<double> flow) {
  Impl& i = *impl_;
  state_within(step, 0, share, i.x);
  const bool is_attempt = step == Step::attempted;
  const double h = is_attempt ? stepper().step_s() : clock().last_step_s();
  const double start_s = clock().time_s() - (is_attempt ? 0.0 : h);
  find_ports(i.network, i.x, {start_s + share * h, start_s, h, share, 3}, effort, flow);
}

std::string TaylorMethod::description() const {
  const Impl& i = *impl_;
  int states = 0;
  for (const TaylorIsland* const island : i.islands) states += island->states();
  const double angle = i.step_s * i.fastest_rate(), longest = i.scheme.longest_angle();
  std::string text =
      fmt::format("order {}, {} products a step of {} states; h times the fastest rate is {:.2g}",
                  i.scheme.order, i.scheme.order + 1, states, angle);
  if (angle > longest) {
    text += fmt::format(", which is a long step: below {:.2g} is advised", longest);
  }
  return text;
}

namespace {

/// Why the polynomials of inputs would be poor ones in steps that do not end where these have kinks.
std::string rough_input(const System& system, double start_s) {
  for (const Part& part : system.parts()) {
    for (std::size_t k = 0; k < part.inputs.size(); ++k) {
      const Signal& signal = part.inputs[k];
      const bool is_rate = signal.is_rate();
      if (!is_rate && !std::isfinite(signal.next_kink(start_s))) continue;
      return fmt::format("input \"{}.{}\" {}", part.name,
                         part.component->signature().inputs[k].name,
                         is_rate ? "is the rate of a displacement" : "jumps or has a kink");
    }
  }
  return {};
}

/// The fastest rate of ẋ = m Qx, dead states left out.
double live_rate(const LinearNetwork& network, const SparseMatrix& m) {
  Eigen::VectorXd is_live(network.size());
  for (int i = 0; i < network.size(); ++i) is_live[i] = network.is_dead[at(i)] != 0 ? 0.0 : 1.0;
  const SparseMatrix of_live = is_live.asDiagonal() * m;
  return fastest_rate_of(RowMatrix(of_live * network.hessian) * is_live.asDiagonal());
}

}  // namespace

TaylorFit suits_taylor(const System& system, double start_s, double step_s, bool steps_choose) {
  constexpr double kFastest = 4.0;
  for (const Part& part : system.parts()) {
    if (!part.component->capabilities().linear) {
      return {.reason = fmt::format("subsystem \"{}\" is not linear", part.name)};
    }
  }
  try {
    const auto network = std::make_shared<const LinearNetwork>(system);
    if (steps_choose) {
      const double swing = live_rate(*network, network->J), decay = live_rate(*network, network->R);
      if (step_s * decay <= 1.0) {
        return {true, order_of({.kind = SplittingKind::taylor}),
                fmt::format("h times the fastest damping is {:.2g} at most", step_s * decay)};
      }
      return {decay <= swing, order_of({.kind = SplittingKind::taylor}),
              fmt::format("the fastest damping is {:.2g} times the highest frequency, {} than 1",
                          decay / swing, decay <= swing ? "no more" : "more")};
    }
    if (const std::string rough = rough_input(system, start_s); !rough.empty()) {
      return {.reason = rough + ", and steps of one size pass over that"};
    }
    const TaylorMethod method(network, start_s, step_s, {.kind = SplittingKind::taylor});
    const double angle = method.angle();
    const std::string reason = fmt::format("h times the fastest rate is {:.2g}", angle);
    if (!(angle <= kFastest)) return {.reason = reason + fmt::format(", more than {:g}", kFastest)};
    for (const int order : {8, 12, 16}) {
      if (angle <= TaylorScheme(order).longest_angle()) return {true, order, reason};
    }
    return {true, 24, reason};
  } catch (const ConfigError& error) {
    const Issue& first = error.issues().front();
    return {.reason = first.what.substr(0, first.what.find('\n'))};
  }
}

namespace {

class TaylorModel final : public ExplicitModel {
 public:
  TaylorModel(const System& system, double start_s)
      : ExplicitModel(system),
        shared_(std::make_shared<const LinearNetwork>(system)),
        network_(*shared_),
        start_s_(start_s) {}

  bool has_active() const override { return network_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool /*ledger*/) const override {
    scheme_ = std::make_unique<TaylorScheme>(order_of(method.splitting()));
    return std::make_unique<TaylorMethod>(shared_, start_s_, step_s, method.splitting());
  }
  std::span<double> settings() override { return network_.settings(); }

  bool has_states_within() const override { return true; }
  void state_within(const NetworkMethod& method, int block, double share,
                    std::span<double> state) override {
    const double of_piece = pass_through_piece(method, share);
    within_->polynomial.state(blocks()[at(block)].first, of_piece, state);
  }
  void ports_within(const NetworkMethod& method, double share, std::span<double> effort,
                    std::span<double> flow) override {
    const double of_piece = pass_through_piece(method, share);
    x_at_.resize(at(network_.size()));
    within_->polynomial.state(0, of_piece, x_at_);
    const double h = method.clock().last_step_s(), start_s = method.clock().time_s() - h;
    find_ports(network_, x_at_, {start_s + share * h, start_s, h, share, 3}, effort, flow);
  }

  /// Means of the series itself, formed anew from the state before the step.
  void mean_ports(const NetworkMethod& method, std::span<double> effort,
                  std::span<double> flow) override {
    if (series_ == nullptr) {
      series_ = std::make_unique<TaylorSeries>(network_, *scheme_);
      for (Eigen::VectorXd* own : {&x_, &mean_, &z_}) own->resize(network_.size());
      mean_s_.resize(static_cast<Eigen::Index>(network_.inputs.size()));
    }
    const int depth = static_cast<const TaylorMethod&>(method).depth_of_last_step();
    const double h = std::ldexp(method.clock().last_step_s(), -depth);
    const double begin_s = method.clock().time_s() - method.clock().last_step_s();
    const int pieces = 1 << depth;
    x_ = Eigen::Map<const Eigen::VectorXd>(method.previous_state().data(), x_.size());
    mean_.setZero();
    mean_s_.setZero();
    for (int piece = 0; piece < pieces; ++piece) add_means(begin_s + piece * h, h);
    z_.noalias() = network_.hessian * (mean_ / pieces);
    for (Eigen::Index i = 0; i < z_.size(); ++i) {
      z_[i] += network_.constant[at(static_cast<int>(i))];
    }
    mean_s_ /= pieces;
    network_.ports(z_.data(), mean_s_.data(), effort, flow);
  }

 private:
  /// The series of a step, or of the piece of a halved one, that was asked for last.
  struct Within {
    Within(const LinearNetwork& network, const TaylorScheme& scheme)
        : series(network, scheme), polynomial(network, scheme) {}
    TaylorSeries series;
    TaylorPolynomial polynomial;
    std::vector<double> before, step_end;  ///< states before and after the step
    Eigen::VectorXd begin, end;            ///< of the piece
    int piece = -1;
    double step_end_s = 0.0;
  };

  /// The share of the piece that lies at this share of the step.
  double pass_through_piece(const NetworkMethod& method, double share) {
    if (within_ == nullptr) within_ = std::make_unique<Within>(network_, *scheme_);
    Within& own = *within_;
    const std::span<const double> before = method.previous_state(), after = method.state();
    const bool is_known = own.piece >= 0 && own.step_end_s == method.clock().time_s() &&
                          std::ranges::equal(own.before, before) &&
                          std::ranges::equal(own.step_end, after);
    const int pieces = 1 << static_cast<const TaylorMethod&>(method).depth_of_last_step();
    const int wanted = std::clamp(static_cast<int>(share * pieces), 0, pieces - 1);
    if (!is_known || own.piece != wanted) {
      const double step_s = method.clock().last_step_s(), h = step_s / pieces;
      const double begin_s = method.clock().time_s() - step_s;
      if (!is_known || own.piece > wanted) {
        own.before.assign(before.begin(), before.end());
        own.step_end.assign(after.begin(), after.end());
        own.step_end_s = method.clock().time_s();
        own.end = Eigen::Map<const Eigen::VectorXd>(before.data(), network_.size());
        own.piece = -1;
      }
      while (own.piece < wanted) {
        own.begin = own.end;
        ++own.piece;
        own.series.begin(own.begin, begin_s + own.piece * h, h);
        for (int k = 0; k <= scheme_->order; ++k) {
          own.series.next();
          own.end += own.series.term();
        }
      }
      if (own.piece == pieces - 1) {
        own.end = Eigen::Map<const Eigen::VectorXd>(after.data(), network_.size());
      }
      own.polynomial.pass_through({own.begin.data(), before.size()},
                                  {own.end.data(), before.size()}, begin_s + own.piece * h, h);
    }
    return std::clamp(share * pieces - wanted, 0.0, 1.0);
  }

  void add_means(double start_s, double h) {
    series_->begin(x_, start_s, h);
    mean_ += series_->term();
    for (int k = 0; k <= scheme_->order; ++k) {
      if (k < series_->powers().rows()) {
        mean_s_ += series_->powers().row(k).transpose() / (k + 1.0);
      }
      series_->next();
      x_ += series_->term();
      mean_ += series_->term() / (k + 2.0);
    }
  }

  std::shared_ptr<const LinearNetwork> shared_;
  const LinearNetwork& network_;
  double start_s_;
  mutable std::unique_ptr<TaylorScheme> scheme_;  ///< of the method
  std::unique_ptr<TaylorSeries> series_;
  Eigen::VectorXd x_, mean_, z_, mean_s_;
  std::unique_ptr<Within> within_;  ///< null until somebody asks
  std::vector<double> x_at_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_taylor_model(const System& system, double start_s) {
  return std::make_unique<TaylorModel>(system, start_s);
}

}  // namespace portwave
