#include "live/interrupt.hpp"

#include <atomic>
#include <csignal>

#include <portwave/runtime/output/file_recorder.hpp>

namespace portwave::cli {
namespace {

std::atomic<int> noted_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers may use nothing else");

constexpr int kWatched[] = {SIGINT, SIGTERM, SIGHUP};

/// Ends the program as the signal does, without leaving half of a file.
void end_by(int signal) {
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // as soon as the handler returns
}

/// The second one ends it.
void note(int signal) {
  if (noted_signal != 0) return end_by(signal);
  noted_signal = signal;
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // of interrupted writes
  sigemptyset(&action.sa_mask);
  for (const int signal : kWatched) {
    // The terminal may go away when the program was told to outlive it.
    if (signal == SIGHUP && is_ignored(SIGHUP)) continue;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void end_tidily_on_signals() {
  for (const int signal : kWatched) {
    if (!is_ignored(signal)) std::signal(signal, end_by);
  }
}

InterruptWatch::InterruptWatch() {
  noted_signal = 0;
  set_handler(note);
}

InterruptWatch::~InterruptWatch() { set_handler(end_by); }

int InterruptWatch::signal() const { return noted_signal; }

}  // namespace portwave::cli
