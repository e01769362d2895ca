#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "waves/interface_equation.hpp"

namespace portwave {
namespace {

constexpr double kReduction = 1e-10;

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
                  std::span<const char> wanted)
      : system_(responses.system()),
        coupling_(system_.junctions(), impedance),
        wanted_(wanted),
        sums_(at(system_.island_count())) {
    for (int part = 0; part < static_cast<int>(system_.parts().size()); ++part) {
      const Eigen::MatrixXd& response = responses.of(part);
      const int size = static_cast<int>(response.rows());
      const int first = system_.first_scalar_port(part);
      const Signature& signature = system_.parts()[at(part)].component->signature();
      const bool counts = is_wanted(system_.island_of_part(part));
      blocks_.push_back({first, counts ? size : 0, scattering_.size()});
      if (!counts) continue;
      const Eigen::MatrixXd D =
          scattering_matrix(response, signature, impedance.subspan(at(first), at(size)));
      scattering_.insert(scattering_.end(), D.data(), D.data() + D.size());
    }
    for (auto* wave : {&u_, &b_, &exchanged_, &offset_}) wave->assign(impedance.size(), 0.0);
  }

  /// From u = 0, or, `under_way`, from the waves that two steps before have left.
  void start(bool under_way, int acceleration) {
    std::fill(u_.begin(), u_.end(), 0.0);
    for (int step = under_way ? 2 : 0; step > 0; --step) {
      draw_offset();
      emit();
      coupling_.exchange(b_.data(), u_.data());
    }
    draw_offset();
    sequences_.clear();
    if (acceleration == 0) return;
    sequences_.resize(at(system_.island_count()));
    for (AndersonSequence& sequence : sequences_) sequence.begin(acceleration);
    kept_.assign(at(acceleration) + 2, {u_, u_, u_});
  }

  /// b = b⁰ + Du, a = Pb.
  void evaluate() {
    emit();
    coupling_.exchange(b_.data(), exchanged_.data());
    std::fill(sums_.begin(), sums_.end(), GapSquares{});
    for (std::size_t part = 0; part < blocks_.size(); ++part) {
      GapSquares& sum = sums_[at(system_.island_of_part(static_cast<int>(part)))];
      const std::size_t first = at(blocks_[part].first);
      for (std::size_t j = first; j < first + at(blocks_[part].size); ++j) {
        sum.add(u_[j], b_[j], exchanged_[j]);
      }
    }
    accelerate();
  }

  bool is_wanted(int island) const { return wanted_.empty() || wanted_[at(island)] != 0; }

  /// |a − u|/max(|u|, |b|) of an island.
  double residual(int island) const {
    const double residual = sums_[at(island)].residual();
    return std::isfinite(residual) ? residual : std::numeric_limits<double>::infinity();
  }

  /// Of no rule: by the interface equation.
  void update(const InnerUpdate& update) {
    if (update.rule() == nullptr) return update_interface();
    combine();
    coupling_.update(update, b_.data(), u_.data());
  }

  /// Factorises I − PD of the wanted islands; the entries by island, 0 where there are no factors.
  std::vector<std::size_t> factorise() {
    std::vector<std::size_t> entries(at(system_.island_count()), 0);
    networks_.emplace(system_);
    equations_.resize(entries.size());
    const auto D = [&](int part) { return row_major(blocks_[at(part)]); };
    for (int island = 0; island < system_.island_count(); ++island) {
      if (!is_wanted(island) || networks_->of[at(island)].ports.empty()) continue;
      auto equation = std::make_unique<InterfaceEquation>(system_, *networks_, island);
      if (equation->expected_entries(coupling_) > InterfaceEquation::kMostEntries) continue;
      if (!equation->factorise(coupling_, D)) continue;
      entries[at(island)] = equation->entries();
      equations_[at(island)] = std::move(equation);
    }
    return entries;
  }

 private:
  /// Waves of an evaluation that acceleration keeps.
  struct Kept {
    AlignedVector u, b, exchanged;
  };

  struct Block {
    int first;
    int size;
    std::size_t matrix;
  };

  /// b⁰ = ½(Σ − D)r, but for the factor.
  void draw_offset() {
    for (int part = 0; part < static_cast<int>(blocks_.size()); ++part) {
      const Block& block = blocks_[at(part)];
      if (block.size == 0) continue;
      input_.resize(at(block.size));
      for (double& value : input_) value = numbers_.next();
      double* offset = offset_.data() + block.first;
      std::fill_n(offset, block.size, 0.0);
      add_product(block, input_.data(), -1.0, offset);
      std::size_t j = 0;
      for (const Port& port : system_.parts()[at(part)].component->signature().ports) {
        for (int entry = 0; entry < port.dimension; ++entry, ++j) {
          offset[j] += port.causality == Causality::effort_in ? input_[j] : -input_[j];
        }
      }
    }
  }

