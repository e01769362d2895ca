#include "adapters/fmi/fmu_message.hpp"

#include <algorithm>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    put(static_cast<std::uint64_t>(run.references.size()));
    put_bytes(run.references.data(), run.references.size() * sizeof(Reference));
  }
}

std::size_t MessageWriter::size_of(const VariableList& list) {
  constexpr std::size_t kRun = sizeof(std::uint32_t) + sizeof(std::uint64_t);
  return sizeof(std::uint64_t) + kRun * list.runs().size() + sizeof(Reference) * list.size();
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
    const auto type = static_cast<VariableType>(take<std::uint32_t>());
    for (auto count = take<std::uint64_t>(); count > 0; --count) list.add(type, take<Reference>());
  }
}

}  // namespace portwave::fmi
