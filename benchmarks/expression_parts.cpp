// What a part costs that is given by expressions, beside the same part written by hand: port solves and commits
// of a batch of Duffing oscillators, and of pendulums, on one thread. Both give the same answers; the oscillator
// to round-off, the pendulum as far as its two discrete gradients agree. And steps of 400 oscillators, each on a
// mass, as a run takes them.

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using namespace portwave;

constexpr int kLanes = 256;
constexpr double kStep = 1e-3;

/// Equal parts side by side, each in a state of its own, with waves that differ.
class Batch {
 public:
  Batch(const CataloguePart& description, const std::vector<double>& start)
      : part_(description.build()),
        same_(kLanes, part_.get()),
        batch_(part_->make_batch(same_)),
        gamma_(static_cast<std::size_t>(batch_->wave_count()), 2.0),
        a_(gamma_.size()),
        b_(gamma_.size()),
        record_(batch_->record_size()),
        next_(batch_->record_size()) {
    batch_->prepare(kStep, gamma_.data());
    for (int lane = 0; lane < kLanes; ++lane) {
      std::vector<double> x = start;
      for (double& value : x) value *= 1.0 + 0.2 * std::sin(1.0 + lane);
      batch_->set_state(lane, x.data(), record_.data());
    }
    batch_->freeze(all(), record_.data(), nullptr);
    for (std::size_t j = 0; j < a_.size(); ++j)
      a_[j] = 0.05 * std::cos(0.1 * static_cast<double>(j));
  }

  void scatter() {
    factor_ = 1.0 / factor_;
    for (double& wave : a_) wave *= factor_;  // as inner iterations bring them
    check(batch_->inexact_scatter(all(), record_.data(), a_.data(), b_.data()));
  }
  void advance() {
    check(batch_->advance(all(), record_.data(), a_.data(), next_.data(), b_.data(), {}));
    record_.swap(next_);
  }
  std::vector<double> states() const {
    std::vector<double> out;
    std::vector<double> x(static_cast<std::size_t>(batch_->state_size()));
    for (int lane = 0; lane < kLanes; ++lane) {
      batch_->get_state(lane, record_.data(), x.data());
      out.insert(out.end(), x.begin(), x.end());
    }
    return out;
  }

 private:
  static LaneRange all() { return {0, kLanes}; }
  static void check(const LaneStatus& status) {
    if (!status.ok()) throw std::runtime_error("a port solve failed");
  }

  std::shared_ptr<const Component> part_;
  std::vector<const Component*> same_;
  std::unique_ptr<StepBatch> batch_;
  std::vector<double> gamma_, a_, b_;
  AlignedVector record_, next_;
  double factor_ = 0.999;
};

CataloguePart duffing_by_hand() {
  return parts::duffing_oscillator({.mass_kg = 0.8,
                                    .stiffness_N_per_m = 3.0,
                                    .cubic_stiffness_N_per_m3 = 5.0,
                                    .damping_Ns_per_m = 0.2,
                                    .coupling_stiffness_N_per_m = 2.0,
                                    .coupling_damping_Ns_per_m = 0.3});
}

CataloguePart duffing_by_energy() {
  return parts::port_hamiltonian(
      {.states = {{"q1", "m"}, {"v1", "m/s"}, {"delta", "m"}},
       .ports = {{"coupling", Causality::flow_in, Domain::translation, 1}},
       .inputs = {{"force", "N"}},
       .constants = {{"m", 0.8}, {"k", 3.0}, {"a", 5.0}, {"c", 0.2}, {"kc", 2.0}, {"d", 0.3}},
       .energy = "m*v1^2/2 + k*q1^2/2 + a*q1^4/4 + kc*delta^2/2",
       .J = {{0, "1/m", 0}, {"-1/m", 0, "1/m"}, {0, "-1/m", 0}},
       .R = {{0, 0, 0}, {0, "(c + d)/m^2", 0}, {0, 0, 0}},
       .G = {{0, 0}, {0, "1/m"}, {1, 0}},
       .P = {{0, 0}, {"-d/m", 0}, {0, 0}},
       .S = {{"d", 0}, {0, 0}}});
}

