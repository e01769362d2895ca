// What instances of an FMU that cannot go back tell before the run.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "adapters/fmi/fmu_forward.hpp"

namespace portwave::fmi {
namespace {

constexpr double kInput = 1e-3;  // so that a part at rest moves

std::vector<const Variable*> outputs_of_ports(const PartSetup& setup) {
  std::vector<const Variable*> out;
  for (const PortVariables& port : setup.ports) out.push_back(port.output);
  return out;
}

/// Whether to set a variable has no other effect than that of its value.
bool is_continuous(const Variable& variable) {
  const bool is_real =
      variable.type == VariableType::float64 || variable.type == VariableType::float32;
  return is_real && !variable.is_discrete && variable.clocks == 0;
}

/// Numbers in [−1, 1], neither small nor all of one sign: the same in every run.
class Excitation {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double size = 0.5 + 0.5 * static_cast<double>((state_ >> 40) & 0xffff) / 65535.0;
    return (state_ >> 60 & 1) != 0 ? size : -size;
  }

 private:
  std::uint64_t state_ = 1;
};

/// Runs of trial instances, each of its own.
class TrialRunner {
 public:
  TrialRunner(const PartSetup& setup, double step_s)
      : setup_(setup),
        h_(step_s),
        ports_(setup.ports.size()),
        others_(setup.inputs.size()),
        shown_(setup.outputs.size()) {}

  /// Steps with inputs that `set` gives, step by step. A fault ends the run, but for its first step.
  template <class Set>
  std::vector<PortStep> run(std::size_t steps, Trials& out, const Set& set) {
    ForwardProgram program(setup_, out.looks_first);
    std::vector<PortStep> run;
    std::vector<double> inputs(ports_ + others_, 0.0), answers(ports_);
    program.read(answers.data(), shown_.data());
    if (out.answers.empty()) {
      out.answers = answers;
      out.shown = shown_;
    }
    for (std::size_t n = 0; n < steps; ++n) {
      std::ranges::fill(inputs, 0.0);
      std::copy(rest_.begin(), rest_.end(), inputs.begin() + static_cast<std::ptrdiff_t>(ports_));
      set(n, inputs);
      PortStep step(ports_, others_);
      try {
        program.step(h_, inputs.data(), inputs.data() + ports_, step, shown_.data());
      } catch (const FmuFault&) {
        if (n == 0) throw;
        break;
      }
      if (!step.mean.allFinite() || !step.begin.allFinite() || !step.end.allFinite()) {
        out.is_finite = out.is_finite && n > 0;
        break;
      }
      run.push_back(std::move(step));
    }
    return run;
  }
  /// Whether inputs change answers at once, told by an instance of its own.
  bool looks_first() {
    constexpr int kSteps = 4;
    ForwardProgram program(setup_, /*looks_first=*/true);
    Excitation excitation;
    std::vector<double> u(ports_), others = rest_;
    PortStep step(ports_, others_);
    for (int n = 0; n < kSteps; ++n) {
      for (double& own : u) own = kInput * excitation.next();
      for (std::size_t k = 0; k < others_; ++k) {
        if (is_continuous(*setup_.inputs[k]))
          others[k] = rest_[k] + kInput * std::max(1.0, std::abs(rest_[k])) * excitation.next();
      }
      if (program.feels(u.data(), others.data())) return true;
      try {
        program.step(h_, u.data(), others.data(), step, shown_.data());
      } catch (const FmuFault&) {
        break;  // told where its steps count
      }
    }
    return false;
  }
  void read_rest() {
    ForwardProgram program(setup_, /*looks_first=*/false);
    std::vector<double> answers(ports_);
    rest_.resize(others_);
    program.read(answers.data(), shown_.data());
    program.read_others(rest_.data());
  }
  const std::vector<double>& rest() const { return rest_; }

 private:
  const PartSetup& setup_;
  double h_;
  std::size_t ports_, others_;
  std::vector<double> shown_, rest_;
};

/// By how much to move an input: its answer is then to be a hundredth of what the part does by itself.
double amplitude(double slope, double own) {
  constexpr double kShare = 0.01;
  const double wanted = slope != 0.0 ? kShare * std::abs(own / slope) : 0.0;
  return std::isfinite(wanted) ? std::max(wanted, kInput) : kInput;
}

}  // namespace

