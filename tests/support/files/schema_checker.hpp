#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace portwave::testing {

/// A JSON Schema as valijson, an implementation that shares nothing with ours, understands it.
class SchemaChecker {
 public:
  explicit SchemaChecker(const nlohmann::ordered_json& schema) {
    const auto plain = nlohmann::json::parse(schema.dump());
    const valijson::adapters::NlohmannJsonAdapter adapter(plain);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
  }

  bool accepts(const std::string& scenario) const {
    const auto document = nlohmann::json::parse(scenario);
    const valijson::adapters::NlohmannJsonAdapter target(document);
    valijson::Validator validator;
    return validator.validate(schema_, target, nullptr);
  }

 private:
  valijson::Schema schema_;
};

}  // namespace portwave::testing
