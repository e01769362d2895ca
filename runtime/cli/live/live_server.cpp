#include "live/live_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "live/http_request.hpp"
#include "live/signals_blocked.hpp"

namespace portwave::cli {
namespace {

using namespace std::chrono_literals;
using ServerClock = std::chrono::steady_clock;

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kLongestHead = 16384;
constexpr int kSystemBytes = 16384;  // of an answer, with the system
constexpr std::chrono::milliseconds kLook = 50ms, kNewsEvery = 500ms, kBeatEvery = 5s,
                                    kFarewell = 1s;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

/// A descriptor that is closed at the end.
class OwnDescriptor {
 public:
  explicit OwnDescriptor(int number = -1) : number_(number) {}
  OwnDescriptor(OwnDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnDescriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }

 private:
  int number_;
};

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

OwnDescriptor listen_on(int port) {
  OwnDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;  // a port is free when its last connection is about to end
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.number(), LiveServer::kMostConnections) != 0) {
    throw std::runtime_error(fmt::format(
        "cannot listen on port {} of {}: it is taken, or may not be used", port, kLoopback));
  }
  return socket;
}

int port_of(const OwnDescriptor& socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// One connection: a request, an answer, and its end.
struct Visit {
  enum class Stage {
    asks,    ///< its request has not come as a whole
    taken,   ///< its answer goes
    told,    ///< news come as long as there are any
    leaves,  ///< all has gone; what still comes is thrown away
    gone,
  };
  OwnDescriptor socket;
  Stage stage = Stage::asks;
  ServerClock::time_point
      until;  ///< closed then; where it is told news and took all: the next beat
  std::string in = {}, out = {};
  std::size_t sent = 0;  ///< of `out`
  std::int64_t version = -1;
  ServerClock::time_point told_at = {};
  bool has_last = false;      ///< the last news are in `out`
  bool asks_no_more = false;  ///< its side is closed

  bool has_to_send() const { return sent < out.size(); }
};

}  // namespace

