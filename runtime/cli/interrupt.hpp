#pragma once

namespace portwave::cli {

/// While alive, SIGINT and SIGTERM are noted instead of ending the program; a second one ends it.
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
