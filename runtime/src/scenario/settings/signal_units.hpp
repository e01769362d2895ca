#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::scenario_file {

/// The unit of what a sensor measures; empty: a plain number, or not known.
std::string unit_of(const System& system, const Sensor& sensor);

/// The units of signals, as far as they are known: those of quantities, those that blocks declare, and
/// through blocks that keep the unit of their inputs. Where two known ones meet they must agree; what is
/// not known agrees with all.
class SignalUnits {
 public:
  /// The "unit" of a block; `where`: that of the text.
  void declare(const std::string& signal, const std::string& unit, const std::string& where);
  /// A sensor. `shown`: how messages name it; empty: by its name.
  void measure(const std::string& signal, const std::string& unit, const std::string& where,
               const std::string& shown = {});
  /// A block by its kind, its inputs, and their places in the file.
  void add(const std::string& signal, const std::string& kind, std::vector<std::string> inputs,
           std::vector<std::string> places);
  /// An input of a part that a signal drives.
  void drive(const std::string& signal, const std::string& unit, const std::string& input,
             const std::string& where);

  /// Every place where units disagree.
  Issues check() const;

 private:
  struct Block {
    std::string kind;
    std::vector<std::string> inputs, places;
  };
  struct Driven {
    std::string signal, unit, input, where;
  };

  std::optional<std::string> unit(const std::string& signal,
                                  std::set<std::string>& on_the_way) const;
  std::optional<std::string> unit(const std::string& signal) const;
  void compare(const std::string& signal, const std::string& unit, const std::string& wanted_by,
               const std::string& where, Issues& issues) const;
  std::string shown(const std::string& signal) const;

  std::map<std::string, std::string> known_, shown_;
  std::map<std::string, Block> blocks_;
  std::vector<Driven> driven_;
  Issues defects_;
};

}  // namespace portwave::scenario_file
