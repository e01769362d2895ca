// Snapshots of a stepper: their identity, and the way to bytes and back.

#include "portwave/runtime/step/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/exchanges.hpp"
#include "step/states/start_check.hpp"
#include "step/states/step_identity.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// The header before the bytes of a snapshot: first its identity, then the state.
struct SnapshotHead {
  char magic[24] = "portwave snapshot 8";
  char version[16] = {};
  std::uint64_t checksum = 0;  // of what follows
  std::uint64_t identity = 0;  // bytes
  std::uint64_t origin = 0;    // digest of the identity that the run began with
  double time_s = 0.0;
  std::int64_t step_index = 0;
};

/// Whether two lists of recorded parameters differ in nothing but numbers: shapes, and what is allocated, do not
/// depend on those.
bool differ_in_numbers_alone(const BuiltFrom& a, std::span<const std::uint64_t> b) {
  if (a.values.size() != b.size() || a.values.back() != b.back()) return false;
  for (std::size_t k = 0; k < a.type->parameters.size(); ++k) {
    if (a.type->parameters[k].kind != ParameterKind::number && a.values[k] != b[k]) return false;
  }
  return true;
}

/// Whether two parts are known to have the same parameters.
bool are_built_alike(const Component& a, const Component& b) {
  if (&a == &b) return true;
  const BuiltFrom *const x = a.built_from(), *const y = b.built_from();
  return x != nullptr && y != nullptr && x->type == y->type && x->values == y->values;
}

}  // namespace

namespace {

std::span<const SignalGraph::Node> nodes_of(const StepperOptions& options) {
  if (options.signals == nullptr) return {};
  return options.signals->nodes();
}

}  // namespace

const std::shared_ptr<const StepIdentity>& Stepper::identity() const {
  if (identity_ != nullptr) return identity_;
  for (const Part& part : system().parts()) {
    if (part.component->capabilities().restorable) continue;
    const auto* const program = dynamic_cast<const MayHaveStateBytes*>(part.component.get());
    has_programs_ = true;
    const std::string why = program == nullptr ? "its component does not say that it is restorable"
                                               : program->why_no_state_bytes();
    if (why.empty()) continue;
    throw std::logic_error(
        fmt::format("part \"{}\" cannot go back to a state that it had before ({}): there are no "
                    "snapshots of this run",
                    part.name, why));
  }
  for (const SignalGraph::Node& node : nodes_of(options_)) {
    const auto* const program = dynamic_cast<const MayHaveStateBytes*>(node.block.get());
    has_programs_ = has_programs_ || program != nullptr;
    const std::string why = program == nullptr ? "" : program->why_no_state_bytes();
    if (why.empty()) continue;
    throw std::logic_error(
        fmt::format("block \"{}\" cannot go back to a state that it had before ({}): there are no "
                    "snapshots of this run",
                    node.name, why));
  }
  StepIdentity own(system(), options_, method().method);
  if (!originals_.empty()) own = own.with(originals_);
  identity_ = std::make_shared<const StepIdentity>(std::move(own));
  return identity_;
}

/// With the parts as they are now.
StepIdentity Stepper::present_identity() const {
  return exchanged_ == nullptr ? *identity() : identity()->with(exchanged_->parts);
}

void Stepper::refuse(const StepIdentity& own, const StepIdentity& other) const {
  throw std::invalid_argument(fmt::format(
      "the snapshot is of another system, or of a stepper with other options: {}. A snapshot "
      "holds states, and fits only the system and options that its run began with",
      own.difference(other, system(), options_, method().method)));
}

Stepper::Components Stepper::exchanges_for(const Snapshot& snapshot) const {
  const auto& own = identity();
  if (snapshot.origin_ != 0) return exchanges_for_bytes(snapshot);
  const Exchanges none;
  const Exchanges& there = snapshot.exchanged_ == nullptr ? none : *snapshot.exchanged_;
  if (snapshot.of_ != own && *snapshot.of_ != *own) {
    const StepIdentity now = present_identity(), then = snapshot.of_->with(there.parts);
    if (now != then) refuse(now, then);
    return {};
  }
  if (snapshot.exchanged_ == exchanged_) return {};
  Components out;
  for (const auto& [part, original] : originals_) {
    if (!there.parts.contains(part)) out.emplace(part, original);
  }
  for (const auto& [part, component] : there.parts) out.emplace(part, component);
  std::erase_if(out, [&](const auto& each) {
    return are_built_alike(*system().parts()[at(each.first)].component, *each.second);
  });
  if (!out.empty() && own_system_ == nullptr) {
    refuse(present_identity(), snapshot.of_->with(there.parts));
  }
  return out;
}

