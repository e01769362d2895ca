// Snapshots of a stepper: their identity, and the way to bytes and back.

#include "portwave/runtime/step/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/start_check.hpp"
#include "step/states/step_identity.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// The header before the bytes of a snapshot: first its identity, then the state.
struct SnapshotHead {
  char magic[24] = "portwave snapshot 3";
  char version[16] = {};
  std::uint64_t checksum = 0;  // of what follows
  std::uint64_t identity = 0;  // bytes
  double time_s = 0.0;
  std::int64_t step_index = 0;
};

}  // namespace

const std::shared_ptr<const StepIdentity>& Stepper::identity() const {
  if (identity_ != nullptr) return identity_;
  for (const Part& part : system().parts()) {
    if (part.component->capabilities().restorable) continue;
    throw std::logic_error(
        fmt::format("part \"{}\" cannot go back to a state that it had before (its component does "
                    "not say that it is restorable): there are no snapshots of this run",
                    part.name));
  }
  identity_ = std::make_shared<const StepIdentity>(system(), options_, method().method);
  return identity_;
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
  StateArchive writer = StateArchive::writer(into.bytes_);
  // A writer changes nothing.
  const_cast<Stepper*>(this)->archive(writer);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  writer.finish();
  into.time_s_ = time_s();
  into.step_index_ = step_index();
  into.of_ = own;
}

Snapshot Stepper::snapshot() const {
  Snapshot out;
  snapshot(out);
  return out;
}

/// After a failure the stepper is unusable until another snapshot is read.
void Stepper::adopt(const Snapshot& snapshot) {
  StateArchive reader = StateArchive::reader(snapshot.bytes_);
  archive(reader);
  reader.finish();
  reader.expect(time_s() == snapshot.time_s_ && step_index() == snapshot.step_index_, "the time");
}

void Stepper::restore(const Snapshot& snapshot) {
  const Acting acting(engine_->activity(), Activity::Kind::change);
  if (snapshot.of_ == nullptr) {
    throw std::invalid_argument("the snapshot is empty: nothing has been saved into it");
  }
  const auto& own = identity();
  if (snapshot.of_ != own) {
    const std::string difference =
        own->difference(*snapshot.of_, system(), options_, method().method);
    if (!difference.empty()) {
      throw std::invalid_argument(fmt::format(
          "the snapshot is of another system, or of a stepper with other options: {}. A snapshot "
          "holds states, and fits only the system and options that it was saved from",
          difference));
    }
  }
  Snapshot before;
  before.bytes_ = std::move(before_);
  this->snapshot(before);
  try {
    adopt(snapshot);
  } catch (const std::bad_alloc&) {
    adopt(before);
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    adopt(before);
    throw std::invalid_argument(
        fmt::format("the snapshot is no state of this run: {}; nothing has changed", why));
  }
  before_ = std::move(before.bytes_);
}

namespace {

SnapshotHead head_of(std::uint64_t identity, double time_s, std::int64_t step_index,
                     std::span<const std::byte> rest) {
  SnapshotHead head;
  std::string_view{kVersion}.copy(head.version, sizeof(head.version) - 1);
  head.identity = identity;
  head.time_s = time_s;
  head.step_index = step_index;
  Digest digest;
  digest.add(identity);
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
    StepIdentity(*of_).archive(writer);
    writer.finish();
  }
  const std::uint64_t identity = rest.size();
  rest.insert(rest.end(), bytes_.begin(), bytes_.end());
  const SnapshotHead head = head_of(identity, time_s_, step_index_, rest);
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
  const SnapshotHead expected = head_of(head.identity, head.time_s, head.step_index, rest);
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
  out.time_s_ = head.time_s;
  out.step_index_ = head.step_index;
  return out;
}

Stepper Stepper::clone(int threads) const {
  StepperOptions options = options_;
  if (threads > 0) options.threads = threads;
  options.ranks = nullptr;  // the others know nothing of it
  const auto made = [&] {
    if (own_system_ == nullptr) return Stepper(system(), options);
    const System* const one[] = {own_system_.get()};
    return Stepper(gathered_system(one), options);
  };
  Stepper out = made();
  out.restore(snapshot());
  return out;
}

}  // namespace portwave
