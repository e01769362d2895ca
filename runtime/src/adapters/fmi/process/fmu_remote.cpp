#include "adapters/fmi/process/fmu_remote.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/process/fmu_process.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

/// A handle of a state that the host keeps: its number.
StateHandle handle_of(std::uint64_t number) {
  return reinterpret_cast<StateHandle>(static_cast<std::uintptr_t>(number));
}
std::uint64_t number_of(StateHandle handle) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
}

/// Calls are collected, and told together: going there and back takes longer than most calls do.
class RemoteInstance final : public Instance {
 public:
  RemoteInstance(const Fmu& fmu, InstanceOrigin origin, double time_limit_s)
      : origin_(std::move(origin)),
        maker_(fmu.description().tool),
        prefix_(fmu.description().version == Version::v2 ? "fmi2" : "fmi3"),
        limit_s_(time_limit_s),
        writer_(host_.area()) {
    const LibraryNeeds needs = LibraryNeeds::of(fmu.description());
    const std::string library = fmu.library().string();
    begin(Operation::load, library.size() + 64);
    writer_.put_needs(needs);
    writer_.put_text(library);
    flush();
    begin(Operation::instantiate, origin_.file.size() + origin_.name.size() + origin_.token.size() +
                                      origin_.resources.size() + 64 +
                                      MessageWriter::size_of(origin_.uses));
    writer_.put_text(origin_.file);
    writer_.put_text(origin_.name);
    writer_.put_text(origin_.token);
    writer_.put_text(origin_.resources);
    writer_.put_uses(origin_.uses);
    flush();
  }
  ~RemoteInstance() override {
    if (is_dead_ || !host_.is_ours()) return;
    try {
      begin(Operation::end, 0);
      flush();
      if (!host_.ends_within(limit_s_)) fail(HostProcess::End::timed_out);
      if (host_.how_it_ended() != "exit code 0") fail(HostProcess::End::ended);
    } catch (const std::exception& error) {
      // What was committed stands, and nobody is left who could be told otherwise.
      std::fprintf(stderr, "portwave: at its end %s\n", error.what());
    }
  }

  void set_text(Reference which, const std::string& text) override {
    begin(Operation::set_text, text.size() + 16);
    writer_.put(which);
    writer_.put_text(text);
  }
  void configure(const VariableList& list, const double* values) override {
    send(Operation::configure, list, values);
    flush();
  }
  void initialise(double start_s) override {
    begin(Operation::initialise, sizeof(start_s));
    writer_.put(start_s);
    flush();
  }
  void get(const VariableList& list, double* values) override {
    ask(list, values);
    flush();
  }
  void ask(const VariableList& list, double* values) override {
    const std::size_t bytes = list.size() * sizeof(double);
    begin(Operation::get, MessageWriter::size_of(list) + bytes);
    writer_.put_list(list);
    asked_.push_back({writer_.put_room(bytes), bytes, values});
  }
  void finish() override {
    if (calls_ > 0) flush();
  }
  void set(const VariableList& list, const double* values) override {
    send(Operation::set, list, values);
  }
  void step(double time_s, double step_s) override {
    begin(Operation::step, 2 * sizeof(double));
    writer_.put(time_s);
    writer_.put(step_s);
    time_s_ = time_s;
    step_s_ = step_s;
  }
  void ask_means(double* means) override {
    const std::size_t bytes = origin_.uses.watched.size() * sizeof(double);
    begin(Operation::means, bytes);
    asked_.push_back({writer_.put_room(bytes), bytes, means});
  }
  void save(StateHandle& state) override {
    const std::uint64_t number = ++newest_state_;
    begin(Operation::save, sizeof(number));
    writer_.put(number);
    state = handle_of(number);
  }
  void restore(StateHandle state) override {
    begin(Operation::restore, sizeof(std::uint64_t));
    writer_.put(number_of(state));
  }
  void release(StateHandle& state) override {
    const StateHandle own = std::exchange(state, nullptr);
    if (own == nullptr || is_dead_ || !host_.is_ours()) return;
    try {
      begin(Operation::release, sizeof(std::uint64_t));
      writer_.put(number_of(own));
    } catch (const std::exception& error) {
      // As every further call will say.
      is_dead_ = true;
      fault_ = error.what();
    }
  }
  std::vector<std::byte> to_bytes(StateHandle state) override {
    std::uint64_t size = 0;
    begin(Operation::write_state, 2 * sizeof(size));
    writer_.put(number_of(state));
    asked_.push_back({writer_.put_room(sizeof(size)), sizeof(size), &size});
    flush();
    constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
    if (size > kMost) fail(HostProcess::End::broken);
    std::vector<std::byte> out(size);
    begin(Operation::fetch_state, sizeof(size) + out.size());
    writer_.put(size);
    asked_.push_back({writer_.put_room(out.size()), out.size(), out.data()});
    flush();
    return out;
  }
  StateHandle from_bytes(std::span<const std::byte> bytes) override {
    const std::uint64_t number = ++newest_state_;
    begin(Operation::read_state, 2 * sizeof(number) + bytes.size());
    writer_.put(number);
    writer_.put_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    flush();
    return handle_of(number);
  }
  bool is_gone() const override { return is_dead_; }

