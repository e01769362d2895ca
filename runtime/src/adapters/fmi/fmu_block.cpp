#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/fmu_setup.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"

namespace portwave {
namespace fmi {
namespace {

/// An FMU that is stepped from sample to sample. The state of the block is the number of a saved state where
/// the FMU saves states, and the number of steps it has made: a sample that fails is repeated from the same.
class FmuBlock final : public Block, public StateBytes, public MayHaveStateBytes {
 public:
  explicit FmuBlock(PartSetup setup)
      : Block({.inputs = static_cast<int>(setup.inputs.size()),
               .outputs = static_cast<int>(setup.outputs.size()),
               .states = 1,
               .feeds_through = false}),
        setup_(std::move(setup)),
        inputs_(setup_.inputs),
        outputs_(setup_.outputs),
        program_(setup_.start_program()) {}
  ~FmuBlock() override { release_slots(); }

  void start(std::span<double> x) const override {
    // A run before this one has lost it; or it cannot go back, so that only a new instance is at the start.
    if (program_ == nullptr || program_->instance().is_gone() || (!saves() && steps_ > 0)) {
      release_slots();
      program_.reset();  // first: some may be there once only
      program_ = setup_.start_program();
      steps_ = 0;
    }
    if (!saves()) {
      x[0] = 0.0;
      return;
    }
    const std::lock_guard lock(program_->mutex);
    program_->restore(program_->initial());
    program_->save(slots_[0], setup_.start_s);
    program_->instance().finish();
    x[0] = static_cast<double>(slots_[0].generation);
  }

  void output(const SampleTime& /*when*/, std::span<const double> /*u*/, std::span<const double> x,
              std::span<double> y) const override {
    const std::lock_guard lock(program_->mutex);
    go_to(x[0]);
    program_->instance().get(outputs_, y.data());
  }

  void update(const SampleTime& when, std::span<const double> u, std::span<const double> /*y*/,
              std::span<double> x) const override {
    const std::lock_guard lock(program_->mutex);
    go_to(x[0]);
    if (!inputs_.empty()) program_->instance().set(inputs_, u.data());
    program_->step(when.time_s, when.period_s);
    if (!saves()) {
      program_->instance().finish();
      x[0] = static_cast<double>(++steps_);
      return;
    }
    SavedState& next = static_cast<double>(slots_[0].generation) == x[0] ? slots_[1] : slots_[0];
    program_->save(next, when.time_s + when.period_s);
    program_->instance().finish();
    x[0] = static_cast<double>(next.generation);
  }

  // As a batch has them: the state that x, its one number, refers to.
  std::vector<std::byte> write_states(const double* x) const override {
    const std::lock_guard lock(program_->mutex);
    for (const SavedState& slot : slots_) {
      if (static_cast<double>(slot.generation) == *x) return program_->to_bytes(slot, *setup_.fmu);
    }
    throw FmuFault("a block that is an FMU serves one run at a time");
  }
  void read_states(std::span<const std::byte> bytes, double* x) const override {
    const std::lock_guard lock(program_->mutex);
    SavedState& older = slots_[slots_[0].generation <= slots_[1].generation ? 0 : 1];
    program_->adopt(older, bytes, *setup_.fmu);
    *x = static_cast<double>(older.generation);
  }
  std::string why_no_state_bytes() const override { return fmi::why_no_state_bytes(*setup_.fmu); }

 private:
  void release_slots() const {
    if (program_ == nullptr) return;
    for (SavedState& slot : slots_) program_->release(slot);
  }

  bool saves() const { return setup_.fmu->description().saves_state; }

  void go_to(double state) const {
    if (!saves()) {
      if (state == static_cast<double>(steps_)) return;
      throw FmuFault(fmt::format("the FMU {} cannot go back to a sample it has passed",
                                 in_quotes(setup_.fmu->file().filename().string())));
    }
    for (const SavedState& slot : slots_) {
      if (static_cast<double>(slot.generation) == state) return program_->restore(slot);
    }
    throw FmuFault("a block that is an FMU serves one run at a time");
  }

  PartSetup setup_;
  VariableList inputs_, outputs_;
  mutable std::shared_ptr<Program> program_;
  mutable SavedState slots_[2];
  mutable long steps_ = 0;
};

}  // namespace
}  // namespace fmi

block::Handle make_fmu_block(const FmuBlockOptions& options) {
  fmi::PartSetup setup;
  setup.isolation = fmi::isolation_of(options.process, options.time_limit_s);
  setup.fmu = fmi::open_fmu(options.file, setup.isolation);
  setup.name = options.name.empty() ? setup.fmu->description().name : options.name;
  setup.start_s = options.start_s;
  Issues issues;
  setup.variables = std::make_shared<fmi::FmuVariables>(setup.fmu, options.start, issues);
  setup.start = fmi::find_start_values(*setup.variables, options.start, issues);
  for (const std::string& name : options.inputs) {
    const std::string where = "/signals/" + escape_key(name);
    const fmi::Variable* const own = fmi::find_driven(*setup.variables, name, where, issues);
    if (own != nullptr) setup.inputs.push_back(own);
  }
  const auto names = options.outputs.empty() ? std::nullopt : std::optional(options.outputs);
  setup.outputs = fmi::find_outputs(*setup.variables, names, issues);
  fmi::check_clocks(setup, issues);
  if (issues.empty() && setup.outputs.empty())
    issues.push_back({"/path", "the FMU has no output that is a number"});
  throw_if_any(std::move(issues));
  try {
    return std::make_shared<const fmi::FmuBlock>(std::move(setup));
  } catch (const fmi::FmuFault& fault) {
    throw ConfigError("", fmt::format("the block cannot be started: {}", fault.what()));
  }
}

}  // namespace portwave
