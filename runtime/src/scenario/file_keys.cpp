#include "scenario/file_keys.hpp"

#include <utility>

#include "scenario/files/plugin_list.hpp"
#include "scenario/settings/events.hpp"
#include "scenario/settings/method_schema.hpp"
#include "scenario/settings/settings.hpp"
#include "scenario/settings/signal_keys.hpp"
#include "scenario/templates/assembly_list.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

/// `signals`: the schema of that section, which follows from the kinds of blocks that there are now.
KeyTable<FileKeys> file_keys_with(Json signals) {
  return KeyTable<FileKeys>({
      {.name = "$schema", .summary = "this schema", .value = to(&FileKeys::schema, form::text())},
      {.name = "name",
       .summary = "name of the scenario",
       .value = to(&FileKeys::name, form::name()),
       .required = true},
      {.name = "description",
       .summary = "a text for people",
       .value = to(&FileKeys::description, form::text())},
      {.name = "plugins", .value = later(&FileKeys::plugins, plugins_schema())},
      {.name = "time", .value = later(&FileKeys::time, time_schema()), .required = true},
      {.name = "parameters", .value = elsewhere<FileKeys>(variables_schema("values by name"))},
      {.name = "assemblies", .value = elsewhere<FileKeys>(assemblies_schema())},
      {.name = "subsystems",
       .value = later(&FileKeys::subsystems, list(Json::object(), 1)),
       .required = true},
      {.name = "couplings", .value = later(&FileKeys::couplings, list(reference("coupling")))},
      {.name = "method", .value = later(&FileKeys::method, method_schema()), .required = true},
      {.name = "signals", .value = later(&FileKeys::signals, std::move(signals))},
      {.name = "events", .value = later(&FileKeys::events, events_schema())},
      {.name = "outputs", .value = later(&FileKeys::outputs, outputs_schema())},
  });
}

}  // namespace

const KeyTable<FileKeys>& file_keys() {
  static const KeyTable<FileKeys> keys = file_keys_with(Json());
  return keys;
}

Json file_schema() { return file_keys_with(signals_schema()).schema(); }

}  // namespace portwave::scenario_file
