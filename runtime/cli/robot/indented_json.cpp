#include "robot/indented_json.hpp"

namespace portwave::cli {

std::string text_of(const nlohmann::ordered_json& value, std::size_t indent) {
  const std::string line = value.dump();
  if (!value.is_structured() || line.size() + indent <= 100) {
    std::string out;
    bool in_text = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (in_text && line[i] == '\\')
        out += line[++i];  // of what a text escapes
      else if (line[i] == '"')
        in_text = !in_text;
      else if (!in_text && (line[i] == ',' || line[i] == ':'))
        out += ' ';
    }
    return out;
  }
  const std::string margin(indent + 2, ' ');
  std::string out(1, value.is_object() ? '{' : '[');
  const char* separator = "\n";
  for (const auto& [key, own] : value.items()) {
    out += separator + margin;
    if (value.is_object()) out += nlohmann::ordered_json(key).dump() + ": ";
    out += text_of(own, indent + 2);
    separator = ",\n";
  }
  return out + "\n" + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace portwave::cli
