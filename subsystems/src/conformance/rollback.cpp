// What wave coupling asks of any component: its steps can be taken back.

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "conformance/conformance_tools.hpp"

namespace portwave {
namespace {

using namespace conformance;  // NOLINT(google-build-using-namespace): of the tools of this folder

/// A component in a batch of its own that makes a few steps, each of them several times.
class Rollback {
 public:
  Rollback(const Component& component, const ConformanceOptions& options, double step_s,
           Tally& tally)
      : wave_scale_(options.wave_scale), step_s_(step_s), tally_(tally), random_(options.seed) {
    const Component* parts[] = {&component};
    batch_ = component.make_batch(parts);
    const VectorXd impedance =
        VectorXd::Constant(component.signature().wave_size(), options.impedance);
    batch_->prepare(step_s, impedance.data());
    record_.resize(batch_->record_size(), 0.0);
    next_.resize(record_.size(), 0.0);
    batch_->set_state(0, component.default_state().data(), record_.data());
    batch_->freeze({0, 1}, record_.data(), nullptr);
  }

  /// One committed step; false when a solve fails.
  bool step(int number) {
    const VectorXd a = waves(), other = waves(), later = waves();
    VectorXd first, again, committed, repeated, after, after_again;
    if (!scatter(record_, a, first, number) || !scatter(record_, other, again, number))
      return false;
    batch_->freeze({0, 1}, record_.data(), nullptr);
    AlignedVector copy = record_;
    if (!scatter(copy, a, again, number)) return false;
    see(again == first, "scatter from a copied record gave another b", number);
    batch_->freeze({0, 1}, record_.data(), nullptr);
    if (!advance(a, committed, number)) return false;
    see(committed == first, "advance gave another b than scatter", number);
    if (!scatter(next_, later, after, number) || !scatter(record_, a, again, number)) return false;
    see_near(again, first, "scatter gave another b after the step was committed", number);
    if (!advance(other, repeated, number) || !advance(a, repeated, number)) return false;
    see(repeated == committed, "the step gave another b when it was committed again", number);
    if (!scatter(next_, later, after_again, number)) return false;
    see(after_again == after, "the step led elsewhere when it was committed again", number);
    batch_->freeze({0, 1}, next_.data(), nullptr);
    record_.swap(next_);
    return true;
  }

 private:
  VectorXd waves() { return random_.vector(batch_->wave_size(), wave_scale_); }

  bool scatter(AlignedVector& record, const VectorXd& a, VectorXd& b, int number) {
    b = VectorXd::Zero(a.size());
    return solved(batch_->scatter({0, 1}, record.data(), a.data(), b.data()), number);
  }
  bool advance(const VectorXd& a, VectorXd& b, int number) {
    b = VectorXd::Zero(a.size());
    StepEnergy energy;
    return solved(
        batch_->advance({0, 1}, record_.data(), a.data(), next_.data(), b.data(),
                        {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J}),
        number);
  }
  bool solved(LaneStatus status, int number) {
    if (status.ok()) return true;
    tally_.fail(
        fmt::format("a port solve failed ({}), {}", to_string(status.fault), where(number)));
    return false;
  }
  void see(bool same, const char* what, int number) {
    tally_.see(same ? 0.0 : 1.0, 0.5, [&] { return fmt::format("{}, {}", what, where(number)); });
  }
  /// Warm starts may move the last bits.
  void see_near(const VectorXd& b, const VectorXd& expected, const char* what, int number) {
    tally_.see((b - expected).norm(), 1e-13 * (1.0 + expected.norm()),
               [&] { return fmt::format("{}, {}", what, where(number)); });
  }
  std::string where(int number) const { return fmt::format("h = {}, step {}", step_s_, number); }

  double wave_scale_;
  double step_s_;
  Tally& tally_;
  Random random_;
  std::unique_ptr<StepBatch> batch_;
  AlignedVector record_, next_;
};

}  // namespace

LawReport check_rollback(const Component& component, const ConformanceOptions& options) {
  constexpr int kSteps = 5;
  Tally tally("rollback");
  for (const double h : options.steps_s) {
    Rollback run(component, options, h, tally);
    for (int n = 0; n < kSteps; ++n) {
      if (!run.step(n)) break;
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave
