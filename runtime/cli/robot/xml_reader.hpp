#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tinyxml2.h>
#include <vector>

#include <portwave/subsystems/base/error.hpp>

namespace portwave::cli {

/// Reads elements of XML and collects their defects, each with its line and element.
class XmlReader {
 protected:
  using Element = tinyxml2::XMLElement;

  /// The outermost element. Errors: ConfigError where there is none, or the text is no XML.
  static const Element& outermost(tinyxml2::XMLDocument& document, const std::string& text);

  static std::string place_of(const Element& one);
  static std::string place_of(int line, std::string_view kind, const std::string& name);

  void fail(const Element& one, std::string what) {
    issues_.push_back({place_of(one), std::move(what)});
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }

  /// The numbers in the text of an attribute or element, parted by blanks; none if one is none.
  std::optional<std::vector<double>> numbers_in(const Element& one, std::string_view name,
                                                const std::string& text);
  /// None if the attribute is absent or has a defect.
  std::optional<std::vector<double>> numbers(const Element& one, const char* name,
                                             std::size_t count);
  std::optional<double> number(const Element& one, const char* name);
  double required_number(const Element& one, const char* name);
  /// 0 where absent.
  double number_from_0(const Element& one, const char* name);

  void report_count(const Element& one, std::string_view name, std::size_t count,
                    const std::string& text);

  Issues issues_;
  std::vector<std::string> notes_;
};

}  // namespace portwave::cli
