#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace PORTWAVE_EXPORT portwave {

class System;

/// The meaning of the names of a cut part: its pieces are parts of the system, one after the other.
struct CutName {
  struct State {
    int piece = 0;
    int index = 0;
  };
  std::string name;
  Signature whole;
  int first_part = 0;
  int pieces = 0;
  std::vector<State> states;             ///< of each state of the whole: one of its copies
  std::vector<std::string> ports;        ///< of each of its ports: "name/piece.port"
  std::vector<std::vector<int>> copies;  ///< by piece, of each of its states: that of the whole

  bool has_part(int part) const { return part >= first_part && part < first_part + pieces; }
};

/// A label such as "beam.q17" or "beam.tip.flow" in the names of the pieces; unchanged if it names nothing
/// of a cut part.
std::string label_by_pieces(const System& system, const std::string& label);

/// A state as users know it: "beam.q17", which is state `index` of part `part`.
struct NamedState {
  std::string name;
  std::string unit;
  int part = 0;
  int index = 0;
};

/// The states of a system as users know them: those of a part that was cut once, under its own name.
struct StateNames {
  std::vector<NamedState> named;
  std::vector<int> place;  ///< of each named state: its place among the states of all parts in turn
  std::vector<int> name_of;  ///< of each of these: the named state that it is, or is a copy of
};
StateNames state_names(const System& system);

}  // namespace portwave
