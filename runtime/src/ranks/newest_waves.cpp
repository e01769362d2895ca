#include "ranks/newest_waves.hpp"

#include <algorithm>
#include <thread>

namespace portwave {

NewestWaves::NewestWaves(std::span<const std::size_t> sizes, int max_delay)
    : max_delay_(static_cast<std::uint64_t>(max_delay)), inboxes_(sizes.size()) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    inboxes_[i].waves.resize(sizes[i]);
    inboxes_[i].has_come.resize(static_cast<std::size_t>(slots(max_delay)), 0);
  }
}

void NewestWaves::begin(std::uint64_t first) {
  for (Inbox& inbox : inboxes_) {
    inbox.open = first;
    inbox.number = first - 1;
    std::ranges::fill(inbox.has_come, char{0});
  }
}

bool NewestWaves::try_take(NeighbourMessages& messages, int i, std::uint64_t number,
                           std::uint64_t now) {
  if (!messages.arrived(i, number, now)) return false;
  Inbox& inbox = inboxes_[static_cast<std::size_t>(i)];
  if (number > inbox.number) {
    std::ranges::copy(messages.incoming(i, number), inbox.waves.begin());
    inbox.number = number;
  }
  messages.release(i, number);
  has_come(inbox, number) = 1;
  while (has_come(inbox, inbox.open) != 0) {
    has_come(inbox, inbox.open) = 0;
    ++inbox.open;
  }
  return true;
}

void NewestWaves::wait_for(NeighbourMessages& messages, int i, std::uint64_t number) {
  constexpr int kPolite = 200;
  for (int k = 0; !try_take(messages, i, number, NeighbourMessages::kWhatever); ++k) {
    if (k > kPolite) std::this_thread::yield();  // its sender may want this core
  }
}

void NewestWaves::take(NeighbourMessages& messages, std::uint64_t now, std::uint64_t last) {
  for (int i = 0; i < static_cast<int>(inboxes_.size()); ++i) {
    Inbox& inbox = inboxes_[static_cast<std::size_t>(i)];
    for (std::uint64_t n = inbox.open; n <= last && n < end(inbox);
         n = std::max(n + 1, inbox.open)) {
      if (has_come(inbox, n) == 0) try_take(messages, i, n, now);
    }
    while (inbox.number + max_delay_ < now) {
      const std::uint64_t wanted = now - max_delay_;
      const bool may_ask = wanted >= inbox.open && wanted < end(inbox);
      wait_for(messages, i, may_ask && has_come(inbox, wanted) == 0 ? wanted : inbox.open);
    }
  }
}

void NewestWaves::drain(NeighbourMessages& messages, std::uint64_t last) {
  for (int i = 0; i < static_cast<int>(inboxes_.size()); ++i) {
    Inbox& inbox = inboxes_[static_cast<std::size_t>(i)];
    while (inbox.open <= last) wait_for(messages, i, inbox.open);
  }
}

}  // namespace portwave
