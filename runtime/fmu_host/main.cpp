// The program that runs one instance of an FMU for an engine in another process. It is told by a channel of shared
// memory what to call (fmu_message.hpp), and ends when the engine's process does.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "adapters/fmi/process/fmu_message.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::fmi {
namespace {

/// The memory that it has with the engine.
class Mapping {
 public:
  /// False: it is no channel.
  bool open() {
    struct stat info = {};
    if (::fstat(kChannelDescriptor, &info) != 0) return false;
    const auto bytes = static_cast<std::size_t>(info.st_size);
    if (bytes <= kAreaBegins) return false;
    channel_ = static_cast<Channel*>(map(0, kAreaBegins));
    return channel_ != nullptr && channel_->magic == Channel::kMagic &&
           map_area(bytes - kAreaBegins);
  }
  bool map_area(std::size_t bytes) {
    void* const begin = map(kAreaBegins, bytes);
    if (begin == nullptr) return false;
    if (!area_.empty()) ::munmap(area_.data(), area_.size());
    area_ = {static_cast<std::byte*>(begin), bytes};
    return true;
  }
  Channel& channel() { return *channel_; }
  std::span<std::byte> area() { return area_; }

 private:
  static void* map(std::size_t begin, std::size_t bytes) {
    void* const out = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kChannelDescriptor,
                             static_cast<off_t>(begin));
    return out == MAP_FAILED ? nullptr : out;
  }

  Channel* channel_ = nullptr;
  std::span<std::byte> area_;
};

/// The FMU, and what it is told.
class Host {
 public:
  explicit Host(Mapping& mapping) : mapping_(mapping) {}

  /// All calls of a request, up to the first that fails.
  void answer_request() {
    Channel& channel = mapping_.channel();
    channel.outcome = Channel::kDone;
    Operation operation = Operation::none;
    const std::size_t bytes = channel.request_bytes;
    try {
      if (bytes > mapping_.area().size()) throw std::runtime_error("a request is too long");
      MessageReader reader(mapping_.area().first(bytes));
      while (!reader.at_end() && !has_ended_) {
        operation = static_cast<Operation>(reader.take<std::uint32_t>());
        now_in(operation);
        act(operation, reader);
      }
    } catch (const ConfigError& error) {
      fail(Channel::kRefused, operation, error.issues().front().what);
    } catch (const std::exception& error) {
      fail(Channel::kFault, operation, error.what());
    } catch (...) {
      fail(Channel::kFault, operation, "the FMU threw something that is no exception of C++");
    }
    if (grown_to_ != 0 && !mapping_.map_area(std::exchange(grown_to_, 0))) {
      fail(Channel::kFault, Operation::grow, "no memory for the numbers of the FMU");
    }
    // Unloading the library is part of its end.
    if (!has_ended_) now_in(Operation::none);
  }
  bool has_ended() const { return has_ended_; }

 private:
  void now_in(Operation operation) {
    Channel& channel = mapping_.channel();
    channel.since_ns.store(Doorbell::Clock::now().time_since_epoch().count());
    channel.now_in.store(static_cast<std::uint32_t>(operation));
  }
  void fail(Channel::Outcome outcome, Operation operation, std::string_view text) {
    Channel& channel = mapping_.channel();
    const std::size_t count = std::min(text.size(), Channel::kTextBytes);
    std::memcpy(channel.text, text.data(), count);
    channel.text_bytes = static_cast<std::uint32_t>(count);
    channel.failed_in = static_cast<std::uint32_t>(operation);
    channel.outcome = outcome;
  }

  void act(Operation operation, MessageReader& reader) {
    switch (operation) {
      case Operation::load: {
        const LibraryNeeds needs = reader.take_needs();
        functions_ = load_library(reader.take_text(), needs);
        return;
      }
      case Operation::instantiate: {
        InstanceOrigin origin;
        origin.file = reader.take_text();
        origin.name = reader.take_text();
        origin.token = reader.take_text();
        origin.resources = reader.take_text();
        origin.uses = reader.take_uses();
        means_.resize(origin.uses.watched.size());
        instance_ = instantiate(functions_.value(), std::move(origin), &mapping_.channel().log);
        return;
      }
      case Operation::set_text: {
        const auto which = reader.take<Reference>();
        return instance().set_text(which, reader.take_text());
      }
      case Operation::configure:
        reader.take_list(list_);
        values_.resize(list_.size());
        reader.take_bytes(values_.data(), values_.size() * sizeof(double));
        return instance().configure(list_, values_.data());
      case Operation::initialise:
        return instance().initialise(reader.take<double>());
      case Operation::get: {
        reader.take_list(list_);
        values_.resize(list_.size());
        instance().get(list_, values_.data());
        const std::span<std::byte> room = reader.take_room(values_.size() * sizeof(double));
        if (!room.empty()) std::memcpy(room.data(), values_.data(), room.size());
        return;
      }
      case Operation::set:
        reader.take_list(list_);
        values_.resize(list_.size());
        reader.take_bytes(values_.data(), values_.size() * sizeof(double));
        return instance().set(list_, values_.data());
      case Operation::step: {
        const auto time_s = reader.take<double>();
        return instance().step(time_s, reader.take<double>());
      }
      case Operation::means: {
        instance().ask_means(means_.data());
        const std::span<std::byte> room = reader.take_room(means_.size() * sizeof(double));
        if (!room.empty()) std::memcpy(room.data(), means_.data(), room.size());
        return;
      }
      case Operation::save: {
        StateHandle state = nullptr;
        instance().save(state);
        states_[reader.take<std::uint64_t>()] = state;
        return;
      }
      case Operation::restore:
        return instance().restore(states_.at(reader.take<std::uint64_t>()));
      case Operation::release: {
        const auto found = states_.find(reader.take<std::uint64_t>());
        if (found == states_.end()) return;
        instance().release(found->second);
        states_.erase(found);
        return;
      }
      case Operation::write_state: {
        state_bytes_ = instance().to_bytes(states_.at(reader.take<std::uint64_t>()));
        const std::uint64_t size = state_bytes_.size();
        std::memcpy(reader.take_room(sizeof(size)).data(), &size, sizeof(size));
        return;
      }
      case Operation::fetch_state: {
        const std::span<std::byte> room = reader.take_room(reader.take<std::uint64_t>());
        if (room.size() != state_bytes_.size()) throw std::runtime_error("another state");
        std::ranges::copy(state_bytes_, room.begin());
        return;
      }
      case Operation::read_state: {
        const auto number = reader.take<std::uint64_t>();
        const std::string bytes = reader.take_text();
        states_[number] = instance().from_bytes(std::as_bytes(std::span(bytes)));
        return;
      }
      case Operation::grow:
        grown_to_ = reader.take<std::uint64_t>();
        return;
      case Operation::end:
        instance_.reset();
        has_ended_ = true;
        return;
      case Operation::none:
        break;
    }
    throw std::runtime_error("an unknown call");
  }
  Instance& instance() {
    if (instance_ == nullptr) throw std::runtime_error("there is no instance");
    return *instance_;
  }

