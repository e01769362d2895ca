#include "scenario/reader/key_table.hpp"

namespace portwave::scenario_file {

namespace form {

Form<double> number(const NumberRange& range) {
  return {[range](const Node& node) { return node.number(range); }, range_schema(range)};
}

Form<double> number_judged_later(Json schema) {
  return {[](const Node& node) { return node.number(); }, std::move(schema)};
}

Form<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum) {
  return {[=](const Node& node) { return node.integer(minimum, maximum); },
          scenario_file::integer(minimum, maximum)};
}

Form<bool> boolean() {
  return {[](const Node& node) { return node.boolean(); }, scenario_file::boolean()};
}

Form<std::string> text() {
  return {[](const Node& node) { return node.text(); }, scenario_file::text()};
}

Form<std::string> name() {
  return {[](const Node& node) {
            auto text = node.text();
            if (!text || !text->empty()) return text;
            node.fail("must not be empty");
            return std::optional<std::string>();
          },
          Json{{"type", "string"}, {"minLength", 1}}};
}

}  // namespace form
}  // namespace portwave::scenario_file
