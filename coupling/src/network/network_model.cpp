#include "portwave/coupling/network/network_model.hpp"

#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/coupling/network/kick_drift.hpp"
#include "portwave/coupling/network/taylor.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Linear parts, the couplings shifted into J.
class CondensedModel final : public NetworkModel {
 public:
  CondensedModel(const System& system, double start_s)
      : condensed_(system, start_s), mean_(at(condensed_.size()), 0.0), z_(mean_) {
    for (const CondensedBlock& block : condensed_.blocks()) {
      blocks_.push_back({block.part, block.first, block.size});
    }
  }

  const System& system() const override { return condensed_.system(); }
  std::span<const NetworkBlock> blocks() const override { return blocks_; }
  int block_of_part(int part) const override { return condensed_.block_of_part(part); }
  bool has_active() const override { return condensed_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool ledger) const override {
    return make_network_method(condensed_, step_s, method, ledger);
  }

  /// From z̄ = Q(xⁿ + xⁿ⁺¹)/2.
  void mean_ports(const NetworkMethod& method, std::span<double> effort,
                  std::span<double> flow) override {
    const std::span<const double> before = method.previous_state(), after = method.state();
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] = 0.5 * (before[i] + after[i]);
    for (const CondensedBlock& block : condensed_.blocks()) {
      Eigen::Map<Eigen::VectorXd>(z_.data() + block.first, block.size).noalias() =
          block.Q * Eigen::Map<const Eigen::VectorXd>(mean_.data() + block.first, block.size);
    }
    condensed_.ports(z_.data(), effort, flow);
  }

 private:
  CondensedSystem condensed_;
  std::vector<NetworkBlock> blocks_;
  std::vector<double> mean_, z_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_network_model(const System& system, double start_s,
                                                 const CouplingMethod& method) {
  const auto* const splitting = method.as<Splitting>();
  if (splitting != nullptr && splitting->kind == SplittingKind::kick_drift) {
    return make_kick_drift_model(system, start_s);
  }
  if (splitting != nullptr && splitting->kind == SplittingKind::taylor) {
    return make_taylor_model(system, start_s);
  }
  return std::make_unique<CondensedModel>(system, start_s);
}

}  // namespace portwave