/// The components of a run in another process are known by the parameters that they were built from.
Stepper::Components Stepper::exchanges_for_bytes(const Snapshot& snapshot) const {
  const StepIdentity now = present_identity();
  if (now == *snapshot.of_) return {};
  const std::vector<int> parts = now.parts_that_differ(*snapshot.of_);
  const bool may_exchange =
      !parts.empty() && own_system_ != nullptr && snapshot.origin_ == identity()->digest();
  if (!may_exchange) refuse(now, *snapshot.of_);
  Components out;
  for (const int part : parts) {
    const BuiltFrom* const built = system().parts()[at(part)].component->built_from();
    const std::vector<std::uint64_t> values = snapshot.of_->parameters_of(at(part));
    if (built == nullptr || !differ_in_numbers_alone(*built, values)) refuse(now, *snapshot.of_);
    std::optional<Parameters> parameters = recorded_parameters(*built->type, values);
    if (!parameters) refuse(now, *snapshot.of_);
    try {
      const bool is_active = std::get<bool>(parameters->at("allow_active"));
      throw_if_any(check_parameters(*built->type, *parameters, is_active));
      out.emplace(part, build_part(*built->type, *parameters));
    } catch (const ConfigError& error) {
      throw std::invalid_argument(
          fmt::format("the snapshot is no state of this run: part {} cannot be what it was: {}",
                      in_quotes(system().parts()[at(part)].name), error.issues().front().what));
    }
  }
  return out;
}

void Stepper::archive(StateArchive& archive) {
  engine_->archive(archive);
  archive.values(looks_.count, looks_.moved_J, looks_.residual);
  archive.expect_counts({looks_.count}, "the number of looks at the run");
  archive.expect(looks_.moved_J >= 0.0 && looks_.residual >= 0.0, "what the run moved");
  if (signals_ != nullptr) {
    signals_->archive(archive);
    archive.value(sampled_);
    archive.expect(sampled_ >= -1 && sampled_ <= StateArchive::kMostSteps, "the number of samples");
  }
  if (events_ != nullptr) events_->archive(archive);
  if (start_check_ != nullptr) start_check_->archive(archive);
}

void Stepper::snapshot(Snapshot& into) const {
  engine_->activity().expect_no_step();
  into.of_ = nullptr;  // until it is complete
  const auto& own = identity();
  StateArchive::Sections sections = std::move(into.sections_);
  StateArchive writer = StateArchive::writer(into.bytes_, &sections);
  // A writer changes nothing.
  const_cast<Stepper*>(this)->archive(writer);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  writer.finish();
  into.time_s_ = time_s();
  into.step_index_ = step_index();
  into.of_ = own;
  into.sections_ = std::move(sections);
  into.exchanged_ = exchanged_;
  into.origin_ = 0;
  is_exchanged_shared_ = true;
}

Snapshot Stepper::snapshot() const {
  Snapshot out;
  snapshot(out);
  return out;
}

/// Whether the snapshot is of this stepper or a clone, and was no bytes of somebody else since.
bool Stepper::is_own(const Snapshot& snapshot) const {
  return snapshot.origin_ == 0 && snapshot.of_ == identity();
}

/// After a failure the stepper is unusable until another snapshot is read.
void Stepper::adopt(const Snapshot& snapshot) {
  StateArchive reader = is_own(snapshot)
                            ? StateArchive::own_reader(snapshot.bytes_, snapshot.sections_)
                            : StateArchive::reader(snapshot.bytes_);
  archive(reader);
  reader.finish();
  reader.expect(time_s() == snapshot.time_s_ && step_index() == snapshot.step_index_, "the time");
}

void Stepper::restore(const Snapshot& snapshot) {
  using enum Activity::Kind;
  Acting acting(engine_->activity(), change, torn);
  if (snapshot.of_ == nullptr) {
    throw std::invalid_argument("the snapshot is empty: nothing has been saved into it");
  }
  const Components exchanges = exchanges_for(snapshot);
  if (is_own(snapshot) && exchanges.empty() && !has_programs_) {
    // It fits, and nothing can fail but an allocation, where levels of step size or lists of findings grow.
    acting.end_as(torn);
    adopt(snapshot);
    return acting.end_as(none);
  }
  Snapshot before;
  before.bytes_ = std::move(before_);
  this->snapshot(before);
  std::vector<std::pair<int, std::shared_ptr<const Component>>> left;
  const auto go_back = [&] {
    for (auto own = left.rbegin(); own != left.rend(); ++own) {
      put_component(own->first, own->second, 0.0);
    }
    adopt(before);
  };
  try {
    for (const auto& [part, component] : exchanges) {
      const std::shared_ptr<const Component> present = system().parts()[at(part)].component;
      if (std::string defect = exchange_defect(*present, *component); !defect.empty()) {
        throw std::invalid_argument(fmt::format("part \"{}\" cannot be what it was: {}",
                                                system().parts()[at(part)].name, defect));
      }
      put_component(part, component, 0.0);
      left.emplace_back(part, present);
    }
    adopt(snapshot);
  } catch (const std::bad_alloc&) {
    go_back();
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    go_back();
    throw std::invalid_argument(
        fmt::format("the snapshot is no state of this run: {}; nothing has changed", why));
  }
  for (const auto& [part, present] : left) note_exchange(part, present);
  before_ = std::move(before.bytes_);
  acting.end_as(none);
}

