#include "adapters/fmi/process/fmu_message.hpp"

#include <algorithm>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace portwave::fmi {
namespace {

/// Sleeps while the word has this value, for at most so long. The word may be shared among processes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t value,
              std::chrono::nanoseconds at_most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec wait = {};
  wait.tv_sec = static_cast<std::time_t>(seconds.count());
  wait.tv_nsec = static_cast<long>((at_most - seconds).count());
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &wait, nullptr, 0);
}

}  // namespace

void Doorbell::ring() {
  count_.fetch_add(1);
  if (sleeps_.load() != 0) ::syscall(SYS_futex, &count_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Doorbell::wait(std::uint32_t seen, Clock::time_point until) {
  sleeps_.store(1);
  while (count_.load() == seen) {
    const auto left = until - Clock::now();
    if (left <= Clock::duration::zero()) break;
    sleep_on(count_, seen, std::min<std::chrono::nanoseconds>(left, std::chrono::hours(1)));
  }
  sleeps_.store(0);
  return rung() != seen;
}

void MessageWriter::put_list(const VariableList& list) {
  put(static_cast<std::uint64_t>(list.runs().size()));
  for (const VariableList::Run& run : list.runs()) {
    put(static_cast<std::uint32_t>(run.type));
    put(static_cast<std::uint32_t>(run.is_discrete) | static_cast<std::uint32_t>(run.is_within)
                                                          << 1);
    put(run.clocks);
    put(static_cast<std::uint64_t>(run.references.size()));
    put_bytes(run.references.data(), run.references.size() * sizeof(Reference));
    put_text(run.array);
    put(static_cast<std::uint64_t>(run.elements));
    put(static_cast<std::uint64_t>(run.places.size()));
    put_bytes(run.places.data(), run.places.size() * sizeof(std::uint64_t));
  }
}

std::size_t MessageWriter::size_of(const VariableList& list) {
  constexpr std::size_t kRun = 2 * sizeof(std::uint32_t) + 5 * sizeof(std::uint64_t);
  std::size_t bytes = sizeof(std::uint64_t);
  for (const VariableList::Run& run : list.runs()) {
    bytes += kRun + run.references.size() * sizeof(Reference) + run.array.size() +
             run.places.size() * sizeof(std::uint64_t);
  }
  return bytes;
}

void MessageWriter::put_needs(const LibraryNeeds& needs) {
  put(static_cast<std::uint32_t>(needs.version));
  for (const bool own : {needs.saves_state, needs.writes_state, needs.configures, needs.has_events,
                         needs.has_clocks})
    put(static_cast<std::uint32_t>(own));
  put(needs.types);
}

void MessageWriter::put_uses(const InstanceUses& uses) {
  for (const bool own : {uses.events, uses.early_return, uses.intermediate, uses.any_step})
    put(static_cast<std::uint32_t>(own));
  put_list(uses.watched);
  put_list(uses.clocked);
  put(static_cast<std::uint64_t>(uses.clocks.size()));
  for (const ClockUse& own : uses.clocks) {
    put_text(own.name);
    put(own.reference);
    put(own.bit);
    put(static_cast<std::uint32_t>(own.is_output));
    put(static_cast<std::uint32_t>(own.asks_interval));
    put(own.interval_s);
    put(own.shift_s);
  }
}

std::size_t MessageWriter::size_of(const InstanceUses& uses) {
  constexpr std::size_t kFlags = 4 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  constexpr std::size_t kClock = 3 * sizeof(std::uint32_t) + 4 * sizeof(std::uint64_t);
  std::size_t bytes = kFlags + size_of(uses.watched) + size_of(uses.clocked);
  for (const ClockUse& own : uses.clocks) bytes += kClock + own.name.size();
  return bytes;
}

std::string MessageReader::take_text() {
  const auto count = take<std::uint64_t>();
  if (count > left_.size()) throw std::runtime_error("a text is cut off");
  std::string text(count, '\0');
  take_bytes(text.data(), count);
  return text;
}

void MessageReader::take_list(VariableList& list) {
  list.clear();
  for (auto runs = take<std::uint64_t>(); runs > 0; --runs) {
    VariableList::Run run;
    run.type = static_cast<VariableType>(take<std::uint32_t>());
    const auto flags = take<std::uint32_t>();
    run.is_discrete = (flags & 1) != 0;
    run.is_within = (flags & 2) != 0;
    run.clocks = take<ClockMask>();
    take_numbers(run.references);
    run.array = take_text();
    run.elements = take<std::uint64_t>();
    take_numbers(run.places);
    for (const std::uint64_t place : run.places) {
      if (place >= run.elements) throw std::runtime_error("an element that its array has not");
    }
    list.add_run(std::move(run));
  }
}

LibraryNeeds MessageReader::take_needs() {
  LibraryNeeds needs;
  needs.version = static_cast<Version>(take<std::uint32_t>());
  for (bool* const own : {&needs.saves_state, &needs.writes_state, &needs.configures,
                          &needs.has_events, &needs.has_clocks})
    *own = take<std::uint32_t>() != 0;
  needs.types = take<std::uint32_t>();
  return needs;
}

InstanceUses MessageReader::take_uses() {
  InstanceUses uses;
  for (bool* const own : {&uses.events, &uses.early_return, &uses.intermediate, &uses.any_step})
    *own = take<std::uint32_t>() != 0;
  take_list(uses.watched);
  take_list(uses.clocked);
  for (auto count = take<std::uint64_t>(); count > 0; --count) {
    ClockUse own;
    own.name = take_text();
    own.reference = take<Reference>();
    own.bit = take<ClockMask>();
    own.is_output = take<std::uint32_t>() != 0;
    own.asks_interval = take<std::uint32_t>() != 0;
    own.interval_s = take<double>();
    own.shift_s = take<double>();
    uses.clocks.push_back(std::move(own));
  }
  return uses;
}

}  // namespace portwave::fmi
