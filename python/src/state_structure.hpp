#pragma once

#include <functional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

/// A matrix of constants, row by row, or one that a function of the state writes row by row.
struct MatrixOfState {
  std::string name;
  int rows = 0, columns = 0;
  std::vector<double> constant = {};
  std::function<void(const double* x, double* out)> function = nullptr;
};

/// The structure matrices of a part, some of which depend on its state. A call writes those at a state;
/// it throws std::runtime_error where they are not finite, J is not skew-symmetric, R is not symmetric or
/// not positive semidefinite there, and tells the state.
class StateStructure {
 public:
  StateStructure(const portwave::Signature& signature, MatrixOfState J, MatrixOfState R,
                 MatrixOfState G);

  bool is_constant() const;
  /// The constant matrices, and the others as they are at a state (empty: zeros), with room for every
  /// entry. Errors: ConfigError, as a call at that state.
  portwave::Structure first(const std::vector<double>& state) const;
  void operator()(const double* x, portwave::Structure& out) const;

 private:
  void fill(const MatrixOfState& from, const double* x, portwave::SparseMatrix& to) const;
  portwave::Issues defects(const portwave::Structure& structure) const;
  std::string state_text(const double* x) const;

  std::string type_;
  int n_, m_;
  std::vector<std::string> names_;
  MatrixOfState J_, R_, G_;
};
