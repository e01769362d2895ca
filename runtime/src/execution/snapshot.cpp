// Snapshots of a stepper: what fits what, and the way to bytes and back.

#include "portwave/runtime/execution/snapshot.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "execution/event_watch.hpp"
#include "execution/input_hash.hpp"
#include "execution/step_engine.hpp"
#include "portwave/coupling/system/gathered_system.hpp"
#include "portwave/runtime/execution/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "signals/signal_run.hpp"

namespace portwave {
namespace {

/// What stands before the bytes of a snapshot.
struct SnapshotHead {
  char magic[24] = "portwave snapshot";
  char version[16] = {};
  std::uint64_t checksum = 0;  // of what follows
  std::uint64_t fits = 0;
  double time_s = 0.0;
  std::int64_t step_index = 0;
};

}  // namespace

void add(Hash& hash, const System& system) {
  for (const Part& part : system.parts()) {
    const Signature& signature = part.component->signature();
    hash.add(part.name);
    hash.add(signature.type);
    hash.add(signature.state_size());
    hash.add(signature.wave_size());
    hash.add(part.substeps);
  }
  for (const Junction& junction : system.junctions()) {
    for (const int wave : junction.waves) hash.add(wave);
  }
  hash.add(static_cast<double>(system.settable_inputs().size()));
}

void add(Hash& hash, const StepperOptions& options, const CouplingMethod& method) {
  hash.add(options.step_s);
  hash.add(static_cast<int>(options.certify));
  hash.add(options.sizes ? options.sizes->tolerance : 0.0);
  hash.add(options.sizes ? options.sizes->smallest_s : 0.0);
  hash.add(options.sizes ? options.sizes->event_tolerance_s : 0.0);
  hash.add(options.signals_every_s);
  hash.add(static_cast<double>(options.watches.size()));
  if (options.signals != nullptr) {
    for (const SignalGraph::Node& node : options.signals->nodes()) hash.add(node.name);
    hash.add(options.signals->states());
  }
  hash.add(name_of(method));
  if (!method.couples_by_waves()) return;
  const WaveCoupling& waves = method.waves();
  hash.add(waves.stages);
  hash.add(waves.relaxation);
  hash.add(waves.tolerance);
  hash.add(waves.energy_tolerance_J);
  hash.add(waves.acceleration);
  hash.add(waves.rescue_after);
  hash.add(waves.guard ? 1.0 : 0.0);
  hash.add(static_cast<int>(waves.start));
  if (waves.exchange.delay() > 0) hash.add(waves.exchange.delay());
  hash.add(waves.tank.cap_J);
}

std::uint64_t Stepper::fingerprint() const {
  if (fingerprint_ != 0) return fingerprint_;
  for (const Part& part : system().parts()) {
    if (part.component->capabilities().restorable) continue;
    throw std::logic_error(
        fmt::format("part \"{}\" cannot go back to a state that it had before (its component does "
                    "not say that it is restorable): there are no snapshots of this run",
                    part.name));
  }
  Hash hash;
  hash.add("portwave snapshot 1");
  add(hash, system());
  add(hash, options_, method().method);
  for (const Exchanged& own : exchanged_) {
    hash.add(own.part);
    const Component* const present = system().parts()[at(own.part)].component.get();
    hash.add(std::bit_cast<double>(std::uint64_t{reinterpret_cast<std::uintptr_t>(present)}));
  }
  fingerprint_ = hash.value() == 0 ? 1 : hash.value();
  return fingerprint_;
}

void Stepper::archive(StateArchive& archive) {
  engine_->archive(archive);
  if (signals_ != nullptr) {
    signals_->archive(archive);
    archive.value(sampled_);
  }
  if (events_ != nullptr) events_->archive(archive);
}

void Stepper::snapshot(Snapshot& into) const {
  into.fits_ = 0;  // until it is complete
  const std::uint64_t fits = fingerprint();
  StateArchive writer = StateArchive::writer(into.bytes_);
  // A writer changes nothing.
  const_cast<Stepper*>(this)->archive(writer);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  writer.finish();
  into.time_s_ = time_s();
  into.step_index_ = step_index();
  into.fits_ = fits;
}

Snapshot Stepper::snapshot() const {
  Snapshot out;
  snapshot(out);
  return out;
}

void Stepper::restore(const Snapshot& snapshot) {
  if (snapshot.fits_ == 0) {
    throw std::invalid_argument("the snapshot is empty: none has been taken into it");
  }
  if (snapshot.fits_ != fingerprint()) {
    throw std::invalid_argument(
        "the snapshot is of another system, of a stepper with other options, or from before a part "
        "was changed");
  }
  StateArchive reader = StateArchive::reader(snapshot.bytes_);
  archive(reader);
  reader.finish();
}

namespace {

SnapshotHead head_of(std::uint64_t fits, double time_s, std::int64_t step_index,
                     std::span<const std::byte> bytes) {
  SnapshotHead head;
  std::string_view{kVersion}.copy(head.version, sizeof(head.version) - 1);
  head.fits = fits;
  head.time_s = time_s;
  head.step_index = step_index;
  Hash hash;
  hash.add(std::bit_cast<double>(fits));
  hash.add(time_s);
  hash.add(static_cast<double>(step_index));
  hash.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  head.checksum = hash.value();
  return head;
}

}  // namespace

std::vector<std::byte> Snapshot::to_bytes() const {
  const SnapshotHead head = head_of(fits_, time_s_, step_index_, bytes_);
  std::vector<std::byte> out(sizeof(head) + bytes_.size());
  std::memcpy(out.data(), &head, sizeof(head));
  std::ranges::copy(bytes_, out.begin() + sizeof(head));
  return out;
}

Snapshot Snapshot::from_bytes(std::span<const std::byte> bytes) {
  SnapshotHead head;
  if (bytes.size() < sizeof(head)) {
    throw std::invalid_argument("these bytes are no snapshot: there are too few");
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::span<const std::byte> rest = bytes.subspan(sizeof(head));
  const SnapshotHead expected = head_of(head.fits, head.time_s, head.step_index, rest);
  if (std::memcmp(head.magic, expected.magic, sizeof(head.magic)) != 0) {
    throw std::invalid_argument("these bytes are no snapshot");
  }
  if (std::memcmp(head.version, expected.version, sizeof(head.version)) != 0) {
    throw std::invalid_argument("the snapshot is of another version of portwave");
  }
  if (head.checksum != expected.checksum) {
    throw std::invalid_argument("the snapshot is not whole, or was changed");
  }
  Snapshot out;
  out.bytes_.assign(rest.begin(), rest.end());
  out.fits_ = head.fits;
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
  out.exchanged_ = exchanged_;
  out.restore(snapshot());
  return out;
}

}  // namespace portwave
