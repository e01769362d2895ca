#ifdef PORTWAVE_URDF

#include "robot/xml_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

#include "line/verb.hpp"

namespace portwave::cli {
namespace {

constexpr double kAny = 1e100;

}  // namespace

const XmlReader::Element& XmlReader::outermost(tinyxml2::XMLDocument& document,
                                               const std::string& text) {
  document.Parse(text.data(), text.size());
  if (document.ErrorID() == tinyxml2::XML_ERROR_EMPTY_DOCUMENT) {
    throw ConfigError("", "is empty: URDF has an element <robot>, MJCF one <mujoco>");
  }
  if (document.Error()) {
    throw ConfigError(fmt::format("line {}", document.ErrorLineNum()),
                      fmt::format("is no XML: {}", document.ErrorStr()));
  }
  const Element* const root = document.RootElement();
  if (root == nullptr) throw ConfigError("", "has no element");
  return *root;
}

std::string XmlReader::place_of(const Element& one) {
  const char* const name = one.Attribute("name");
  return name == nullptr ? fmt::format("line {}, <{}>", one.GetLineNum(), one.Name())
                         : place_of(one.GetLineNum(), one.Name(), name);
}

std::string XmlReader::place_of(int line, std::string_view kind, const std::string& name) {
  return fmt::format("line {}, <{}> {}", line, kind, in_quotes(name));
}

std::optional<std::vector<double>> XmlReader::numbers_in(const Element& one, std::string_view name,
                                                         const std::string& text) {
  std::vector<double> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, at - begin);
    if (!RealRange{-kAny, kAny}.defect(word).empty()) {
      fail(one, fmt::format("{}: {} is not a number", name, in_quotes(std::string(word))));
      return std::nullopt;
    }
    out.push_back(real(word));
  }
  return out;
}

std::optional<std::vector<double>> XmlReader::numbers(const Element& one, const char* name,
                                                      std::size_t count) {
  const char* const text = one.Attribute(name);
  if (text == nullptr) return std::nullopt;
  auto out = numbers_in(one, name, text);
  if (!out || out->size() == count) return out;
  report_count(one, name, count, text);
  return std::nullopt;
}

void XmlReader::report_count(const Element& one, std::string_view name, std::size_t count,
                             const std::string& text) {
  fail(one, fmt::format("{} must be {} number{}, got {}", name, count, count == 1 ? "" : "s",
                        in_quotes(text)));
}

std::optional<double> XmlReader::number(const Element& one, const char* name) {
  const auto own = numbers(one, name, 1);
  return own ? std::optional(own->front()) : std::nullopt;
}

double XmlReader::required_number(const Element& one, const char* name) {
  if (one.Attribute(name) == nullptr) fail(one, fmt::format("has no {}", name));
  return number(one, name).value_or(0.0);
}

double XmlReader::number_from_0(const Element& one, const char* name) {
  const double out = number(one, name).value_or(0.0);
  if (out < 0.0) fail(one, fmt::format("{} must be >= 0, got {}", name, out));
  return out;
}

}  // namespace portwave::cli

#endif
