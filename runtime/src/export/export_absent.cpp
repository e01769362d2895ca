// What stands in for the export of FMUs where libzip or pugixml were not found.

#include "portwave/runtime/export/fmu_export.hpp"
#include "portwave/runtime/export/ssp_export.hpp"

namespace portwave {
namespace {

[[noreturn]] void refuse_export() {
  throw ConfigError("/library",
                    "portwave was built without FMI: install libzip-dev and libpugixml-dev "
                    "(Debian; ./dev deps does) and build it again");
}

}  // namespace

std::filesystem::path find_fmu_library(const std::filesystem::path& /*beside*/) { return {}; }

FmuExport export_fmu(const ScenarioText& /*scenario*/, const FmuExportOptions& /*options*/,
                     const std::filesystem::path& /*out*/) {
  refuse_export();
}

SspExport export_ssp(const ScenarioText& /*scenario*/, Plugins /*permission*/,
                     const std::filesystem::path& /*out*/) {
  refuse_export();
}

}  // namespace portwave