ForwardProgram::ForwardProgram(const PartSetup& setup, bool looks_first)
    : setup_(setup),
      looks_first_(looks_first),
      program_(setup.fmu, setup.name, setup.start, setup.start_s, setup.isolation, setup.shown(),
               /*saves=*/false),
      access_(setup),
      answers_(outputs_of_ports(setup)),
      shown_(setup.outputs),
      u_(setup.ports.size(), 0.0),
      others_(setup.inputs.size()),
      largest_(setup.ports.size(), kInput),
      read_(setup.ports.size()),
      integrals_(setup.ports.size()),
      ends_(setup.ports.size()),
      felt_(static_cast<Eigen::Index>(setup.ports.size()),
            static_cast<Eigen::Index>(setup.ports.size())) {
  Instance& instance = program_.instance();
  instance.get(VariableList(setup.inputs), others_.data());
  access_.ask_integrals(instance);
  instance.finish();
  access_.take_integrals(integrals_.data());
  access_.set_integrals(integrals_.data());
  instance.get(answers_, ends_.data());
  for (std::size_t j = 0; j < ends_.size(); ++j) ends_[j] *= setup_.ports[j].output_factor;
}

void ForwardProgram::read(double* answers, double* shown) {
  Instance& instance = program_.instance();
  instance.ask(answers_, answers);
  instance.ask(shown_, shown);
  instance.finish();
  for (std::size_t j = 0; j < u_.size(); ++j) answers[j] *= setup_.ports[j].output_factor;
}

void ForwardProgram::read_others(double* others) const {
  std::copy(others_.begin(), others_.end(), others);
}

double ForwardProgram::time_s(double step_s) const {
  return setup_.start_s + static_cast<double>(steps_) * step_s;
}

void ForwardProgram::step(double step_s, const double* u, const double* others, PortStep& out,
                          double* shown) {
  Instance& instance = program_.instance();
  std::copy_n(u, u_.size(), u_.begin());
  if (looks_first_) {
    access_.set_inputs(instance, u_.data(), others_.data());
    instance.ask(answers_, out.begin.data());
  }
  const bool is_set = looks_first_ && std::equal(others_.begin(), others_.end(), others);
  std::copy_n(others, others_.size(), others_.begin());
  if (!is_set) access_.set_inputs(instance, u_.data(), others_.data());
  if (looks_first_) {
    access_.begin(instance);
  } else {
    access_.begin_as_read();
  }
  program_.step(time_s(step_s), step_s);
  instance.ask(answers_, out.end.data());
  instance.ask(shown_, shown);
  access_.end(instance, step_s, out.mean.data());
  access_.take_integrals(integrals_.data());
  access_.set_integrals(integrals_.data());
  ++steps_;
  for (std::size_t j = 0; j < u_.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    largest_[j] = std::max(largest_[j], std::abs(u_[j]));
    out.end[i] *= setup_.ports[j].output_factor;
    out.begin[i] = looks_first_ ? out.begin[i] * setup_.ports[j].output_factor : ends_[j];
    ends_[j] = out.end[i];
    out.inputs[i] = u_[j];
  }
  for (std::size_t k = 0; k < others_.size(); ++k) {
    out.inputs[static_cast<Eigen::Index>(u_.size() + k)] = others_[k];
  }
}

bool ForwardProgram::feels(const double* u, const double* others) {
  Instance& instance = program_.instance();
  access_.set_inputs(instance, u, others);
  instance.get(answers_, read_.data());
  for (std::size_t j = 0; j < ends_.size(); ++j) {
    if (read_[j] * setup_.ports[j].output_factor != ends_[j]) return true;
  }
  return false;
}

void ForwardProgram::feel_through(Eigen::MatrixXd& through) {
  constexpr double kMove = 1e-3;
  Instance& instance = program_.instance();
  const auto ports = static_cast<Eigen::Index>(u_.size());
  for (Eigen::Index j = 0; j < ports; ++j) {
    double& own = u_[static_cast<std::size_t>(j)];
    const double before = own;
    own += kMove * largest_[static_cast<std::size_t>(j)];
    access_.set_inputs(instance, u_.data(), others_.data());
    instance.ask(answers_, felt_.col(j).data());
    own = before;
  }
  access_.set_inputs(instance, u_.data(), others_.data());
  instance.ask(answers_, read_.data());
  instance.finish();
  for (Eigen::Index j = 0; j < ports; ++j) {
    const double u = u_[static_cast<std::size_t>(j)];
    const double moved = (u + kMove * largest_[static_cast<std::size_t>(j)]) - u;
    for (Eigen::Index i = 0; i < ports; ++i) {
      const double change = felt_(i, j) - read_[static_cast<std::size_t>(i)];
      through(i, j) = change * setup_.ports[static_cast<std::size_t>(i)].output_factor / moved;
    }
  }
}

