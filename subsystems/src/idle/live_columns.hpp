#pragma once

#include <vector>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// The inputs of a part that remain when idle ports are left away: live scalar ports, then all external
/// inputs. Matrices are those of Structure; results have room already where they had these shapes before, and
/// then nothing is allocated.
class LiveColumns {
 public:
  /// `idle`: by port.
  LiveColumns(const Signature& signature, const std::vector<bool>& idle);

  /// Numbers of the live scalar ports in the given part.
  const std::vector<int>& ports() const { return ports_; }
  /// Numbers of the remaining inputs in the given part.
  const std::vector<int>& inputs() const { return inputs_; }
  /// The signature without idle ports.
  const Signature& signature() const { return signature_; }

  /// The columns of these inputs.
  void take_columns(const SparseMatrix& from, SparseMatrix& to) const;
  void take(const Structure& from, Structure& to) const;

 private:
  void take_whole_columns(const SparseMatrix& from, SparseMatrix& to) const;
  void take(const SparseMatrix& from, bool rows_too, SparseMatrix& to) const;

  Signature signature_;
  std::vector<int> ports_;
  std::vector<int> inputs_;
  std::vector<int> place_;  ///< by input of the given part: its number among inputs_, −1: idle
};

}  // namespace portwave
