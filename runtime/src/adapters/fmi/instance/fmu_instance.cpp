#include "adapters/fmi/instance/fmu_instance.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/instance/fmu_loaded.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

class Instance2 final : public LoadedInstance {
 public:
  Instance2(const v2::Functions& functions, InstanceOrigin from, FmuLog* log)
      : LoadedInstance(std::move(from), log), f_(functions) {
    callbacks_ = {&Instance2::say, &Instance2::allocate, &Instance2::release_memory, nullptr, this};
    instance_ = f_.Instantiate(origin().name.c_str(), v2::kCoSimulation, origin().token.c_str(),
                               origin().resources.c_str(), &callbacks_, 0, 1);
    if (instance_ == nullptr) note_no_instance();
  }
  ~Instance2() override {
    if (instance_ == nullptr || was_fatal()) return;
    if (!is_dead() && initialised_) f_.Terminate(instance_);
    f_.FreeInstance(instance_);
  }

  void set_text(Reference which, const std::string& text) override {
    const char* const bytes = text.c_str();
    expect_ok(f_.SetString(instance_, &which, 1, &bytes), "fmi2SetString");
  }
  void configure(const VariableList& /*list*/, const double* /*values*/) override {
    throw std::logic_error("FMI 2 has no structural parameters");
  }
  void ask_means(double* /*means*/) override {}  // there is nothing to be watched
  void initialise(double start_s) override {
    expect_ok(f_.SetupExperiment(instance_, 0, 0.0, start_s, 0, 0.0), "fmi2SetupExperiment");
    expect_ok(f_.EnterInitializationMode(instance_), "fmi2EnterInitializationMode");
    expect_ok(f_.ExitInitializationMode(instance_), "fmi2ExitInitializationMode");
    initialised_ = true;
  }
  void get(const VariableList& list, double* values) override {
    expect_alive();
    for (const VariableList::Run& run : list.runs()) {
      if (run.type == VariableType::float64) {
        get_reals(run, values, [this](auto... arguments) {
          expect_ok(f_.GetReal(instance_, arguments...), "fmi2GetReal");
        });
      } else if (run.type == VariableType::boolean) {
        get_converted<v2::Boolean>(run, values, [this](auto... arguments) {
          expect_ok(f_.GetBoolean(instance_, arguments...), "fmi2GetBoolean");
        });
      } else {
        get_converted<int>(run, values, [this](auto... arguments) {
          expect_ok(f_.GetInteger(instance_, arguments...), "fmi2GetInteger");
        });
      }
    }
  }
  void set(const VariableList& list, const double* values) override {
    expect_alive();
    for (const VariableList::Run& run : list.runs()) {
      if (run.type == VariableType::float64) {
        expect_ok(
            f_.SetReal(instance_, run.references.data(), run.references.size(), values + run.first),
            "fmi2SetReal");
      } else if (run.type == VariableType::boolean) {
        set_converted<bool>(
            run, values, [this](const Reference* which, std::size_t count, const bool* flags) {
              for (std::size_t k = 0; k < count; ++k) {
                const v2::Boolean flag = flags[k] ? 1 : 0;
                expect_ok(f_.SetBoolean(instance_, which + k, 1, &flag), "fmi2SetBoolean");
              }
            });
      } else {
        set_converted<int>(run, values, [this](auto... arguments) {
          expect_ok(f_.SetInteger(instance_, arguments...), "fmi2SetInteger");
        });
      }
    }
  }
  void step(double time_s, double step_s) override {
    expect_alive();
    const KeptArithmetic arithmetic;
    const int status = f_.DoStep(instance_, time_s, step_s, kNoReturnBefore ? 1 : 0);
    if (status == kOk) return;
    const std::string span = fmt::format(" from {} s over {} s", time_s, step_s);
    if (status == kDiscard && has_ended()) ask_to_end("fmi2DoStep" + span);
    expect_ok(status, "fmi2DoStep", span);
  }
  void save(StateHandle& state) override {
    expect_alive();
    expect_ok(f_.GetFMUstate(instance_, &state), "fmi2GetFMUstate");
  }
  void restore(StateHandle state) override {
    expect_alive();
    expect_ok(f_.SetFMUstate(instance_, state), "fmi2SetFMUstate");
  }
  void release(StateHandle& state) override {
    if (state != nullptr && !is_dead()) f_.FreeFMUstate(instance_, &state);
    state = nullptr;
  }
  std::vector<std::byte> to_bytes(StateHandle state) override {
    expect_alive();
    if (!f_.SerializeFMUstate || !f_.SerializedFMUstateSize || !f_.DeSerializeFMUstate)
      fail(kNoBytes);
    std::size_t size = 0;
    expect_ok(f_.SerializedFMUstateSize(instance_, state, &size), "fmi2SerializedFMUstateSize");
    std::vector<std::byte> out(size);
    expect_ok(f_.SerializeFMUstate(instance_, state, out.data(), size), "fmi2SerializeFMUstate");
    return out;
  }
  StateHandle from_bytes(std::span<const std::byte> bytes) override {
    expect_alive();
    StateHandle out = nullptr;
    expect_ok(f_.DeSerializeFMUstate(instance_, bytes.data(), bytes.size(), &out),
              "fmi2DeSerializeFMUstate");
    return out;
  }

