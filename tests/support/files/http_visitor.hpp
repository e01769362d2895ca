#pragma once

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace portwave::testing {

/// A connection to a server on this machine, byte by byte. It never waits longer than a test may take.
class HttpVisitor {
 public:
  /// `room`: bytes that the system may keep for it unread; 0: as many as it likes.
  explicit HttpVisitor(int port, int room = 0) : port_(port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  HttpVisitor(HttpVisitor&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), port_(other.port_) {}
  ~HttpVisitor() { leave(); }
  HttpVisitor(const HttpVisitor&) = delete;
  HttpVisitor& operator=(const HttpVisitor&) = delete;

  /// False where the other side takes nothing any more.
  bool send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// A whole request. `host` empty: that of the server.
  bool ask(const std::string& path, const std::string& method = "GET",
           const std::string& host = {}) const {
    const std::string own = host.empty() ? "127.0.0.1:" + std::to_string(port_) : host;
    return send(method + " " + path + " HTTP/1.1\r\nHost: " + own + "\r\n\r\n");
  }
  /// It says that nothing more comes from it, and still listens.
  void say_no_more() const { ::shutdown(socket_, SHUT_WR); }
  void leave() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  /// Reads until `text` has come, or the end. Throws where neither comes.
  std::string read_until(const std::string& text) const {
    std::string all;
    while (text.empty() || all.find(text) == std::string::npos) {
      pollfd watched = {socket_, POLLIN, 0};
      if (::poll(&watched, 1, kMostWait_ms) == 0) throw std::runtime_error("it goes on, silently");
      char bytes[4096];
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;  // the end, or it was reset
      all.append(bytes, static_cast<std::size_t>(count));
    }
    return all;
  }
  std::string read_all() const { return read_until(""); }

 private:
  static constexpr int kMostWait_ms = 60'000;
  int socket_;
  int port_;
};

/// The port in "http://127.0.0.1:8080/".
inline int port_in(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

}  // namespace portwave::testing
