#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// Collects a linear part balance by balance, as one writes its equations down. Every state has a
/// co-energy variable z: the force k d of an elongation d, the velocity v of a moving mass. Inputs
/// are the scalar ports, then the external inputs, in the order of their declaration.
class LinearPartBuilder {
 public:
  struct State {
    int index;
  };
  struct Input {
    int index;
  };
  /// A multiple of the co-energy variable of a state, or of an input.
  struct Term {
    Term(State state, double factor_of_z)
        : index(state.index), is_input(false), factor(factor_of_z) {}
    Term(Input input, double factor_of_u)
        : index(input.index), is_input(true), factor(factor_of_u) {}
    int index;
    bool is_input;
    double factor;
  };

  explicit LinearPartBuilder(std::string type) { signature_.type = std::move(type); }

  /// All ports before the first input.
  Input port(std::string name, Causality causality, Domain domain);
  Input input(std::string name, std::string unit);
  /// H = weight x²/2 and z = weight x; the balance is that of x'. Weight 0: what is only observed.
  State displacement(std::string name, std::string unit, double weight);
  /// H = inertia x²/2 and z = x; the balance is that of inertia x'. Inertia > 0.
  State velocity(std::string name, std::string unit, double inertia);

  /// Adds factor z_from to the balance of `to`, and what conserves the energy to that of `from`.
  void exchange(State to, State from, double factor);
  /// Adds factor u to the balance of `to`, and factor z_to to the output of the input.
  void drive(State to, Input from, double factor);
  /// Adds factor u_from to the output of `to`, and -factor u_to to that of `from`.
  void pass(Input to, Input from, double factor);
  /// Dissipates the power resistance (Σ terms)².
  void dissipate(double resistance, std::initializer_list<Term> terms);

  std::unique_ptr<Subsystem> build(bool allow_active) &&;

 private:
  using Entries = std::vector<Eigen::Triplet<double>>;

  Signature signature_;
  std::vector<double> scales_;  ///< what the balance of each state is divided by
  Entries J_, R_, G_, P_, S_, N_, Q_;
};

/// A lossless two-port: u = (of `first`, of `second`), y_first = gain u_second, y_second = -gain u_first.
std::unique_ptr<Subsystem> lossless_two_port(std::string type, Port first, Port second, double gain,
                                             bool allow_active);

/// A body that can move in one direction, with ports that take an effort and give f = -velocity.
struct Body {
  std::string type;
  Domain domain;
  std::string position, position_unit, velocity, velocity_unit, force, force_unit, port;
  double inertia;
  double damping;
  int ports;
};
std::unique_ptr<Subsystem> make_body(const Body& body, bool allow_active);

/// A spring, a damper or both side by side between the ports "left" and "right", which take flows.
struct Link {
  std::string type;
  Domain domain;
  std::string elongation, elongation_unit;  ///< no state where the name is empty
  double stiffness = 0.0;
  double damping = 0.0;
};
std::unique_ptr<Subsystem> make_link(const Link& link, bool allow_active);

/// A number of either sign that is not 0. `nonzero` fetches it: ConfigError where it is 0.
ParameterInfo signed_ratio(std::string name, std::string unit, std::string summary);
double nonzero(const Parameters& parameters, std::string_view name);
/// A required integer from 1 to a million.
ParameterInfo cell_count(std::string name, std::string summary);
/// A damper that must be given.
ParameterInfo required_damper(std::string name, std::string unit, std::string summary);
ParameterInfo with_default(ParameterInfo info, ParameterValue value);
/// The domain of the port of a source, required, and its value.
ParameterInfo domain_choice();
Domain domain_of(const Parameters& parameters);
/// The number of ports of a body: 1 unless given.
ParameterInfo port_count();

}  // namespace portwave
