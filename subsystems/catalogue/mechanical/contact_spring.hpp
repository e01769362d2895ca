#pragma once

#include <memory>
#include <vector>

#include "nonlinear/contact_face.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// A spring that acts while it is compressed, between its scalar ports, all of which take flows:
///   d' = Nᵀf,  s = max(0, ±d − gap)
///   H = k sᵐ⁺¹/(m+1),  e = N (±k sᵐ + r d'),  m = 1 (linear) or 3/2 (Hertz)
/// with the resistance r = a k sᵐ, but no larger than what takes up all that the spring gives: a face that is
/// left faster than it springs back pushes with 0, and does not pull. H depends on s alone, and r ≥ 0, so that no
/// step takes more energy out of a contact than went into it. With two faces H, e and r are sums. The effort of
/// each rises with d, so that a step has one solution, also from one face to the other.
/// `signature`: one state d, no inputs, as many scalar ports as N has entries.
std::unique_ptr<Subsystem> make_contact_spring(Signature signature, const ContactLaw& law,
                                               std::vector<double> direction);

}  // namespace portwave
