#include "adapters/fmi/fmu_instance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr std::string_view kStatusNames[] = {"ok",    "warning", "discard",
                                             "error", "fatal",   "pending"};

std::string status_name(int status) {
  if (status >= 0 && status < static_cast<int>(std::size(kStatusNames))) {
    return std::string(kStatusNames[status]);
  }
  return fmt::format("the unknown status {}", status);
}

/// Steps are taken back to their beginning, and not further. There are FMUs that go back by themselves where
/// they are told that somebody might.
constexpr bool kNoReturnBefore = true;

constexpr std::size_t kChunk = 64;  // values that are converted at a time

/// Calls `get` on chunks of a run and converts what comes.
template <class Number, class Call>
void get_converted(const VariableList::Run& run, double* values, const Call& get) {
  std::array<Number, kChunk> chunk;
  for (std::size_t i = 0; i < run.references.size(); i += kChunk) {
    const std::size_t count = std::min(kChunk, run.references.size() - i);
    get(&run.references[i], count, chunk.data());
    for (std::size_t k = 0; k < count; ++k)
      values[run.first + i + k] = static_cast<double>(chunk[k]);
  }
}
template <class Number, class Call>
void set_converted(const VariableList::Run& run, const double* values, const Call& set) {
  std::array<Number, kChunk> chunk;
  for (std::size_t i = 0; i < run.references.size(); i += kChunk) {
    const std::size_t count = std::min(kChunk, run.references.size() - i);
    for (std::size_t k = 0; k < count; ++k) {
      const double value = values[run.first + i + k];
      if constexpr (std::is_floating_point_v<Number>) {
        chunk[k] = static_cast<Number>(value);
      } else if constexpr (std::is_same_v<Number, bool>) {
        chunk[k] = value != 0.0;
      } else {
        constexpr auto kLeast = static_cast<double>(std::numeric_limits<Number>::min());
        constexpr auto kMost = static_cast<double>(std::numeric_limits<Number>::max());
        if (!(value >= kLeast && value <= kMost)) {
          throw FmuFault(
              fmt::format("{} does not fit an integer of {} bytes", value, sizeof(Number)));
        }
        chunk[k] = value == kMost ? std::numeric_limits<Number>::max()
                                  : static_cast<Number>(std::nearbyint(value));
      }
    }
    set(&run.references[i], count, chunk.data());
  }
}

/// An instance in this process: what both versions share.
class LoadedInstance : public Instance {
 protected:
  LoadedInstance(InstanceOrigin origin, FmuLog* log)
      : origin_(std::move(origin)), log_(log == nullptr ? &own_log_ : log) {}

  const InstanceOrigin& origin() const { return origin_; }
  FmuLog& log() { return *log_; }
  bool is_dead() const { return dead_; }
  bool was_fatal() const { return fatal_; }
  void expect_alive() const {
    if (dead_) throw FmuFault(fault_);
  }
  /// Throws FmuFault unless the status is ok or a warning. `when`: such as " at 0.2 s".
  void expect_ok(int status, const char* function, const std::string& when = {}) {
    if (status == kOk || status == kWarning) {
      log_->clear();
      return;
    }
    dead_ = status != kDiscard;
    fatal_ = status == kFatal;
    std::string text = fmt::format("the FMU {}: {}{} returned {}", in_quotes(origin_.file),
                                   function, when, status_name(status));
    if (!log_->empty()) text += fmt::format("; it says: {}", log_->text());
    log_->clear();
    if (dead_) fault_ = text;
    throw FmuFault(text);
  }

