#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace portwave::cli {

/// The head of a request, as far as the live view wants to know.
struct HttpRequest {
  std::string method;
  std::string path;  ///< without what follows a "?"
  std::string host;  ///< empty where none is said
};

/// Of the lines of a head, without the empty one at its end. Nothing where it is none: it must be of
/// HTTP/1, its lines must end with CR LF, and it must say the host once at most.
std::optional<HttpRequest> parse_request(std::string_view head);

/// A head with its end, for an answer of so many bytes, after which the connection is closed; without
/// `bytes` they go on until then.
std::string answer_head(int status, std::string_view content_type,
                        std::optional<std::size_t> bytes);

}  // namespace portwave::cli
