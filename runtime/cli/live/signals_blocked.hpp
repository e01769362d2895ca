#pragma once

#include <csignal>
#include <new>
#include <system_error>
#include <thread>

namespace portwave::cli {

/// While alive, threads that are made leave all signals to the others: a signal is to end what the
/// main thread waits for.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

/// A thread that shows something. Of memory that is out the main thread will find out, and says so. Empty where the
/// system gives no thread: nothing is shown.
template <class Run>
std::thread thread_to_show(Run run) {
  const SignalsBlocked blocked;
  try {
    return std::thread([run] {
      try {
        run();
      } catch (const std::bad_alloc&) {
      }
    });
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace portwave::cli
