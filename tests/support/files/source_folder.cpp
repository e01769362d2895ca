#include "support/files/source_folder.hpp"

namespace portwave::testing {

std::filesystem::path source_folder() { return PORTWAVE_SOURCE_DIR; }

}  // namespace portwave::testing