  void add_product(const Block& block, const double* u, double factor, double* b) const {
    const double* D = scattering_.data() + block.matrix;
    for (int j = 0; j < block.size; ++j) {
      for (int i = 0; i < block.size; ++i) b[i] += *D++ * (factor * u[j]);
    }
  }

  void emit() {
    std::copy(offset_.begin(), offset_.end(), b_.begin());
    for (const Block& block : blocks_) {
      add_product(block, u_.data() + block.first, 1.0, b_.data() + block.first);
    }
  }

  const double* row_major(const Block& block) {
    row_major_.resize(at(block.size) * at(block.size));
    for (int i = 0; i < block.size; ++i) {
      for (int j = 0; j < block.size; ++j) {
        row_major_[at(i * block.size + j)] = scattering_[block.matrix + at(j * block.size + i)];
      }
    }
    return row_major_.data();
  }

  void update_interface() {
    for (std::size_t island = 0; island < equations_.size(); ++island) {
      if (equations_[island] == nullptr) continue;
      const std::vector<int>& ports = networks_->of[island].ports;
      gap_.resize(ports.size());
      for (std::size_t i = 0; i < ports.size(); ++i) {
        gap_[i] = exchanged_[at(ports[i])] - u_[at(ports[i])];
      }
      equations_[island]->solve(gap_.data(), gap_.data());
      for (std::size_t i = 0; i < ports.size(); ++i) u_[at(ports[i])] += gap_[i];
    }
  }

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

  const System& system_;
  Interconnection coupling_;
  std::span<const char> wanted_;  // islands; empty: all
  std::vector<Block> blocks_;
  std::vector<double> scattering_;  // column-major blocks
  std::vector<GapSquares> sums_;    // by island
  AlignedVector u_, b_, exchanged_, offset_;
  FixedNumbers numbers_;
  std::vector<double> input_, gap_, row_major_;
  std::vector<AndersonSequence> sequences_;  // by island, if accelerated
  std::vector<Kept> kept_;                   // by slot
  std::optional<IslandNetworks> networks_;   // of the interface equation
  std::vector<std::unique_ptr<InterfaceEquation>> equations_;
};

/// What one island shows, evaluation by evaluation.
class Course {
 public:
  bool done() const { return done_; }
  void add(int k, double residual, int limit) {
    if (done_) return;
    if (k == 0) first_ = residual;
    if (!std::isfinite(residual)) {
      rate_.contraction = std::numeric_limits<double>::infinity();
      rate_.evaluations = limit;
      done_ = true;
      return;
    }
    rate_.evaluations = k + 1;
    rate_.contraction = k > 0 && first_ > 0.0 ? std::pow(residual / first_, 1.0 / k) : 0.0;
    rate_.converges = residual <= kReduction * first_;
    done_ = rate_.converges;
  }
  const PredictedRate& rate() const { return rate_; }

 private:
  PredictedRate rate_;
  double first_ = 0.0;
  bool done_ = false;
};

void take_worse(const PredictedRate& rate, PredictedRate& worst) {
  const std::size_t entries = worst.factor_entries + rate.factor_entries;
  const bool is_worse =
      rate.converges != worst.converges
          ? !rate.converges
          : rate.evaluations > worst.evaluations ||
                (rate.evaluations == worst.evaluations && rate.contraction > worst.contraction);
  if (is_worse) worst = rate;
  worst.factor_entries = entries;
}

}  // namespace

std::vector<PredictedRate> predict_rates(const PortResponses& responses,
                                         std::span<const double> impedance,
                                         const InnerUpdate& update, int limit, int acceleration,
                                         std::span<const char> wanted) {
  if (!responses.problem().empty()) throw ConfigError("/method/impedance", responses.problem());
  const bool is_interface = update.rule() == nullptr;
  LinearIteration iteration(responses, impedance, wanted);
  const int islands = responses.system().island_count();
  std::vector<PredictedRate> rates(at(islands), {.evaluations = 1, .converges = true});
  std::vector<std::size_t> entries;
  if (is_interface) entries = iteration.factorise();
  for (const bool under_way : {false, true}) {
    std::vector<Course> courses(at(islands));
    iteration.start(under_way, is_interface ? 0 : acceleration);
    bool open = true;
    for (int k = 0; k < limit && open; ++k) {
      if (k > 0) iteration.update(update);
      iteration.evaluate();
      open = false;
      for (int i = 0; i < islands; ++i) {
        if (!iteration.is_wanted(i)) continue;
        courses[at(i)].add(k, iteration.residual(i), limit);
        open = open || !courses[at(i)].done();
      }
    }
    for (int i = 0; i < islands; ++i) {
      if (iteration.is_wanted(i)) take_worse(courses[at(i)].rate(), rates[at(i)]);
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) rates[i].factor_entries = entries[i];
  return rates;
}

PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           const InnerUpdate& update, int limit, int acceleration) {
  PredictedRate worst{.evaluations = 1, .converges = true};
  for (const PredictedRate& rate :
       predict_rates(responses, impedance, update, limit, acceleration)) {
    take_worse(rate, worst);
  }
  return worst;
}

}  // namespace portwave
