#pragma once

#include <memory>
#include <string>

#include <portwave/runtime/report/live.hpp>

namespace portwave::cli {

/// Whether this program can show runs to browsers: it was built with what that needs.
/// Errors: std::runtime_error where it cannot and is to.
void expect_live_server(bool is_wanted);

/// Shows a run to browsers on this machine, and to nobody else: it listens on the loopback address,
/// answers requests for the page and its news only, and only where they are addressed to it by that
/// address or as localhost, so that no foreign page reads it. A few at a time.
class LiveServer {
 public:
  static constexpr int kMostReaders = 6;             ///< of news; each has a thread
  static constexpr int kThreads = kMostReaders + 4;  ///< that it begins

  /// `port` 0: one that is free. Errors: std::runtime_error where the port or the threads cannot be had.
  LiveServer(int port, const LiveReport& report);
  /// Waits a moment until browsers have the last news.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  std::string address() const;  ///< "http://127.0.0.1:8080/"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave::cli