struct LiveServer::Impl {
  Impl(int wanted, const LiveReport& shown, Patience how_long)
      : report(shown),
        patience(how_long),
        listener(listen_on(wanted)),
        port(port_of(listener)),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const SignalsBlocked blocked;
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      throw std::runtime_error(
          "cannot show the run: --serve needs a thread, and the system gives this user no more");
    }
  }

  ~Impl() {
    const auto until = ServerClock::now() + patience.last_news;
    while (report.has_ended() && waiting.load() > 0 && ServerClock::now() < until) {
      std::this_thread::sleep_for(kLook / 5);
    }
    ending = true;
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake.number(), &one, sizeof one));
    thread.join();
  }

  /// Serves until the end. A failure here ends the view, not the run.
  void run() noexcept {
    try {
      while (!ending) {
        wait();
        if (ending) break;
        admit();
        for (Visit& visit : visits) attend(visit);
        std::erase_if(visits, [](const Visit& own) { return own.stage == Visit::Stage::gone; });
        count();
      }
    } catch (const std::exception&) {
    }
    visits.clear();
    waiting = 0;
  }

  /// Waits for something to arrive, or for the time to look at the clock.
  void wait() {
    std::vector<pollfd> watched = {{wake.number(), POLLIN, 0}, {listener.number(), POLLIN, 0}};
    if (ServerClock::now() < deaf_until) watched[1].fd = -1;
    for (const Visit& visit : visits) {
      const int events = (visit.asks_no_more ? 0 : POLLIN) | (visit.has_to_send() ? POLLOUT : 0);
      watched.push_back({visit.socket.number(), static_cast<short>(events), 0});
    }
    const bool is_idle = visits.empty() && watched[1].fd >= 0;
    ::poll(watched.data(), watched.size(), is_idle ? -1 : static_cast<int>(kLook.count()));
  }

  void admit() {
    for (;;) {
      OwnDescriptor socket(
          ::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.number() < 0) {
        // For example, no descriptors are left: asking again at once would not help.
        if (errno != EAGAIN && errno != EINTR) deaf_until = ServerClock::now() + kLook;
        return;
      }
      if (visits.size() >= kMostConnections && !make_room()) return;  // it is closed again
      // Data that nobody reads waits here, where it has a time limit, and not in the system.
      ::setsockopt(socket.number(), SOL_SOCKET, SO_SNDBUF, &kSystemBytes, sizeof kSystemBytes);
      visits.push_back(
          {.socket = std::move(socket), .until = ServerClock::now() + patience.request});
    }
  }

  /// Sends away who has been the longest without having asked for anything.
  bool make_room() {
    const auto first = std::ranges::find(visits, Visit::Stage::asks, &Visit::stage);
    if (first == visits.end()) return false;
    visits.erase(first);
    return true;
  }

  void attend(Visit& visit) {
    receive(visit);
    if (visit.stage == Visit::Stage::told) tell_news(visit);
    send(visit);
    if (visit.stage == Visit::Stage::taken && !visit.has_to_send()) say_farewell(visit);
    if (visit.stage == Visit::Stage::told && visit.has_last && !visit.has_to_send()) {
      say_farewell(visit);
    }
    if (visit.until < ServerClock::now()) visit.stage = Visit::Stage::gone;
  }

  void receive(Visit& visit) {
    char bytes[4096];
    for (int pieces = 0; pieces < 8 && !visit.asks_no_more; ++pieces) {
      const ssize_t count = ::recv(visit.socket.number(), bytes, sizeof bytes, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) {
        // Who has asked may have nothing more to say and still wait for the answer.
        visit.asks_no_more = true;
        const bool waits = count == 0 && visit.stage == Visit::Stage::taken;
        if (!waits) visit.stage = Visit::Stage::gone;
        return;
      }
      if (visit.stage != Visit::Stage::asks) continue;
      visit.in.append(bytes, static_cast<std::size_t>(count));
      const std::size_t end = visit.in.find(kEndOfHead);
      if (end != std::string::npos) {
        answer(visit, std::string_view(visit.in).substr(0, end));
      } else if (visit.in.size() > kLongestHead) {
        refuse(visit, 431, "the request is too long\n");
      }
    }
  }

  void answer(Visit& visit, std::string_view head) {
    const auto request = parse_request(head);
    if (!request) return refuse(visit, 400, "this is no request\n");
    const bool is_own = request->host == fmt::format("{}:{}", kLoopback, port) ||
                        request->host == fmt::format("localhost:{}", port);
    if (!is_own) return refuse(visit, 403, "this server answers on its own address only\n");
    const bool is_head = request->method == "HEAD";
    if (request->method != "GET" && !is_head) {
      return refuse(visit, 405, "there is nothing to change here\n");
    }
    if (request->path == "/") return show_page(visit, is_head);
    if (request->path != "/events") return refuse(visit, 404, "there is no such page\n");
    const auto readers = std::ranges::count(visits, Visit::Stage::told, &Visit::stage);
    if (readers >= kMostReaders) return refuse(visit, 503, "too many look already\n");
    take(visit, 200, "text/event-stream", std::nullopt, is_head);
    if (!is_head) visit.stage = Visit::Stage::told;
  }

  void show_page(Visit& visit, bool is_head) {
    try {
      take(visit, 200, "text/html; charset=utf-8", report.page("events"), is_head);
    } catch (const std::runtime_error&) {
      refuse(visit, 500, "the page cannot be made\n");
    }
  }

  void refuse(Visit& visit, int status, std::string_view why) {
    take(visit, status, "text/plain", std::string(why), false);
  }

  void take(Visit& visit, int status, std::string_view type, std::optional<std::string> text,
            bool is_head) {
    visit.in.clear();
    visit.out = answer_head(status, type, text ? std::optional(text->size()) : std::nullopt);
    if (text && !is_head) visit.out += *text;
    visit.stage = Visit::Stage::taken;
    visit.until = ServerClock::now() + patience.answer;
  }

  /// Puts the next news in, if there are any and all before have been taken.
  void tell_news(Visit& visit) {
    if (visit.has_to_send() || visit.has_last) return;
    const auto now = ServerClock::now();
    const bool is_last = report.has_ended();
    const std::int64_t version = report.version();
    const auto since = now - visit.told_at;
    std::string text;
    if (is_last || (version != visit.version && (visit.version < 0 || since >= kNewsEvery))) {
      text = "data: " + report.news() + "\n\n";
    } else if (since >= kBeatEvery) {
      text = ":\n\n";
    }
    if (!text.empty()) {
      visit.version = version;
      visit.told_at = now;
      visit.has_last = is_last;
      visit.out = std::move(text);
      visit.sent = 0;
    }
    visit.until = now + std::max<std::chrono::milliseconds>(patience.answer, 2 * kBeatEvery);
    if (visit.has_to_send()) visit.until = now + patience.answer;
  }

  void send(Visit& visit) {
    while (visit.has_to_send() && visit.stage != Visit::Stage::gone) {
      const ssize_t count = ::send(visit.socket.number(), visit.out.data() + visit.sent,
                                   visit.out.size() - visit.sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) {
        visit.stage = Visit::Stage::gone;
        return;
      }
      visit.sent += static_cast<std::size_t>(count);
    }
  }

  /// Closed at once, an answer might be lost to those who have not read it.
  void say_farewell(Visit& visit) {
    ::shutdown(visit.socket.number(), SHUT_WR);
    visit.stage = Visit::Stage::leaves;
    visit.until = ServerClock::now() + kFarewell;
  }

  void count() {
    waiting = static_cast<int>(std::ranges::count_if(visits, [](const Visit& own) {
      return own.stage == Visit::Stage::taken || own.stage == Visit::Stage::told;
    }));
  }

  const LiveReport& report;
  const Patience patience;
  OwnDescriptor listener;
  int port = 0;
  OwnDescriptor wake;
  std::atomic<bool> ending = false;
  std::atomic<int> waiting = 0;  ///< for an answer or for news
  // Used by the server's thread.
  std::vector<Visit> visits;
  ServerClock::time_point deaf_until = {};
  std::thread thread;  // the last one
};

LiveServer::LiveServer(int port, const LiveReport& report, Patience patience)
    : impl_(std::make_unique<Impl>(port, report, patience)) {}
LiveServer::~LiveServer() = default;

std::string LiveServer::address() const {
  return fmt::format("http://{}:{}/", kLoopback, impl_->port);
}

}  // namespace portwave::cli
