#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/part_types.hpp"
#include "nonlinear/contact_spring.hpp"

namespace portwave {

/// A ContactSpring, of which the catalogue's contacts and gears with play are made.
std::unique_ptr<Subsystem> make_contact(Signature signature, const ContactLaw& law,
                                        std::vector<double> direction);

/// The parameters that say how hard a contact is.
struct ContactNames {
  std::string_view load;         ///< force or torque …
  std::string_view compression;  ///< … at this compression
  std::string_view damping;      ///< a
};

/// Their descriptions, compressions being in `unit`: "m" or "rad".
std::vector<ParameterInfo> contact_parameters(const ContactNames& names, const std::string& unit);
/// Stiffness, damping and reach from their values.
ContactLaw contact_law(const Parameters& p, const ContactNames& names, bool is_hertzian);

}  // namespace portwave
