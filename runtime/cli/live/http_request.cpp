#include "live/http_request.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace portwave::cli {
namespace {

/// The text before `end`, which goes with it; nothing where it does not come.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return before;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

bool is_host(std::string_view name) {
  return std::ranges::equal(name, std::string_view("host"), {}, [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::optional<HttpRequest> parse_request(std::string_view head) {
  const std::string lines = std::string(head) + "\r\n";
  std::string_view rest = lines;
  std::string_view first = take_until(rest, "\r\n").value_or("");
  const auto method = take_until(first, " "), target = take_until(first, " ");
  const bool is_known = method && target && !method->empty() && target->starts_with('/') &&
                        (first == "HTTP/1.1" || first == "HTTP/1.0");
  if (!is_known) return std::nullopt;
  HttpRequest request = {std::string(*method), std::string(target->substr(0, target->find('?'))),
                         ""};
  bool has_host = false;
  while (!rest.empty()) {
    std::string_view line = take_until(rest, "\r\n").value_or("");
    const auto name = take_until(line, ":");
    if (!name || name->empty() || name->find_first_of(" \t\r\n") != std::string_view::npos) {
      return std::nullopt;
    }
    if (!is_host(*name)) continue;
    if (has_host) return std::nullopt;
    has_host = true;
    request.host = without_blanks(line);
  }
  return request;
}

std::string answer_head(int status, std::string_view content_type,
                        std::optional<std::size_t> bytes) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}Connection: close\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
      status, reason_of(status), content_type,
      bytes ? fmt::format("Content-Length: {}\r\n", *bytes) : std::string());
}

}  // namespace portwave::cli
