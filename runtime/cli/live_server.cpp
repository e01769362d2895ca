#include "live_server.hpp"

#include <stdexcept>

#ifndef PORTWAVE_HTTP

namespace portwave::cli {

struct LiveServer::Impl {};

void expect_live_server(bool is_wanted) {
  if (is_wanted) {
    throw std::runtime_error(
        "this program was built without cpp-httplib, which --serve needs (libcpp-httplib-dev)");
  }
}

LiveServer::LiveServer(int, const LiveReport&) { expect_live_server(true); }
LiveServer::~LiveServer() = default;
std::string LiveServer::address() const { return {}; }

}  // namespace portwave::cli

#else

#include <atomic>
#include <chrono>
#include <cstdint>
#include <httplib.h>
#include <thread>

#include <fmt/format.h>

#include <portwave/runtime/execution/arena.hpp>

#include "signals_blocked.hpp"

namespace portwave::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kMostReaders = LiveServer::kMostReaders;
constexpr std::chrono::milliseconds kLook = 50ms, kNewsEvery = 500ms, kBeatEvery = 5s,
                                    kLastNewsWithin = 1500ms;

}  // namespace

void expect_live_server(bool) {}

struct LiveServer::Impl {
  Impl(int wanted, const LiveReport& shown) : report(shown) {
    // Beside these the one that listens, in which it could not be said that there is none for them.
    server.new_task_queue = [] { return new httplib::ThreadPool(kThreads - 1); };
    if (threads_to_be_had(kThreads) < kThreads) {
      throw std::runtime_error(fmt::format(
          "cannot show the run: --serve needs {} threads, and this user may not have as many",
          kThreads));
    }
    server.set_payload_max_length(1 << 16);
    server.set_read_timeout(5);
    server.set_write_timeout(5);
    server.set_keep_alive_max_count(20);
    server.set_keep_alive_timeout(1);
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"X-Frame-Options", "DENY"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Resource-Policy", "same-origin"}});
    server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& out) {
      return admit(request, out);
    });
    server.Get("/", [this](const httplib::Request&, httplib::Response& out) {
      out.set_content(report.page("events"), "text/html; charset=utf-8");
    });
    server.Get("/events",
               [this](const httplib::Request&, httplib::Response& out) { tell_news(out); });
    // Not to share a port with another process.
    server.set_socket_options([](socket_t socket) {
      int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    port = wanted > 0 ? (server.bind_to_port(kLoopback, wanted) ? wanted : -1)
                      : server.bind_to_any_port(kLoopback);
    if (port <= 0) {
      throw std::runtime_error(fmt::format(
          "cannot listen on port {} of {}: it is taken, or may not be used", wanted, kLoopback));
    }
    const SignalsBlocked blocked;
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::sleep_for(1ms);
  }

  ~Impl() {
    const auto until = std::chrono::steady_clock::now() + kLastNewsWithin;
    while (report.has_ended() && readers.load() > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLook);
    }
    ending = true;
    server.stop();
    thread.join();
  }

  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& out) {
    using Answer = httplib::Server::HandlerResponse;
    const std::string host = request.get_header_value("Host");
    const bool is_own =
        host == fmt::format("{}:{}", kLoopback, port) || host == fmt::format("localhost:{}", port);
    if (!is_own) {
      out.status = 403;
      out.set_content("this server answers on its own address only\n", "text/plain");
      return Answer::Handled;
    }
    if (request.method != "GET" && request.method != "HEAD") {
      out.status = 405;
      out.set_content("there is nothing to change here\n", "text/plain");
      return Answer::Handled;
    }
    return Answer::Unhandled;
  }

  void tell_news(httplib::Response& out) {
    if (readers.fetch_add(1) >= kMostReaders) {
      --readers;
      out.status = 503;
      out.set_content("too many look already\n", "text/plain");
      return;
    }
    out.set_chunked_content_provider(
        "text/event-stream",
        [this, told = std::int64_t{-1}](std::size_t, httplib::DataSink& sink) mutable {
          return send(told, sink);
        },
        [this](bool) { --readers; });
  }

  /// The next news; false where nobody reads any more.
  bool send(std::int64_t& told, httplib::DataSink& sink) {
    const auto since = std::chrono::steady_clock::now();
    for (;;) {
      const auto waited = std::chrono::steady_clock::now() - since;
      const bool is_last = report.has_ended();
      const std::int64_t version = report.version();
      if (ending) return false;
      if (version != told && (is_last || told < 0 || waited >= kNewsEvery)) {
        told = version;
        const std::string text = "data: " + report.news() + "\n\n";
        if (!sink.write(text.data(), text.size())) return false;
        if (is_last) sink.done();
        return true;
      }
      if (waited >= kBeatEvery) return sink.write(":\n\n", 3);
      std::this_thread::sleep_for(kLook);
    }
  }

  const LiveReport& report;
  httplib::Server server;
  int port = 0;
  std::atomic<int> readers = 0;
  std::atomic<bool> ending = false;
  std::thread thread;
};

LiveServer::LiveServer(int port, const LiveReport& report)
    : impl_(std::make_unique<Impl>(port, report)) {}
LiveServer::~LiveServer() = default;

std::string LiveServer::address() const {
  return fmt::format("http://{}:{}/", kLoopback, impl_->port);
}

}  // namespace portwave::cli

#endif