  Mapping& mapping_;
  std::size_t grown_to_ = 0;
  std::optional<Functions> functions_;
  std::unique_ptr<Instance> instance_;
  std::map<std::uint64_t, StateHandle> states_;
  std::vector<std::byte> state_bytes_;
  VariableList list_;
  std::vector<double> values_, means_;
  bool has_ended_ = false;
};

/// Ends this process, and what the FMU has started, when the engine's process is gone.
void end_with_engine(pid_t engine) {
  char byte = 0;
  ssize_t count = 0;
  do count = ::read(kLifelineDescriptor, &byte, 1);
  while (count < 0 && errno == EINTR);
  // Where the FMU has closed what is not its own, it is the parent that is looked at.
  while (count < 0 && ::getppid() == engine) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);
  ::_exit(1);
}

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kMachine = 0;
#endif

/// The FMU, and whatever it starts, can send no signal to the engine or its process group, nor to all processes there
/// are: the call fails. A filter of system calls is the only means that a process has without rights of its own.
void keep_signals_from(pid_t engine) {
  constexpr std::uint32_t kCalls[] = {
      SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_open};
  const std::uint32_t kept[] = {static_cast<std::uint32_t>(engine),
                                static_cast<std::uint32_t>(-::getpgid(engine)),
                                static_cast<std::uint32_t>(-1)};
  std::vector<sock_filter> code;
  const auto load = [&](std::size_t offset) {
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  };
  const auto skip_unless = [&](std::uint32_t value, std::size_t count) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(count)));
  };
  const auto answer = [&](std::uint32_t what) { code.push_back(BPF_STMT(BPF_RET | BPF_K, what)); };
  load(offsetof(seccomp_data, arch));
  skip_unless(kMachine, std::size(kCalls) * (2 * std::size(kept) + 3));
  for (const std::uint32_t call : kCalls) {
    load(offsetof(seccomp_data, nr));
    skip_unless(call, 2 * std::size(kept) + 1);
    load(offsetof(seccomp_data,
                  args));  // a number of 32 bits; both processors store its low half first
    for (const std::uint32_t own : kept) {
      skip_unless(own, 1);
      answer(SECCOMP_RET_ERRNO | EPERM);
    }
  }
  answer(SECCOMP_RET_ALLOW);
  const sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
  // Where the system has no filters, nothing is kept from the engine; nobody could do better.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int run() {
  Mapping mapping;
  if (!mapping.open()) return 3;
  keep_signals_from(::getppid());
  for (const int own : {kChannelDescriptor, kLifelineDescriptor}) {
    ::fcntl(own, F_SETFD, FD_CLOEXEC);
  }
  std::thread(&end_with_engine, ::getppid()).detach();
  // An FMU that crashes ends with its signal, also where a sanitizer would rather report it.
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(own, SIG_DFL);
  // What it prints comes out before it crashes.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);

  Channel& channel = mapping.channel();
  channel.host_protocol = kFmuProtocol;
  std::strncpy(channel.host_version, PORTWAVE_VERSION, Channel::kVersionBytes - 1);
  std::uint32_t seen = 0;
  Host host(mapping);
  // The first request is the question who we are.
  for (bool is_first = true; !host.has_ended(); is_first = false) {
    while (!channel.request.wait(seen, Doorbell::Clock::now() + std::chrono::hours(1))) {
    }
    // The engine rings once for a request: any other count was written by the FMU. A second answer could make up for
    // what it wrote over the first.
    if (channel.request.rung() != ++seen) return 6;
    if (!is_first) host.answer_request();
    if (host.has_ended()) std::fflush(stdout);
    channel.answer.ring();
    if (is_first && channel.engine_protocol != kFmuProtocol) return 5;
  }
  return 0;
}

}  // namespace
}  // namespace portwave::fmi

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--channel") return portwave::fmi::run();
  std::fputs("portwave-fmu-host runs an FMU for portwave (\"process\": true); portwave starts it\n",
             stderr);
  return 2;
}
