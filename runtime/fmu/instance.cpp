#include "instance.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>
#include <zlib.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmu {
namespace {

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case kInstantiated:
      return "before its initialisation";
    case kInitialising:
      return "in its initialisation";
    case kStepping:
      return "initialised";
    default:
      return "terminated";
  }
}

const char* category_of(int status) {
  switch (status) {
    case fmi::kWarning:
      return "logStatusWarning";
    case fmi::kDiscard:
      return "logStatusDiscard";
    default:
      return "logStatusError";
  }
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int letter = std::tolower(static_cast<unsigned char>(c));
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/// The folder that a URI or a path names.
std::filesystem::path folder_of(std::string_view where) {
  constexpr std::string_view kScheme = "file:";
  if (!where.starts_with(kScheme)) return where;
  where.remove_prefix(kScheme.size());
  if (where.starts_with("//")) {  // after which a machine may be named
    where.remove_prefix(2);
    where.remove_prefix(std::min(where.find('/'), where.size()));
  }
  std::string out;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const bool is_escape = where[i] == '%' && i + 2 < where.size() && digit(where[i + 1]) >= 0 &&
                           digit(where[i + 2]) >= 0;
    if (!is_escape) {
      out += where[i];
      continue;
    }
    out += static_cast<char>(digit(where[i + 1]) * 16 + digit(where[i + 2]));
    i += 2;
  }
  return out;
}

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("{} cannot be read", in_quotes(file.string())));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

[[noreturn]] void refuse_bytes(const char* why) {
  throw std::invalid_argument(fmt::format("these bytes are no state of this FMU: {}", why));
}

ModelRun run_in(const std::filesystem::path& resources, const char* token) {
  const std::string interface_text = text_in(resources / "model.json");
  auto model = exported::ExportedModel::read(interface_text, text_in(resources / "scenario.json"));
  if (token == nullptr || model.token() != token) {
    throw std::runtime_error(
        fmt::format("the modelDescription.xml ({}) and the resources ({}) are not of one FMU",
                    token == nullptr ? "without a token" : printable(token), model.token()));
  }
  return {std::move(model), resources};
}

}  // namespace

Instance* Instance::make(const char* name, const char* token, std::string_view resources,
                         std::unique_ptr<Listener> listener) {
  std::string why;
  try {
    if (name == nullptr || *name == '\0') throw std::invalid_argument("the instance has no name");
    if (resources.empty()) throw std::invalid_argument("no folder of resources was given");
    ModelRun run = run_in(folder_of(resources), token);
    return new Instance(std::move(run), std::move(listener));
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "unknown failure";
  }
  if (listener != nullptr) listener->tell(fmi::kError, category_of(fmi::kError), why);
  return nullptr;
}

int Instance::tell(int status, const std::string& text) noexcept {
  try {
    listener_->tell(status, category_of(status), text);
  } catch (...) {  // of the importer
  }
  return status;
}

void Instance::expect(unsigned modes) const {
  if ((modes & mode) != 0) return;
  throw std::logic_error(fmt::format("not to be called now, the instance is {}", mode_name(mode)));
}

std::string Instance::text_of(const char* function, const StepError& error) {
  std::string text = fmt::format("{}: {}", function, error.what());
  if (!error.circumstances().empty()) text += fmt::format(" ({})", error.circumstances());
  return text;
}

std::size_t Instance::place(Reference which) const {
  if (which < run_.model().variables.size()) return which;
  throw std::out_of_range(fmt::format("there is no variable with the value reference {}", which));
}

void Instance::get(std::span<const Reference> which, double* values) {
  for (const Reference own : which) static_cast<void>(place(own));
  for (std::size_t i = 0; i < which.size(); ++i) values[i] = run_.value(which[i]);
}

void Instance::set(std::span<const Reference> which, const double* values) {
  std::vector<double> before;
  for (const Reference own : which) {
    const bool is_settable = run_.model().variables[place(own)].is_settable();
    before.push_back(is_settable ? run_.value(own) : 0.0);
  }
  std::size_t done = 0;
  try {
    for (; done < which.size(); ++done) run_.set_value(which[done], values[done]);
  } catch (...) {
    while (done-- > 0) {
      try {
        run_.set_value(which[done], before[done]);
      } catch (const std::exception&) {  // the others go back all the same
      }
    }
    throw;
  }
}

std::vector<std::size_t> Instance::places(std::span<const Reference> which) const {
  std::vector<std::size_t> out;
  for (const Reference own : which) out.push_back(place(own));
  return out;
}