/// Oscillators, each on a mass of its own.
std::unique_ptr<Stepper> network(const CataloguePart& oscillator) {
  const std::shared_ptr<const Component> own = oscillator, mass = parts::mass({.mass_kg = 2.0});
  SystemBuilder builder;
  for (int i = 0; i < 400; ++i) {
    const std::string name = std::to_string(i);
    builder.add("o" + name, own, {.initial_state = {0.8, 0.0, 0.0}, .inputs = {}});
    builder.add("m" + name, mass);
    builder.connect("o" + name + ".coupling", "m" + name + ".port");
  }
  StepperOptions options;
  options.step_s = kStep;
  options.threads = 1;
  return std::make_unique<Stepper>(builder.build(), options);
}

void compare_steps(const Report& report) {
  const auto hand = network(duffing_by_hand()), energy = network(duffing_by_energy());
  hand->step(50);
  energy->step(50);
  const double a = hand->state("o0")[0], b = energy->state("o0")[0];
  if (!(std::abs(a - b) < 1e-9)) throw std::runtime_error("the two networks disagree");
  report.add({.name = "expression_parts/duffing/step",
              .sense = Sense::at_most,
              .goal = 2.0,
              .note = std::string(to_string(instruction_set()))},
             take_turns({processor_timed([&] { energy->step(); }),
                         processor_timed([&] { hand->step(); })}),
             0, 1);
}

CataloguePart pendulum_by_hand() {
  return parts::pendulum({.mass_kg = 1.0, .length_m = 0.5, .damping_Nms_per_rad = 0.02});
}

CataloguePart pendulum_by_energy() {
  return parts::port_hamiltonian({.states = {{"angle", "rad"}, {"momentum", "kg m^2/s"}},
                                  .ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}},
                                  .inputs = {{"torque", "N m"}},
                                  .constants = {{"m", 1.0}, {"l", 0.5}, {"g", 9.81}, {"c", 0.02}},
                                  .energy = "momentum^2/(2*m*l^2) + m*g*l*(1 - cos(angle))",
                                  .J = {{0, 1}, {-1, 0}},
                                  .R = {{0, 0}, {0, "c"}},
                                  .G = {{0, 0}, {-1, 1}}});
}

void check_agreement(Batch& hand, Batch& energy, double tolerance) {
  for (int step = 0; step < 50; ++step) {
    hand.advance();
    energy.advance();
  }
  const std::vector<double> x = hand.states(), y = energy.states();
  double worst = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  fmt::print(stderr, "largest difference after 50 steps: {:.2e}\n", worst);
  if (!(worst < tolerance)) throw std::runtime_error("the two parts disagree");
}

void compare(const Report& report, const std::string& which, const CataloguePart& by_hand,
             const CataloguePart& by_energy, const std::vector<double>& start, double tolerance) {
  Batch hand(by_hand, start), energy(by_energy, start);
  check_agreement(hand, energy, tolerance);
  const std::string note(to_string(instruction_set()));
  const auto row = [&](const std::string& name, std::optional<double> goal, auto ours,
                       auto theirs) {
    report.add({.name = fmt::format("expression_parts/{}/{}", which, name),
                .sense = Sense::at_most,
                .goal = goal,
                .note = note},
               take_turns({processor_timed(ours), processor_timed(theirs)}), 0, 1);
  };
  row(
      "port_solve", 2.0, [&] { energy.scatter(); }, [&] { hand.scatter(); });
  row(
      "commit", 2.0, [&] { energy.advance(); }, [&] { hand.advance(); });
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("expression_parts", 1);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, "duffing", duffing_by_hand(), duffing_by_energy(), {0.8, 0.5, 0.2}, 1e-11);
  compare_steps(report);
  compare(report, "pendulum", pendulum_by_hand(), pendulum_by_energy(), {1.5, 0.3}, 1e-4);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "expression_parts: {}\n", error.what());
  return 1;
}
