#include "interrupt.hpp"

#include <atomic>
#include <csignal>

namespace portwave::cli {
namespace {

std::atomic<int> noted_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers may use nothing else");

constexpr int kWatched[] = {SIGINT, SIGTERM, SIGHUP};

void note(int signal) { noted_signal = signal; }

/// The terminal may go away when the program was told to outlive it.
bool outlives_terminal() {
  struct sigaction action = {};
  sigaction(SIGHUP, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // Restart interrupted writes; fall back to the default for the second signal.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : kWatched) {
    if (signal == SIGHUP && outlives_terminal()) continue;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptWatch::InterruptWatch() {
  noted_signal = 0;
  set_handler(note);
}

InterruptWatch::~InterruptWatch() { set_handler(SIG_DFL); }

int InterruptWatch::signal() const { return noted_signal; }

}  // namespace portwave::cli