 private:
  static constexpr std::size_t kHead = sizeof(std::uint32_t);
  /// Bytes that a request answers, and where they go to.
  struct Asked {
    std::size_t place, bytes;
    void* to;
  };

  /// A call with so many bytes beside its head, answer included.
  void begin(Operation operation, std::size_t bytes) {
    expect_alive();
    const std::size_t needed = kHead + bytes;
    // The call that says that there is more room must always fit.
    constexpr std::size_t kSpare = 64;
    if (operation != Operation::grow && needed + kSpare > writer_.left()) make_room(needed);
    writer_.put(static_cast<std::uint32_t>(operation));
    ++calls_;
  }
  void send(Operation operation, const VariableList& list, const double* values) {
    const std::size_t bytes = list.size() * sizeof(double);
    begin(operation, MessageWriter::size_of(list) + bytes);
    writer_.put_list(list);
    writer_.put_bytes(values, bytes);
  }
  void make_room(std::size_t needed) {
    if (calls_ > 0) flush();
    const std::size_t all = needed + (std::size_t{1} << 12);
    if (all <= host_.area_bytes()) return;
    if (!host_.enlarge_area(std::max(all, 2 * host_.area_bytes()))) {
      throw FmuFault(
          fmt::format("the FMU {}: no memory for {} bytes that are shared with its "
                      "process",
                      in_quotes(origin_.file), all));
    }
    begin(Operation::grow, sizeof(std::uint64_t));
    writer_.put(static_cast<std::uint64_t>(host_.area_bytes()));
    flush();
    host_.map_area();
    writer_.move_to(host_.area());
  }

  void expect_alive() const {
    if (!host_.is_ours()) {
      throw FmuFault(
          fmt::format("the FMU {} runs in a process of the program that this one was "
                      "forked from",
                      in_quotes(origin_.file)));
    }
    if (is_dead_) throw FmuFault(fault_);
  }

  /// Sends what was collected, and waits for all of it.
  void flush() {
    Channel& channel = host_.channel();
    channel.request_bytes = writer_.size();
    const HostProcess::End end = host_.call(calls_, limit_s_);
    writer_.clear();
    calls_ = 0;
    if (end != HostProcess::End::answered) fail(end);
    const std::uint32_t outcome = channel.outcome;
    if (outcome == Channel::kDone) return take_answers();
    asked_.clear();
    if (outcome != Channel::kFault && outcome != Channel::kRefused) fail(HostProcess::End::broken);
    std::string text(channel.text, std::min<std::size_t>(channel.text_bytes, Channel::kTextBytes));
    const auto failed_in = static_cast<Operation>(channel.failed_in);
    // Where it is then nobody knows: the caller has gone on as if the state were there.
    const bool is_lost = failed_in == Operation::restore || failed_in == Operation::save;
    text = printable(text, Channel::kTextBytes);
    if (is_lost || outcome == Channel::kRefused) {
      is_dead_ = true;
      fault_ = text;
    }
    if (outcome == Channel::kFault) throw FmuFault(text);
    throw ConfigError("/path", fmt::format("{} {}", in_quotes(origin_.file), text));
  }