 private:
  [[noreturn]] void note_no_instance() {
    expect_ok(kError, "fmi2Instantiate");
    std::abort();  // not reached
  }
  bool has_ended() const {
    v2::Boolean ended = 0;
    return f_.GetBooleanStatus != nullptr &&
           f_.GetBooleanStatus(instance_, v2::kTerminated, &ended) == kOk && ended != 0;
  }
  static void say(void* environment, const char* /*instance*/, int status, const char* /*category*/,
                  const char* message, ...) {
    auto* const own = static_cast<Instance2*>(environment);
    if (own == nullptr || message == nullptr || status < kWarning) return;
    std::array<char, 1024> text;
    std::va_list arguments;
    va_start(arguments, message);
    std::vsnprintf(text.data(), text.size(), message, arguments);
    va_end(arguments);
    own->log().note(status, text.data());
  }
  static void* allocate(std::size_t count, std::size_t size) { return std::calloc(count, size); }
  static void release_memory(void* memory) { std::free(memory); }

  const v2::Functions f_;
  v2::Callbacks callbacks_ = {};
  void* instance_ = nullptr;
  bool initialised_ = false;
};

}  // namespace

VariableList::VariableList(std::span<const Variable* const> variables) {
  for (const Variable* const variable : variables) {
    const bool is_usable = is_number(variable->type) || variable->type == VariableType::clock;
    if (!is_usable || variable->is_array) {
      throw std::logic_error("variable " + variable->name + " is no number");
    }
    add(*variable);
  }
}

void VariableList::add(const Variable& variable) {
  const auto goes_on = [&](const Run& run) {
    return run.type == variable.type && run.is_discrete == variable.is_discrete &&
           run.is_within == variable.is_within && run.clocks == variable.clocks &&
           run.array == variable.array &&
           (!run.is_array() || run.references.front() == variable.reference);
  };
  if (runs_.empty() || !goes_on(runs_.back())) {
    runs_.push_back({.type = variable.type,
                     .is_discrete = variable.is_discrete,
                     .is_within = variable.is_within,
                     .clocks = variable.clocks,
                     .first = size_,
                     .references = {},
                     .array = variable.array,
                     .elements = variable.elements,
                     .places = {}});
  }
  Run& run = runs_.back();
  if (!run.is_array() || run.references.empty()) run.references.push_back(variable.reference);
  if (run.is_array()) run.places.push_back(variable.element);
  ++size_;
}

void VariableList::add_all(const Variable& array, std::size_t elements) {
  Variable element = array;
  element.is_array = false;
  element.array = array.name;
  element.elements = elements;
  for (element.element = 0; element.element < elements; ++element.element) add(element);
}

void VariableList::add_run(Run run) {
  run.first = size_;
  size_ += run.size();
  runs_.push_back(std::move(run));
}

void FmuLog::note(int status, const char* message) {
  constexpr std::size_t kMost = 400;
  if (status < kWarning || size_ > kMost) return;
  const std::string text = (size_ == 0 ? "" : "; ") + printable(message, kMost);
  const std::size_t count = std::min<std::size_t>(text.size(), kCapacity - size_);
  std::copy_n(text.data(), count, text_ + size_);
  size_ += static_cast<std::uint32_t>(count);
}

std::string FmuLog::text() const {
  // Another process may have written anything there.
  return {text_, size_ <= kCapacity ? size_ : 0};
}

std::unique_ptr<Instance> instantiate(const Functions& functions, InstanceOrigin origin,
                                      FmuLog* log) {
  if (const auto* const own = std::get_if<v2::Functions>(&functions)) {
    return std::make_unique<Instance2>(*own, std::move(origin), log);
  }
  return make_instance_3(std::get<v3::Functions>(functions), std::move(origin), log);
}

}  // namespace portwave::fmi
