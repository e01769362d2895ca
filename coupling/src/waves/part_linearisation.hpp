#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

class StateArchive;

/// D = S′ of some parts, part by part: exact if S is affine, otherwise by central differences
/// with steps of 1e-6 of the part's own waves, or roughly as the parts themselves tell (PortSlopes).
class PartLinearisation {
 public:
  /// `parts` in increasing order. Takes the matrices of the affine ones.
  PartLinearisation(const WaveDiscretisation& waves, std::span<const int> parts);

  bool is_affine() const { return widest_ == 0; }
  /// False: some part is not affine and declares its differences meaningless.
  bool is_possible() const { return is_possible_; }
  /// Takes the matrices of the affine parts again: step maps have changed.
  void take_affine();
  /// The same for one of them alone.
  void take_affine(int part);
  /// `rough`: as parts tell, where they do, at the cost of less than one evaluation.
  enum class Accuracy { rough, by_differences };
  /// Differentiates the others at the incident waves u, `exchanged` being P S(u). `record` is
  /// frozen and stays as it is, warm starts included: solves are made in a copy. False when one of
  /// them fails; its part then keeps the D that it had (0 at first). Allocates at the first call
  /// only.
  bool differentiate(const double* record, const double* u, const double* exchanged,
                     Accuracy accuracy);
  /// Of the last `differentiate`: evaluations of S of those parts, by the one that needed most.
  int evaluations() const { return evaluations_; }
  /// Whether the last `differentiate` took what parts tell.
  bool is_rough() const { return is_rough_; }
  /// Saves all present D as those to which `go_back` returns.
  void keep() { kept_ = matrices_; }
  void go_back() { matrices_ = kept_; }
  /// Row-major.
  const double* of(int part) const;
  std::size_t bytes() const;
  /// All D. Reading: true if they are unchanged.
  bool archive(StateArchive& archive);

 private:
  struct Own {
    int part;
    std::size_t matrix;  // its first entry in matrices_
  };
  /// The parts of a batch that are to be differentiated.
  struct BatchCopy {
    int batch;
    std::vector<Own> parts;
    AlignedVector record;
    AlignedVector a, b[2];
  };

  bool take_slopes(const BatchCopy& copy, const double* record, const double* u);
  void set_steps(const double* u, const double* exchanged);
  void copy_record(BatchCopy& copy, const double* record) const;
  void scatter(BatchCopy& copy, AlignedVector& out) const;
  bool take_column(const BatchCopy& copy, const double* step, int column);

  const WaveDiscretisation& waves_;
  std::vector<Own> parts_;
  std::vector<double> matrices_, kept_;
  std::vector<BatchCopy> copies_;
  std::vector<int> nonlinear_;  // the parts in all of them, in increasing order
  std::vector<double> steps_;   // of the parts of all copies, in order
  int widest_ = 0;
  int evaluations_ = 0;
  bool is_rough_ = false;
  bool is_possible_ = true;
};

}  // namespace portwave
