#pragma once

#include <memory>
#include <string>
#include <vector>

#include "portwave/coupling/system/cut.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// Shares of checked matrices are semidefinite to the rounding of their diagonal, which pivots of
/// singular ones show enlarged.
inline constexpr double kShareTolerance = 1e-6;

using CutEntries = std::vector<Eigen::Triplet<double>>;

/// What pieces are made of, and where the ports and inputs of the uncut part go. An input column of
/// B or G that acts on one piece alone goes there; else an external input goes to each piece, and a
/// port becomes a lossless piece "port<k>" joined to a port of its name in each.
class CutDraft {
 public:
  /// `columns`: by scalar port, then input: the pieces that it acts on, ascending.
  CutDraft(const Signature& whole, int pieces, const std::vector<std::vector<int>>& columns);

  /// What input column `column` of a piece is: a column of the uncut part, or −1 for one of the
  /// ports that `add_port` has added. Scalar ports first, then inputs.
  std::vector<int> columns_of(int piece) const;
  /// A port between pieces, at the end of the ports of a piece. Returns its first column.
  void add_port(int piece, const std::string& name, Causality causality, int dimension);
  int scalar_ports(int piece) const;
  /// A name that no port of the uncut part begins with.
  const std::string& prefix() const { return prefix_; }

  Signature signature(int piece, const std::string& type, std::vector<StateVariable> states) const;
  std::vector<int> inputs(int piece) const { return inputs_[static_cast<std::size_t>(piece)]; }

  /// The lossless pieces of ports that act on several, and the joints of them, after the others.
  void finish(Cut& cut) const;

 private:
  struct Own {
    Port port;
    int first;  ///< column of the uncut part, −1: added
  };
  struct Spread {
    int port;  ///< of the uncut part
    std::vector<int> pieces;
  };

  const Signature& whole_;
  std::vector<std::vector<Own>> ports_;
  std::vector<std::vector<int>> inputs_;
  std::vector<Spread> spread_;
  std::vector<CutPort> places_;  ///< piece −1: spread
  std::string prefix_;
};

/// Errors: ConfigError, with the reason.
Cut cut_second_order(const DescriptorPortHamiltonian& part, const SecondOrderForm& form, int parts);
Cut cut_structure(const Signature& whole, const Structure& structure, const SparseMatrix& Q,
                  const LinearPortHamiltonian::Options& options, int parts);
Cut cut_descriptor(const DescriptorPortHamiltonian& part,
                   const DescriptorPortHamiltonian::Options& options, int parts);

SparseMatrix from_entries(std::size_t rows, std::size_t columns, const CutEntries& entries);
/// Rows and columns of M.
SparseMatrix sub_matrix(const SparseMatrix& M, const std::vector<int>& rows,
                        const std::vector<int>& columns);
/// Numbers 0 … pieces − 1 of the parts that are not empty, and how many they are.
int without_empty_parts(std::vector<int>& part, int parts);

}  // namespace portwave
