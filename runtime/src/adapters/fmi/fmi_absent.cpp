// What stands in for the adapter where libzip or pugixml were not found.

#include <string>
#include <string_view>

#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/runtime/adapters/structure.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {
namespace {

[[noreturn]] void refuse_fmus() {
  throw ConfigError("/path",
                    "portwave was built without FMI: install libzip-dev and libpugixml-dev "
                    "(Debian; ./dev deps does) and build it again");
}

}  // namespace

FmuPart make_fmu_part(const FmuPartOptions& /*options*/) { refuse_fmus(); }
block::Handle make_fmu_block(const FmuBlockOptions& /*options*/) { refuse_fmus(); }
bool is_structure_file(const std::filesystem::path& file) {
  return file.extension() == ".ssp" || file.extension() == ".ssd";
}
StructureScenario read_structure(const std::filesystem::path& /*file*/,
                                 const StructureOptions& /*options*/,
                                 const std::filesystem::path& /*folder*/) {
  refuse_fmus();
}
std::string plain_fmu_name(std::string_view name) { return std::string(name); }
bool has_fmi() { return false; }

}  // namespace portwave
