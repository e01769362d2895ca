#pragma once

#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/descriptor/descriptor.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A part of a condensed system:  d/dt(Eᵢxᵢ) = (Jᵢ − Rᵢ)Qᵢxᵢ + Bᵢu + inputs from the others.
struct CondensedBlock {
  int part = -1;   ///< its number in the System
  int first = 0;   ///< offset of its first state in the state of the whole
  int size = 0;    ///< n > 0
  SparseMatrix E;  ///< n×n; the identity unless `is_descriptor`
  SparseMatrix J;  ///< with what couplings add to the part itself
  SparseMatrix R;  ///< likewise: the resistors that end its ports
  SparseMatrix Q;
  SparseMatrix B;  ///< n × driven inputs of the whole
  /// Coupling channels [first_channel, first_channel + channels): flow in by the columns of `into`,
  /// seen through those of `out`, both n × channels. They are equal but for feedthrough.
  int first_channel = 0;
  int channels = 0;
  SparseMatrix into;
  SparseMatrix out;
  bool is_descriptor = false;  ///< E is not the identity
  bool is_active = false;      ///< may create energy by its owner's wish
};

/// An external input that is driven.
struct CondensedInput {
  int part;
  int input;
  const Signal* signal;
};

/// Two states that a coupling joins and that nothing else of any coupling touches:
///   ẋ_row = forward · x_column,  ẋ_column = backward · x_row.
struct ScalarCoupling {
  int row, column;
  double forward, backward;
};

/// A system of linear parts as one port-Hamiltonian system, the couplings shifted into J:
///   d/dt(Ex) = (J_d + J_o − R)Qx + Bu,   J_o = Into · C · Outᵀ,   C skew, channels × channels,
/// block-diagonal but for J_o, which is sparse and of low rank. One block per part with states;
/// resistive ends are taken into the blocks that they end. States follow one another block by
/// block, in part order.
/// Errors: ConfigError with every reason why a system has no such form, `where` as in
/// SystemBuilder: nonlinear parts, junctions that do not give the inputs of their ports from the
/// states (two masses joined rigidly), dampers shared by two parts, driven inputs with feedthrough,
/// a singular pencil or an index above 2 of the whole.
/// Source: Bartel, Günther, Jacob & Reis, Numer. Math. 155 (2023), Remark 7.
class CondensedSystem {
 public:
  /// `start_s`: when its runs begin.
  explicit CondensedSystem(const System& system, double start_s = 0.0);
  /// Keeps the system's address, so that a temporary is not allowed.
  explicit CondensedSystem(const System&& system, double start_s = 0.0) = delete;

  const System& system() const { return *system_; }
  double start_s() const { return start_s_; }
  int size() const { return size_; }  ///< n, all states
  std::span<const CondensedBlock> blocks() const { return blocks_; }
  std::span<const CondensedInput> inputs() const { return inputs_; }
  int channels() const { return C_.rows() == 0 ? 0 : static_cast<int>(C_.rows()); }
  const SparseMatrix& C() const { return C_; }
  int block_of_channel(int channel) const {
    return block_of_channel_[static_cast<std::size_t>(channel)];
  }
  /// −1 for parts without states.
  int block_of_part(int part) const { return block_of_part_[static_cast<std::size_t>(part)]; }
  bool has_descriptor() const;
  bool has_active() const;
  /// The kind of differential-algebraic system of the whole; index 0 for ordinary ones.
  const DescriptorAnalysis& analysis() const { return analysis_; }

  /// The matrices of the whole, n×n (B: n × inputs).
  SparseMatrix E() const;
  SparseMatrix J_local() const;
  SparseMatrix J_coupling() const;
  SparseMatrix R() const;
  SparseMatrix Q() const;
  SparseMatrix B() const;

  /// The initial states of the parts. In a descriptor system, the algebraic components are computed from the
  /// others and u at the start. If inputs act on hidden constraints (index 2), u′ there is a forward
  /// difference over 1e-8 s.
  /// Errors: ConfigError when no consistent state has the given Ex, naming the violated equations;
  /// when an input throws or is not finite.
  Eigen::VectorXd initial_state() const;

  /// u at a time. Errors: exceptions of the callbacks.
  void sample(double time_s, double* u) const;

  /// ū and ȳ of every scalar port of the system from co-energy variables z = Qx of the whole.
  void ports(const double* z, std::span<double> effort, std::span<double> flow) const;

  /// "part.state".
  std::string state_label(int state) const;

  /// The couplings one by one if they are scalar and disjoint; empty otherwise, with the reason.
  std::vector<ScalarCoupling> scalar_couplings(std::string& reason) const;

 private:
  struct PortMaps;

  void find_offsets();
  void condense();
  PortMaps port_maps() const;
  void observe_ports(const PortMaps& ports);
  void split_gains(PortMaps& ports) const;
  void add_own_gain(CondensedBlock& block, const PortMaps& ports, std::size_t index);
  void make_channels(CondensedBlock& block, PortMaps& ports, std::size_t index);
  void couple_channels(const PortMaps& ports);
  void refuse_shared_dampers() const;
  void drive(CondensedBlock& block) const;
  void analyse();
  /// Sums of the absolute terms of its entries, for magnitudes.
  SparseMatrix J_coupling(bool magnitudes) const;
  SparseMatrix block_diagonal(SparseMatrix CondensedBlock::*member) const;

  const System* system_;
  double start_s_;
  int size_ = 0;
  std::vector<CondensedBlock> blocks_;
  std::vector<int> block_of_part_;
  std::vector<CondensedInput> inputs_;
  std::vector<bool> effort_in_;  ///< by scalar port: its input is the effort
  DescriptorAnalysis analysis_;
  SparseMatrix C_;
  std::vector<int> block_of_channel_;
  SparseMatrix input_of_z_;   ///< u = input_of_z · z, by scalar port
  SparseMatrix output_of_z_;  ///< y, likewise
};

}  // namespace portwave
