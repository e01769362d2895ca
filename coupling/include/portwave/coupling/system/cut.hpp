#pragma once

#include <memory>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A port of a piece.
struct CutPort {
  int piece = 0;
  std::string port;
};

/// One of the parts that a part was cut into.
struct CutPiece {
  std::string name;  ///< "0", "1", …; "interface", "port0", "resistor0" for those between them
  std::shared_ptr<const Component> component;
  std::vector<int> states;  ///< of each of its states: the state of the uncut part
  std::vector<int> inputs;  ///< of each of its external inputs: the one of the uncut part
};

/// How ports of the pieces are joined.
struct CutJoint {
  Joint joint;
  std::vector<CutPort> ports;
};

/// A part as several: pieces, and joints between them that are lossless. Together they have the
/// states, the energy and the equations of the part; coupled exactly, a step of them is its step to
/// round-off, for every step size, number of stages and input.
struct Cut {
  struct Place {
    int piece = 0;
    int state = 0;
  };
  std::vector<CutPiece> pieces;
  std::vector<CutJoint> joints;
  std::vector<Place> states;   ///< of each state of the uncut part: one of its copies
  std::vector<CutPort> ports;  ///< of each of its ports, under its own name
};

/// Cuts a linear part into about equal pieces by its graph: METIS, with a fixed seed.
///
/// Second-order systems (M q'' + D q' + K q = B u in the form of descriptor_form) are torn at
/// coordinates: pieces that meet hold copies with one velocity and balanced forces. M, D and K are
/// split into positive semidefinite shares, M into definite ones; if no such shares exist, which
/// needs pieces in a ring, the remainder is a small piece of its own, "interface".
/// Port-Hamiltonian parts are cut between states: entries of J become a lossless coupling, entries
/// of R a resistor, and storage Q is torn as K is. In descriptor form states that E or Q ties stay
/// together.
/// Shapes   every state is in one piece or more; external inputs go to each piece that they act on,
///          and a port that acts on several pieces is a piece of its own, "port0".
/// Cost     a sparse factorisation per piece, a solve in it per coordinate of its cut.
/// Errors   ConfigError: the part is not linear or not given by such matrices, has fewer states than
///          parts, or cannot be cut, with the reason.
Cut cut_part(const Component& part, int parts);

/// Adds the pieces as parts "name/0", "name/1", …; `options` are those of the uncut part, whose names
/// keep their meaning (System::cuts): "name.state", "name.port.flow", "name.input".
/// Precondition: the options fit the part.
void add_pieces(SystemBuilder& builder, const std::string& name, const Component& whole,
                const Cut& cut, const SystemBuilder::PartOptions& options);
/// Joins them.
void join_pieces(SystemBuilder& builder, const std::string& name, const Cut& cut);
/// The path "name/3.port" of a port.
std::string path_of(const std::string& name, const Cut& cut, const CutPort& port);

}  // namespace portwave
