#pragma once

#include <cstddef>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace portwave::files {

/// A file of XML, and where its elements stand. Prefixes of names are of no account.
class XmlFile {
 public:
  /// Errors: ConfigError where it is no XML; `name` stands before it.
  XmlFile(std::string name, std::string text);

  pugi::xml_node root() const { return document_.document_element(); }
  const std::string& name() const { return name_; }
  /// "SystemStructure.ssd, line 12"
  std::string place(pugi::xml_node element) const;

 private:
  std::ptrdiff_t line_at(std::ptrdiff_t offset) const;

  std::string name_, text_;
  std::vector<std::ptrdiff_t> lines_before_;  // each block of the text
  pugi::xml_document document_;
};

/// The name of an element without its prefix.
std::string_view local_name(pugi::xml_node element);
/// The first element of that name below another; null: there is none.
pugi::xml_node child(pugi::xml_node element, std::string_view name);
/// All elements below another; of one name if that is given.
std::vector<pugi::xml_node> children(pugi::xml_node element, std::string_view name = {});
std::string attribute(pugi::xml_node element, const char* name);

/// A number as XML Schema writes it, blanks around it and infinities included.
std::optional<double> number_in(std::string_view text);
/// "true", "1", "false" or "0".
std::optional<bool> truth_in(std::string_view text);

}  // namespace portwave::files