Trials try_forward(const PartSetup& setup, double step_s) {
  const std::size_t ports = setup.ports.size(), others = setup.inputs.size();
  const auto p = static_cast<Eigen::Index>(ports);
  Trials out(ports, others);
  TrialRunner trials(setup, step_s);
  trials.read_rest();
  out.looks_first = trials.looks_first();
  const std::size_t steps = Forecast::steps_to_fit(ports, others);
  const auto at_rest = [](std::size_t, std::vector<double>&) {};
  std::vector<std::vector<PortStep>> runs;
  runs.push_back(trials.run(steps, out, at_rest));
  const std::vector<PortStep> again = trials.run(1, out, at_rest);
  if (runs[0].empty() || again.empty()) return out;
  const Eigen::VectorXd rest = runs[0][0].mean;
  const double difference = (again[0].mean - rest).norm();
  if (difference > 0.0) out.difference = difference / (again[0].mean.norm() + rest.norm());
  // The slopes of the first step, input by input.
  std::vector<double> amplitudes(ports + others, 0.0);
  out.first.y = rest;
  for (std::size_t k = 0; k < others; ++k) {
    out.first.at[static_cast<Eigen::Index>(ports + k)] = trials.rest()[k];
  }
  for (std::size_t j = 0; j < ports + others; ++j) {
    const Variable& input = j < ports ? *setup.ports[j].input : *setup.inputs[j - ports];
    if (!is_continuous(input) && j >= ports) continue;
    const double move =
        j < ports ? kInput : kInput * std::max(1.0, std::abs(trials.rest()[j - ports]));
    const std::vector<PortStep> moved =
        trials.run(1, out, [&](std::size_t, std::vector<double>& inputs) { inputs[j] += move; });
    if (moved.empty()) return out;
    const Eigen::VectorXd slope = (moved[0].mean - rest) / move;
    out.first.slopes.col(static_cast<Eigen::Index>(j)) = slope;
    amplitudes[j] = j < ports ? amplitude(slope[static_cast<Eigen::Index>(j)],
                                          runs[0].back().mean.cwiseAbs().maxCoeff())
                              : move;
  }
  out.available_J = available_energy(out.first.slopes.leftCols(p), rest, step_s);
  out.least_response = least_response(out.first.slopes.leftCols(p));
  Excitation excitation;
  const auto excited = [&](std::size_t, std::vector<double>& inputs) {
    for (std::size_t j = 0; j < inputs.size(); ++j) inputs[j] += amplitudes[j] * excitation.next();
  };
  for (int run = 0; run < 2; ++run) {
    try {
      runs.push_back(trials.run(steps, out, excited));
    } catch (const FmuFault&) {  // such inputs are too much for it: others tell enough
    }
  }
  // In event mode to set an input has consequences.
  const bool has_events = setup.fmu->description().has_event_mode;
  const bool may_feel = std::ranges::all_of(setup.ports, [&](const PortVariables& port) {
    return port.input->clocks == 0 && !(has_events && port.input->is_discrete);
  });
  out.feeds_through = out.looks_first && may_feel;
  Eigen::MatrixXd through = Eigen::MatrixXd::Zero(p, p);
  if (out.feeds_through) ForwardProgram(setup, true).feel_through(through);
  out.forecast.fit(runs, out.first, through);
  if (!(out.forecast.misfit() > Forecast::kUseless)) return out;
  // What answers nothing as yet, such as an open contact, does so but for rounding: twice the input, and the answer is
  // not twice as large, or what is answered is next to nothing in any unit.
  constexpr double kAlike = 0.25, kTiny = 1e-9;
  for (std::size_t j = 0; j < ports; ++j) {
    const std::vector<PortStep> moved = trials.run(
        1, out, [&](std::size_t, std::vector<double>& inputs) { inputs[j] += 2.0 * kInput; });
    if (moved.empty()) return out;
    auto known = out.first.slopes.col(static_cast<Eigen::Index>(j));
    const Eigen::VectorXd slope = (moved[0].mean - rest) / (2.0 * kInput);
    const bool is_alike = (slope - known).norm() <= kAlike * known.norm();
    if (is_alike && known.norm() > kTiny) continue;
    known.setZero();
    out.is_silent = true;
  }
  if (out.is_silent) out.forecast.fit(runs, out.first, through);
  return out;
}

std::shared_ptr<const Trials> TrialRuns::of(double step_s) {
  const std::lock_guard lock(mutex_);
  if (last_ == nullptr || step_s_ != step_s) {
    last_ = std::make_shared<const Trials>(try_forward(setup_, step_s));
    step_s_ = step_s;
  }
  return last_;
}

}  // namespace portwave::fmi