  void take_answers() {
    for (const Asked& own : asked_) {
      if (own.bytes > 0) std::memcpy(own.to, host_.area().data() + own.place, own.bytes);
    }
    asked_.clear();
  }
  [[noreturn]] void fail(HostProcess::End end) {
    const Channel& channel = host_.channel();
    const std::string where = place(static_cast<Operation>(channel.now_in.load()));
    const std::string log = printable(channel.log.text(), Channel::kTextBytes);
    const std::string said = log.empty() ? std::string() : "; it says: " + log;
    if (end == HostProcess::End::broken) {
      host_.kill();
      give_up(fmt::format(
          "the FMU {} wrote over memory that is not its own: its process was ended; the "
          "defect is in the FMU{}",
          in_quotes(origin_.file), by_its_maker()));
    }
    if (end == HostProcess::End::timed_out) {
      host_.kill();
      give_up(
          fmt::format("the FMU {} did not return within {} s from {}: its process was ended{}; "
                      "if it needs longer, give it a larger \"time_limit_s\"",
                      in_quotes(origin_.file), limit_s_, where, said));
    }
    const std::string end_of_host = host_.how_it_ended();
    if (host_.was_ended_from_outside()) {
      give_up(fmt::format(
          "the process of the FMU {} was ended from outside, with {}{}; the system does "
          "so where memory runs out",
          in_quotes(origin_.file), end_of_host, said));
    }
    give_up(
        fmt::format("the FMU {} crashed in {}: its process ended with {}{}; the defect is in "
                    "the FMU{}",
                    in_quotes(origin_.file), where, end_of_host, said, by_its_maker()));
  }
  [[noreturn]] void give_up(std::string fault) {
    is_dead_ = true;
    asked_.clear();
    fault_ = std::move(fault);
    throw FmuFault(fault_);
  }
  std::string by_its_maker() const {
    return maker_.empty() ? std::string() : fmt::format(", made by {}", printable(maker_));
  }
  std::string place(Operation operation) const {
    switch (operation) {
      case Operation::load:
        return "loading its library";
      case Operation::instantiate:
        return prefix_ + (prefix_ == "fmi2" ? "Instantiate" : "InstantiateCoSimulation");
      case Operation::set_text:
        return prefix_ + "SetString";
      case Operation::configure:
        return prefix_ + "ExitConfigurationMode, or setting its structural parameters";
      case Operation::initialise:
        return "its initialisation";
      case Operation::get:
        return "reading its variables";
      case Operation::set:
        return "setting its variables";
      case Operation::step:
        return fmt::format("{}DoStep from {} s over {} s", prefix_, time_s_, step_s_);
      case Operation::means:
        return "telling its means";
      case Operation::save:
        return prefix_ + (prefix_ == "fmi2" ? "GetFMUstate" : "GetFMUState");
      case Operation::restore:
        return prefix_ + (prefix_ == "fmi2" ? "SetFMUstate" : "SetFMUState");
      case Operation::release:
        return prefix_ + (prefix_ == "fmi2" ? "FreeFMUstate" : "FreeFMUState");
      case Operation::write_state:
      case Operation::fetch_state:
        return prefix_ + (prefix_ == "fmi2" ? "SerializeFMUstate" : "SerializeFMUState");
      case Operation::read_state:
        return prefix_ + (prefix_ == "fmi2" ? "DeSerializeFMUstate" : "DeserializeFMUState");
      case Operation::end:
        return fmt::format("{0}Terminate, {0}FreeInstance or unloading its library", prefix_);
      case Operation::none:
      case Operation::grow:
        break;
    }
    return "no call, but in a thread of its own";
  }

  HostProcess host_;
  InstanceOrigin origin_;
  std::string maker_, prefix_;
  double limit_s_;
  MessageWriter writer_;
  std::size_t calls_ = 0;  ///< that were collected
  std::vector<Asked> asked_;
  std::uint64_t newest_state_ = 0;
  double time_s_ = 0.0, step_s_ = 0.0;  ///< of the last step
  bool is_dead_ = false;
  std::string fault_;  ///< of which it died
};

}  // namespace

std::unique_ptr<Instance> instantiate_in_a_process(const Fmu& fmu, InstanceOrigin origin,
                                                   double time_limit_s) {
  return std::make_unique<RemoteInstance>(fmu, std::move(origin), time_limit_s);
}

}  // namespace portwave::fmi
