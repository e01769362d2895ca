#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "portwave/coupling/anderson.hpp"
#include "portwave/coupling/tuning.hpp"
#include "portwave/subsystems/aligned.hpp"

namespace portwave {
namespace {

constexpr double kReduction = 1e-10;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Numbers in [-1, 1) by SplitMix64 of Steele, Lea and Flood (2014): the same everywhere.
class FixedNumbers {
 public:
  double next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_ = 7;
};

/// The linearised parts and their coupling, waves in the order of the scalar ports: b = b⁰ + Du.
///
/// b⁰ is that of random inputs r of the parts before the step, b⁰ = ½(Σ − D)r, Σ the signs of the
/// causalities. It contains nothing that the parts cannot emit: where two ideal ends hold one rigid
/// body PD has an eigenvalue −1 whatever the impedances are, but neither end can excite it.
class LinearIteration {
 public:
  LinearIteration(const PortResponses& responses, std::span<const double> impedance,
                  int acceleration)
      : system_(responses.system()), coupling_(system_.junctions(), impedance) {
    FixedNumbers numbers;
    for (int part = 0; part < static_cast<int>(system_.parts().size()); ++part) {
      const Eigen::MatrixXd& response = responses.of(part);
      const int size = static_cast<int>(response.rows());
      const int first = system_.first_scalar_port(part);
      const Signature& signature = system_.parts()[at(part)].subsystem->signature();
      const Eigen::MatrixXd D =
          scattering_matrix(response, signature, impedance.subspan(at(first), at(size)));
      blocks_.push_back({first, size, scattering_.size()});
      scattering_.insert(scattering_.end(), D.data(), D.data() + D.size());
      Eigen::VectorXd input(size);
      for (double& value : input) value = numbers.next();
      Eigen::VectorXd offset = -D * input;
      Eigen::Index j = 0;
      for (const Port& port : signature.ports) {
        for (int component = 0; component < port.dimension; ++component, ++j) {
          offset[j] += port.causality == Causality::effort_in ? input[j] : -input[j];
        }
      }
      offset_.insert(offset_.end(), offset.data(), offset.data() + size);
    }
    for (auto* wave : {&u_, &b_, &exchanged_}) wave->assign(impedance.size(), 0.0);
    if (acceleration == 0) return;
    sequences_.resize(at(system_.island_count()));
    for (AndersonSequence& sequence : sequences_) sequence.begin(acceleration);
    kept_.assign(at(acceleration) + 2, {u_, u_, u_});
  }

  /// b = b⁰ + Du, a = Pb. The largest |a − u|/max(|u|, |b|) of an island.
  double residual() {
    for (const Block& block : blocks_) {
      const double* D = scattering_.data() + block.matrix;
      double* b = b_.data() + block.first;
      const double* u = u_.data() + block.first;
      std::copy_n(offset_.data() + block.first, block.size, b);
      for (int j = 0; j < block.size; ++j) {
        for (int i = 0; i < block.size; ++i) b[i] += *D++ * u[j];
      }
    }
    coupling_.exchange(b_.data(), exchanged_.data());
    sums_.assign(at(system_.island_count()), {});
    for (std::size_t part = 0; part < blocks_.size(); ++part) {
      Squares& sum = sums_[at(system_.island_of_part(static_cast<int>(part)))];
      const std::size_t first = at(blocks_[part].first);
      for (std::size_t j = first; j < first + at(blocks_[part].size); ++j) {
        sum.gap += (exchanged_[j] - u_[j]) * (exchanged_[j] - u_[j]);
        sum.incident += u_[j] * u_[j];
        sum.outgoing += b_[j] * b_[j];
      }
    }
    accelerate();
    double largest = 0.0;
    for (const Squares& sum : sums_) {
      if (sum.gap == 0.0) continue;
      const double size = std::max(sum.incident, sum.outgoing);
      if (!std::isfinite(size)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, sum.gap / size);
    }
    return std::sqrt(largest);
  }

  void update(MethodKind kind, double relaxation) {
    combine();
    if (kind == MethodKind::douglas_rachford) {
      coupling_.douglas_rachford(relaxation, b_.data(), u_.data());
      return;
    }
    coupling_.all().average(relaxation, b_.data(), u_.data());
  }

 private:
  /// Waves of an evaluation that acceleration keeps.
  struct Kept {
    AlignedVector u, b, exchanged;
  };

  template <class Visit>
  void for_waves(const Visit& visit) const {
    for (std::size_t part = 0; part < blocks_.size(); ++part) {
      const auto island = at(system_.island_of_part(static_cast<int>(part)));
      const std::size_t first = at(blocks_[part].first);
      for (std::size_t j = first; j < first + at(blocks_[part].size); ++j) visit(island, j);
    }
  }

  /// Keeps the evaluation and judges it, island by island.
  void accelerate() {
    if (sequences_.empty()) return;
    std::vector<double> products(sequences_.size() * kept_.size(), 0.0);
    for_waves([&](std::size_t island, std::size_t j) {
      const double gap = exchanged_[j] - u_[j];
      for (std::size_t slot = 0; slot < kept_.size(); ++slot) {
        products[island * kept_.size() + slot] +=
            gap * (kept_[slot].exchanged[j] - kept_[slot].u[j]);
      }
      Kept& own = kept_[at(sequences_[island].slot())];
      own.u[j] = u_[j];
      own.b[j] = b_[j];
      own.exchanged[j] = exchanged_[j];
    });
    for (std::size_t island = 0; island < sequences_.size(); ++island) {
      sequences_[island].judge(std::span(products).subspan(island * kept_.size(), kept_.size()),
                               sums_[island].gap);
    }
  }

  /// What the next update starts from.
  void combine() {
    if (sequences_.empty()) return;
    for_waves([&](std::size_t island, std::size_t j) {
      if (sequences_[island].plain()) return;
      double u = 0.0, b = 0.0;
      for (const auto& term : sequences_[island].terms()) {
        u += term.weight * kept_[at(term.slot)].u[j];
        b += term.weight * kept_[at(term.slot)].b[j];
      }
      u_[j] = u;
      b_[j] = b;
    });
  }

  struct Block {
    int first;
    int size;
    std::size_t matrix;
  };

  struct Squares {
    double gap = 0.0;
    double incident = 0.0;
    double outgoing = 0.0;
  };

  const System& system_;
  Interconnection coupling_;
  std::vector<Block> blocks_;
  std::vector<double> scattering_;  // column-major blocks
  std::vector<double> offset_;
  std::vector<Squares> sums_;  // by island
  AlignedVector u_, b_, exchanged_;
  std::vector<AndersonSequence> sequences_;  // by island, if accelerated
  std::vector<Kept> kept_;                   // by slot
};

}  // namespace

PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           MethodKind kind, double relaxation, int limit, int acceleration) {
  LinearIteration iteration(responses, impedance, acceleration);
  const double first = iteration.residual();
  PredictedRate rate{.contraction = 0.0, .evaluations = 1, .converges = first == 0.0};
  for (int k = 1; k < limit && !rate.converges; ++k) {
    iteration.update(kind, relaxation);
    const double residual = iteration.residual();
    if (!std::isfinite(residual)) {
      rate.contraction = std::numeric_limits<double>::infinity();
      break;
    }
    rate.evaluations = k + 1;
    rate.contraction = std::pow(residual / first, 1.0 / k);
    rate.converges = residual <= kReduction * first;
  }
  if (!rate.converges) rate.evaluations = limit;
  return rate;
}

}  // namespace portwave
