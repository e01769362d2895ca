#pragma once

namespace portwave::cli {

/// Makes SIGINT, SIGTERM and SIGHUP remove files that are being written before they end the program.
void end_tidily_on_signals();

/// While alive, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program; a second one
/// ends it. A SIGHUP that was ignored before, as under nohup, stays ignored.
/// One at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// The signal that came, or 0.
  int signal() const;
};

}  // namespace portwave::cli
