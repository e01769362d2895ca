#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <portwave/runtime/report/live.hpp>

namespace portwave::cli {

/// Shows a run to browsers on this machine, and to nobody else: it listens on the loopback address,
/// answers requests for the page and its news only, and only where they are addressed to it by that
/// address or as localhost, so that no foreign page reads it. A few at a time.
///
/// One thread serves all connections, and waits for none of them: each has a time by which its request
/// must have come and one by which its answer must have gone, however slowly it goes on, and is closed
/// then. Its end closes all of them.
class LiveServer {
 public:
  static constexpr int kMostReaders = 6;       ///< of news
  static constexpr int kMostConnections = 32;  ///< of all kinds
  static constexpr int kThreads = 1;           ///< that it begins

  /// How long it waits.
  struct Patience {
    std::chrono::milliseconds request{5000};    ///< for all of a request, from the connection on
    std::chrono::milliseconds answer{5000};     ///< until an answer, or some news, have been taken
    std::chrono::milliseconds last_news{1500};  ///< until readers have the last news, at its end
  };

  /// `port` 0: any free port. Errors: std::runtime_error where the system gives no port or no thread.
  LiveServer(int port, const LiveReport& report, Patience patience);
  LiveServer(int port, const LiveReport& report) : LiveServer(port, report, Patience{}) {}
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
