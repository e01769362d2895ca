#include "scenario/files/foreign_code.hpp"

#include <utility>

#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

thread_local ForeignCode* reading = nullptr;

}  // namespace

ForeignCode::ForeignCode(std::filesystem::path folder, Plugins permission)
    : folder_(std::move(folder)), permission_(permission), outer_(std::exchange(reading, this)) {}
ForeignCode::~ForeignCode() { reading = outer_; }

const ForeignCode* ForeignCode::current() { return reading; }

std::optional<std::filesystem::path> ForeignCode::allowed_file(const std::string& name,
                                                               std::string& refusal) {
  if (name.empty() || name.find('\0') != std::string::npos) {
    refusal = name.empty() ? "must not be empty" : "must not contain the character 0";
    return std::nullopt;
  }
  if (reading == nullptr || reading->permission_ == Plugins::refused) {
    refusal =
        "an FMU is code that may do all that this program may, and is loaded only if the program "
        "was told to.\n"
        "If you trust it, give --allow-plugins; in C++ Plugins::allowed, in Python "
        "allow_plugins=True, "
        "in C portwave_options.allow_plugins";
    return std::nullopt;
  }
  std::filesystem::path file = reading->folder_ / name;
  FilesRead::note_plugin(file);
  return file;
}

}  // namespace portwave::scenario_file
