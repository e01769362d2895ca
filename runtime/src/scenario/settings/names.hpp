#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/system/cut_name.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave::scenario_file {

/// The names that "method", "signals" and "outputs" may use.
class Names {
 public:
  explicit Names(const System& system) : system_(system) {}
  /// Of a system that lacks the terminations and these subsystems, which have defects of their own.
  Names(const System& system, std::unordered_set<std::string> missing)
      : system_(system), is_complete_(false), missing_(std::move(missing)) {}

  const System& system() const { return system_; }
  /// False where something is lacking.
  bool is_complete() const { return is_complete_; }
  /// True when a path leads to what is lacking, so that nothing can be said about it.
  bool is_missing(const std::string& path) const;

  /// To find what misspelt names mean: subsystems, and paths "part.port".
  NameSearch& parts();
  NameSearch& ports();

  /// What "part.state" and the like stand for, parts that were cut included; nothing, and `defect`,
  /// when they stand for nothing.
  std::optional<Quantity> find_quantity(const std::string& label, MethodKind method,
                                        std::string& defect);
  /// {part, port} of "part.port", likewise; {-1, -1} when there is none.
  std::pair<int, int> find_port(const std::string& path) const;
  /// Labels of everything that can be asked for; a part that was cut by its own name, with its states
  /// and its storage.
  std::vector<std::string> labels(MethodKind method) const;
  /// The same of a part; none: there is no such part.
  std::vector<std::string> labels_of(const std::string& name, MethodKind method) const;
  /// The parts of this name: one, none, or all pieces.
  std::vector<int> parts_of(const std::string& name) const;
  /// All states, those of a part that was cut once and under its own name.
  std::vector<Quantity> all_states() const;

 private:
  static std::vector<std::string> labels_of_cut(const CutName& cut);

  const System& system_;
  bool is_complete_ = true;
  std::unordered_set<std::string> missing_;
  std::optional<NameSearch> parts_, ports_;
};

/// Whether a text holds "*" or "?".
bool is_pattern(std::string_view text);
/// "*" stands for any characters, dots included, "?" for one.
bool matches(std::string_view text, std::string_view pattern);

/// The quantities of a pattern, or of a whole part: states, efforts, flows and storages, and signals;
/// waves only where the pattern ends with their name. In the order of the parts; none: nothing is
/// called so.
std::vector<Quantity> quantities_like(const std::string& pattern, Names& names,
                                      const SignalGraph* signals, MethodKind method);
std::vector<Quantity> quantities_of_part(const std::string& name, Names& names, MethodKind method);

}  // namespace portwave::scenario_file
