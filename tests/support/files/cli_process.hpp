#pragma once

#ifdef PORTWAVE_CLI

#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "support/files/source_folder.hpp"
#include "support/files/subprocess.hpp"

/// Runs the program as its users do: as a process, seen through its output and exit code.
namespace portwave::testing {

using Words = std::vector<std::string>;

inline const std::string kPair = source_file("examples/published_douglas_rachford.json");
inline const Words kNegativeDamper = {"--set", "/subsystems/1/parameters/damping_Ns_per_m=-1"};
inline const Words kAllowActive = {"--set", "/subsystems/1/allow_active=true"};

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Words command(const Words& arguments) { return Words{PORTWAVE_CLI} + arguments; }

inline ProcessResult portwave_cli(const Words& arguments, const SpawnOptions& options = {}) {
  return run_process(command(arguments), options);
}

inline std::string said(const ProcessResult& result) {
  return "exit " + std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal) +
         "\nstdout: " + result.out + "\nstderr: " + result.err;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Children started meanwhile have a limit, which this process does not reach itself.
class LimitForChildren {
 public:
  LimitForChildren(decltype(RLIMIT_FSIZE) resource, rlim_t amount) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    rlimit limit = before_;
    limit.rlim_cur = amount;
    ::setrlimit(resource_, &limit);
  }
  ~LimitForChildren() { ::setrlimit(resource_, &before_); }
  LimitForChildren(const LimitForChildren&) = delete;
  LimitForChildren& operator=(const LimitForChildren&) = delete;

 private:
  decltype(RLIMIT_FSIZE) resource_;
  rlimit before_ = {};
};

inline ProcessResult with_files_of_at_most(rlim_t bytes, const Words& line) {
  std::optional<Subprocess> process;
  {
    const LimitForChildren limit(RLIMIT_FSIZE, bytes);
    process.emplace(command(line));
  }
  return process->wait();
}

}  // namespace portwave::testing

#endif