 private:
  InstanceOrigin origin_;
  FmuLog own_log_;
  FmuLog* log_;
  bool dead_ = false, fatal_ = false;
  std::string fault_;  ///< of which it died
};

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
        expect_ok(
            f_.GetReal(instance_, run.references.data(), run.references.size(), values + run.first),
            "fmi2GetReal");
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
    const int status = f_.DoStep(instance_, time_s, step_s, kNoReturnBefore ? 1 : 0);
    if (status != kOk)
      expect_ok(status, "fmi2DoStep",
                fmt::format(" from {:.17g} s over {:.17g} s", time_s, step_s));
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

 private:
  [[noreturn]] void note_no_instance() {
    expect_ok(kError, "fmi2Instantiate");
    std::abort();  // not reached
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

class Instance3 final : public LoadedInstance {
 public:
  Instance3(const v3::Functions& functions, InstanceOrigin from, FmuLog* log)
      : LoadedInstance(std::move(from), log), f_(functions) {
    instance_ = f_.InstantiateCoSimulation(origin().name.c_str(), origin().token.c_str(),
                                           origin().resources.c_str(), false, true, false, false,
                                           nullptr, 0, this, &Instance3::say, nullptr);
    if (instance_ == nullptr) expect_ok(kError, "fmi3InstantiateCoSimulation");
  }
  ~Instance3() override {
    if (instance_ == nullptr || was_fatal()) return;
    if (!is_dead() && initialised_) f_.Terminate(instance_);
    f_.FreeInstance(instance_);
  }

  void set_text(Reference which, const std::string& text) override {
    const char* const bytes = text.c_str();
    expect_ok(f_.SetString(instance_, &which, 1, &bytes, 1), "fmi3SetString");
  }
  void initialise(double start_s) override {
    expect_ok(f_.EnterInitializationMode(instance_, false, 0.0, start_s, false, 0.0),
              "fmi3EnterInitializationMode");
    expect_ok(f_.ExitInitializationMode(instance_), "fmi3ExitInitializationMode");
    initialised_ = true;
  }
  void get(const VariableList& list, double* values) override {
    expect_alive();
    for (const VariableList::Run& run : list.runs()) {
      if (run.type == VariableType::float64) {
        expect_ok(f_.GetFloat64(instance_, run.references.data(), run.references.size(),
                                values + run.first, run.references.size()),
                  "fmi3GetFloat64");
        continue;
      }
      with_type(run.type, [&]<class Number>(v3::Get<Number> read, v3::Set<Number>) {
        get_converted<Number>(run, values,
                              [&](const Reference* which, std::size_t count, Number* to) {
                                expect_ok(read(instance_, which, count, to, count), "fmi3Get");
                              });
      });
    }
  }
  void set(const VariableList& list, const double* values) override {
    expect_alive();
    for (const VariableList::Run& run : list.runs()) {
      if (run.type == VariableType::float64) {
        expect_ok(f_.SetFloat64(instance_, run.references.data(), run.references.size(),
                                values + run.first, run.references.size()),
                  "fmi3SetFloat64");
        continue;
      }
      with_type(run.type, [&]<class Number>(v3::Get<Number>, v3::Set<Number> write) {
        set_converted<Number>(run, values,
                              [&](const Reference* which, std::size_t count, const Number* from) {
                                expect_ok(write(instance_, which, count, from, count), "fmi3Set");
                              });
      });
    }
  }
  void step(double time_s, double step_s) override {
    expect_alive();
    bool event = false, terminates = false, early = false;
    double last_s = time_s + step_s;
    const int status =
        f_.DoStep(instance_, time_s, step_s, kNoReturnBefore, &event, &terminates, &early, &last_s);
    const auto when = [&] { return fmt::format(" from {:.17g} s over {:.17g} s", time_s, step_s); };
    if (status != kOk) expect_ok(status, "fmi3DoStep", when());
    if (terminates) {
      throw FmuFault(fmt::format("the FMU {} asks to end the simulation, in fmi3DoStep{}",
                                 in_quotes(origin().file), when()));
    }
    if (early) {
      throw FmuFault(
          fmt::format("the FMU {} returned early from fmi3DoStep{}, at {} s: it was not allowed to",
                      in_quotes(origin().file), when(), last_s));
    }
  }
  void save(StateHandle& state) override {
    expect_alive();
    expect_ok(f_.GetFMUState(instance_, &state), "fmi3GetFMUState");
  }
  void restore(StateHandle state) override {
    expect_alive();
    expect_ok(f_.SetFMUState(instance_, state), "fmi3SetFMUState");
  }
  void release(StateHandle& state) override {
    if (state != nullptr && !is_dead()) f_.FreeFMUState(instance_, &state);
    state = nullptr;
  }

 private:
  template <class Act>
  void with_type(VariableType type, const Act& act) {
    switch (type) {
      case VariableType::float32:
        return act(f_.GetFloat32, f_.SetFloat32);
      case VariableType::int8:
        return act(f_.GetInt8, f_.SetInt8);
      case VariableType::uint8:
        return act(f_.GetUInt8, f_.SetUInt8);
      case VariableType::int16:
        return act(f_.GetInt16, f_.SetInt16);
      case VariableType::uint16:
        return act(f_.GetUInt16, f_.SetUInt16);
      case VariableType::int32:
        return act(f_.GetInt32, f_.SetInt32);
      case VariableType::uint32:
        return act(f_.GetUInt32, f_.SetUInt32);
      case VariableType::int64:
        return act(f_.GetInt64, f_.SetInt64);
      case VariableType::uint64:
        return act(f_.GetUInt64, f_.SetUInt64);
      case VariableType::boolean:
        return act(f_.GetBoolean, f_.SetBoolean);
      case VariableType::float64:
      case VariableType::text:
      case VariableType::other:
        break;
    }
    throw std::logic_error("a variable that is no number");
  }
  static void say(void* environment, int status, const char* /*category*/, const char* message) {
    auto* const own = static_cast<Instance3*>(environment);
    if (own != nullptr && message != nullptr) own->log().note(status, message);
  }

  const v3::Functions f_;
  void* instance_ = nullptr;
  bool initialised_ = false;
};

}  // namespace

VariableList::VariableList(std::span<const Variable* const> variables) {
  for (const Variable* const variable : variables) {
    if (!is_number(variable->type) || variable->is_array) {
      throw std::logic_error("variable " + variable->name + " is no number");
    }
    add(variable->type, variable->reference);
  }
}

void VariableList::add(VariableType type, Reference reference) {
  if (runs_.empty() || runs_.back().type != type) runs_.push_back({type, size_, {}});
  runs_.back().references.push_back(reference);
  ++size_;
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
  return std::make_unique<Instance3>(std::get<v3::Functions>(functions), std::move(origin), log);
}

}  // namespace portwave::fmi