namespace {

SnapshotHead head_of(std::uint64_t identity, std::uint64_t origin, double time_s,
                     std::int64_t step_index, std::span<const std::byte> rest) {
  SnapshotHead head;
  std::string_view{kVersion}.copy(head.version, sizeof(head.version) - 1);
  head.identity = identity;
  head.origin = origin;
  head.time_s = time_s;
  head.step_index = step_index;
  Digest digest;
  digest.add(identity);
  digest.add(origin);
  digest.add(time_s);
  digest.add(static_cast<std::uint64_t>(step_index));
  digest.add(std::string_view(reinterpret_cast<const char*>(rest.data()), rest.size()));
  head.checksum = digest.value();
  return head;
}

}  // namespace

std::vector<std::byte> Snapshot::to_bytes() const {
  std::vector<std::byte> rest;
  if (of_ != nullptr) {
    StateArchive writer = StateArchive::writer(rest);
    StepIdentity own = exchanged_ == nullptr ? *of_ : of_->with(exchanged_->parts);
    own.archive(writer);
    writer.finish();
  }
  const std::uint64_t identity = rest.size();
  rest.insert(rest.end(), bytes_.begin(), bytes_.end());
  const std::uint64_t origin = origin_ != 0 || of_ == nullptr ? origin_ : of_->digest();
  const SnapshotHead head = head_of(identity, origin, time_s_, step_index_, rest);
  std::vector<std::byte> out(sizeof(head));
  std::memcpy(out.data(), &head, sizeof(head));
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Snapshot Snapshot::from_bytes(std::span<const std::byte> bytes) {
  SnapshotHead head;
  if (bytes.size() < sizeof(head)) {
    throw std::invalid_argument("these bytes are no snapshot: there are too few");
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::span<const std::byte> rest = bytes.subspan(sizeof(head));
  const SnapshotHead expected =
      head_of(head.identity, head.origin, head.time_s, head.step_index, rest);
  if (std::memcmp(head.magic, expected.magic, sizeof(head.magic)) != 0) {
    throw std::invalid_argument("these bytes are no snapshot of this form");
  }
  if (std::memcmp(head.version, expected.version, sizeof(head.version)) != 0) {
    throw std::invalid_argument("the snapshot is of another version of portwave");
  }
  if (head.checksum != expected.checksum || head.identity > rest.size()) {
    throw std::invalid_argument("the snapshot is not whole, or was changed");
  }
  Snapshot out;
  const std::size_t size = static_cast<std::size_t>(head.identity);
  if (size > 0) {
    auto of = std::make_shared<StepIdentity>();
    try {
      StateArchive reader = StateArchive::reader(rest.first(size));
      of->archive(reader);
      reader.finish();
    } catch (const StateArchive::Mismatch&) {
      throw std::invalid_argument("the snapshot does not identify its system");
    }
    out.of_ = std::move(of);
  }
  out.bytes_.assign(rest.begin() + static_cast<std::ptrdiff_t>(size), rest.end());
  out.origin_ = head.origin;
  out.time_s_ = head.time_s;
  out.step_index_ = head.step_index;
  return out;
}

Stepper Stepper::clone(int threads) const {
  StepperOptions options = options_;
  if (threads > 0) options.threads = threads;
  options.ranks = nullptr;  // the others know nothing of it
  for (const SignalGraph::Node& node : nodes_of(options_)) {
    if (dynamic_cast<const StateBytes*>(node.block.get()) == nullptr) continue;
    throw std::logic_error(
        fmt::format("block \"{}\" is a program, which serves one run at a time: there are no "
                    "clones of this run",
                    node.name));
  }
  const auto made = [&] {
    if (own_system_ == nullptr) return Stepper(system(), options);
    const System* const one[] = {own_system_.get()};
    System begun = gathered_system(one);
    // What is chosen from the parts that a run begins with is chosen alike; others come with the snapshot.
    for (const auto& [part, original] : originals_) exchange_component(begun, part, original);
    return Stepper(std::move(begun), options);
  };
  Stepper out = made();
  out.identity_ = identity();
  out.has_programs_ = has_programs_;
  out.restore(snapshot());
  return out;
}

}  // namespace portwave
