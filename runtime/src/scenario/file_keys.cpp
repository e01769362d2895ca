#include "scenario/file_keys.hpp"

#include <utility>

#include "scenario/files/plugin_list.hpp"
#include "scenario/settings/settings.hpp"
#include "scenario/settings/signal_keys.hpp"
#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

/// `signals`: the schema of that section, which follows from the kinds of blocks that there are now.
KeyTable<FileKeys> file_keys_with(Json signals) {
  return KeyTable<FileKeys>({
      optional_key("$schema", "this schema", to(&FileKeys::schema, form::text())),
      required_key("name", "name of the scenario", to(&FileKeys::name, form::name())),
      optional_key("description", "a text for people", to(&FileKeys::description, form::text())),
      optional_key("plugins", "", later(&FileKeys::plugins, plugins_schema())),
      required_key("time", "", later(&FileKeys::time, time_schema())),
      optional_key("parameters", "", elsewhere<FileKeys>(variables_schema("values by name"))),
      optional_key("assemblies", "", elsewhere<FileKeys>(assemblies_schema())),
      required_key("subsystems", "", later(&FileKeys::subsystems, list(Json::object(), 1))),
      optional_key("couplings", "", later(&FileKeys::couplings, list(reference("coupling")))),
      optional_key("method", "", later(&FileKeys::method, method_schema())),
      optional_key("signals", "", later(&FileKeys::signals, std::move(signals))),
      optional_key("events", "", later(&FileKeys::events, events_schema())),
      optional_key("outputs", "", later(&FileKeys::outputs, outputs_schema())),
  });
}

}  // namespace

const KeyTable<FileKeys>& file_keys() {
  static const KeyTable<FileKeys> keys = file_keys_with(Json());
  return keys;
}

Json file_schema() { return file_keys_with(signals_schema()).schema(); }

}  // namespace portwave::scenario_file