void Instance::directional_derivative(std::span<const Reference> unknowns,
                                      std::span<const Reference> knowns,
                                      std::span<const double> seed, double* out) {
  std::ranges::copy(run_.directional_derivative(places(unknowns), places(knowns), seed), out);
}

void Instance::adjoint_derivative(std::span<const Reference> unknowns,
                                  std::span<const Reference> knowns, std::span<const double> seed,
                                  double* out) {
  std::ranges::copy(run_.adjoint_derivative(places(unknowns), places(knowns), seed), out);
}

void Instance::exit_initialisation() {
  run_.begin();
  mode = kStepping;
}

void Instance::terminate() {
  const Certificate* const certificate = run_.certificate();
  if (certificate != nullptr && certificate->status == CertificateStatus::violated) {
    tell(fmi::kWarning, "the energy certificate of the run is violated");
  }
  mode = kTerminated;
}

void Instance::reset() {
  run_.reset();
  mode = kInstantiated;
}

SavedState& Instance::saved(const void* state) const {
  expect_values(state, state, 1);
  const auto found = states_.find(state);
  if (found == states_.end()) {
    throw std::invalid_argument("this is no saved state of this instance, or it was freed");
  }
  return *found->second;
}

void* Instance::keep(SavedState state) {
  auto own = std::make_unique<SavedState>(std::move(state));
  void* const handle = own.get();
  states_.emplace(handle, std::move(own));
  return handle;
}

void Instance::save(void** state) {
  expect_values(state, state, 1);
  if (*state == nullptr) {
    *state = keep({run_.save(), mode});
  } else {
    saved(*state) = {run_.save(), mode};
  }
}

void Instance::restore(const void* state) {
  const SavedState& own = saved(state);
  run_.restore(own.run);
  mode = own.mode;
}

void Instance::release(void** state) {
  if (state == nullptr || *state == nullptr) return;
  states_.erase(&saved(*state));
  *state = nullptr;
}

/// The mode, the run, and a checksum of both.
std::vector<std::byte> Instance::bytes_of(const void* state) const {
  const SavedState& own = saved(state);
  std::vector<std::byte> out = own.run.to_bytes(run_.model().token());
  out.insert(out.begin(), static_cast<std::byte>(own.mode));
  const std::uint32_t checksum = checksum_of(out);
  const auto last = std::as_bytes(std::span(&checksum, 1));
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

std::size_t Instance::size_of(const void* state) const { return bytes_of(state).size(); }

void Instance::serialise(const void* state, std::byte* bytes, std::size_t size) const {
  const std::vector<std::byte> all = bytes_of(state);
  expect_values(bytes, bytes, size);
  if (size < all.size()) {
    throw std::length_error(
        fmt::format("the state has {} bytes, and there is room for {}", all.size(), size));
  }
  std::memcpy(bytes, all.data(), all.size());
}

void Instance::deserialise(const std::byte* bytes, std::size_t size, void** state) {
  expect_values(bytes, state, 1);
  std::uint32_t checksum = 0;
  if (size <= sizeof checksum) refuse_bytes("there are too few");
  const std::span<const std::byte> all(bytes, size - sizeof checksum);
  std::memcpy(&checksum, bytes + all.size(), sizeof checksum);
  if (checksum != checksum_of(all)) refuse_bytes("they are incomplete or were changed");
  const auto mode_there = static_cast<unsigned>(all[0]);
  SavedState own{RunState::from_bytes(all.subspan(1), run_.model()), kInstantiated};
  for (const Mode each : {kInstantiated, kInitialising, kStepping, kTerminated}) {
    if (each == mode_there) own.mode = each;
  }
  const bool has_begun = own.mode == kStepping || own.mode == kTerminated;
  if (own.mode != mode_there || has_begun != own.run.is_running) refuse_bytes("they were changed");
  *state = keep(std::move(own));
}

int refuse(void* instance, const char* function) {
  return Instance::call(instance, function, kAnyMode, [](Instance&) {
    throw std::logic_error("this FMU does not offer it, as its description says");
  });
}

int refuse_values(void* instance, const char* function, std::size_t count) {
  return Instance::call(instance, function, kAnyMode, [count](Instance&) {
    if (count > 0) throw std::out_of_range("all variables of this FMU are real numbers");
  });
}

void expect_values(const void* which, const void* values, std::size_t count) {
  if (count > 0 && (which == nullptr || values == nullptr)) {
    throw std::invalid_argument("a null pointer");
  }
}

}  // namespace portwave::fmu
