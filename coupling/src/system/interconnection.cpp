#include "portwave/coupling/system/interconnection.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/junction_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "system/balance_row.hpp"

namespace portwave {

/// Turns junctions into CompiledJunctions: those of one form, arity and sign are sorted by their
/// first offset; stretches whose offsets follow one another become contiguous runs, the rest one
/// indexed run per kind.
class JunctionCompiler {
 public:
  JunctionCompiler(const Interconnection& coupling, std::span<const int> renumbering)
      : coupling_(coupling), renumbering_(renumbering) {}

  CompiledJunctions compile(std::span<const int> junctions) const;
  /// Writes the weights as they are now into what was compiled of these junctions before. False, and
  /// nothing is written, where it was compiled of others, or one has another form or sign.
  /// Allocates nothing.
  bool refresh(CompiledJunctions& compiled, std::span<const int> junctions) const;

 private:
  int renumbered(int offset) const {
    return renumbering_.empty() ? offset : renumbering_[static_cast<std::size_t>(offset)];
  }
  int offset(int junction, int position) const;
  bool follows(int previous, int next) const;
  /// In the order of their first offsets.
  void sort(std::vector<int>& junctions) const;
  double reflection_value(int junction, int k) const;
  void add_run(std::span<const int> junctions, bool contiguous, CompiledJunctions& out) const;
  /// Sets the values and loops of a run, for which there is room.
  void weigh(JunctionRun& run, std::span<const int> junctions, AlignedVector& values) const;

  const Interconnection& coupling_;
  std::span<const int> renumbering_;
};

namespace {

/// Shorter stretches cost more as loops of their own than indexed.
constexpr std::size_t kShortestRun = 8;

}  // namespace

int JunctionCompiler::offset(int junction, int position) const {
  return renumbered(coupling_.waves(junction)[static_cast<std::size_t>(position)]);
}

bool JunctionCompiler::follows(int previous, int next) const {
  const std::span<const int> before = coupling_.waves(previous), after = coupling_.waves(next);
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (renumbered(after[k]) != renumbered(before[k]) + 1) return false;
  }
  return true;
}

void JunctionCompiler::sort(std::vector<int>& junctions) const {
  std::vector<std::pair<int, int>> by_offset;
  by_offset.reserve(junctions.size());
  for (const int j : junctions) by_offset.emplace_back(offset(j, 0), j);
  std::ranges::sort(by_offset);
  for (std::size_t i = 0; i < junctions.size(); ++i) junctions[i] = by_offset[i].second;
}

/// The k-th value that the loops read of a reflection: its normal; for two ports, where nothing is
/// gained by that, the entries p = ±(n₁² − n₂²) and s = ±2n₁n₂ of P.
double JunctionCompiler::reflection_value(int junction, int k) const {
  const Interconnection::Coefficients c = coupling_.coefficients(junction);
  if (c.values.size() != 2) return c.values[static_cast<std::size_t>(k)];
  const double n1 = c.values[0], n2 = c.values[1];
  return c.sign * (k == 0 ? (n1 - n2) * (n1 + n2) : 2.0 * n1 * n2);
}

CompiledJunctions JunctionCompiler::compile(std::span<const int> junctions) const {
  using Kind = std::tuple<JunctionForm, std::size_t, double>;
  std::map<Kind, std::vector<int>> kinds;
  auto of_last = kinds.end();
  for (const int j : junctions) {
    const Kind kind{coupling_.form(j), coupling_.waves(j).size(), coupling_.coefficients(j).sign};
    if (of_last == kinds.end() || of_last->first != kind) of_last = kinds.try_emplace(kind).first;
    of_last->second.push_back(j);
  }
  CompiledJunctions out;
  for (auto& [kind, list] : kinds) {
    sort(list);
    if (std::get<JunctionForm>(kind) == JunctionForm::dense) {
      add_run(list, false, out);
      continue;
    }
    std::vector<int> scattered;
    std::size_t first = 0;
    while (first < list.size()) {
      std::size_t last = first + 1;
      while (last < list.size() && follows(list[last - 1], list[last])) ++last;
      const std::span<const int> stretch(list.data() + first, last - first);
      if (stretch.size() >= kShortestRun) {
        add_run(stretch, true, out);
      } else {
        scattered.insert(scattered.end(), stretch.begin(), stretch.end());
      }
      first = last;
    }
    if (!scattered.empty()) add_run(scattered, false, out);
  }
  std::size_t work = 0;
  for (JunctionRun& run : out.runs_) {
    run.work = static_cast<int>(work);
    if (run.form == JunctionForm::dense) work += static_cast<std::size_t>(run.arity);
  }
  out.work_.resize(work);
  return out;
}

void JunctionCompiler::add_run(std::span<const int> junctions, bool contiguous,
                               CompiledJunctions& out) const {
  const int first = junctions.front();
  JunctionRun run;
  run.form = coupling_.form(first);
  run.contiguous = contiguous;
  run.arity = static_cast<int>(coupling_.waves(first).size());
  run.count = static_cast<int>(junctions.size());
  run.sign = coupling_.coefficients(first).sign;
  run.offsets = static_cast<int>(out.offsets_.size());
  run.values = static_cast<int>(out.values_.size());
  out.junctions_.insert(out.junctions_.end(), junctions.begin(), junctions.end());
  if (run.form == JunctionForm::dense) {
    for (const int j : junctions) {
      for (int k = 0; k < run.arity; ++k) out.offsets_.push_back(offset(j, k));
    }
  } else {
    for (int k = 0; k < run.arity; ++k) {
      if (contiguous) {
        out.offsets_.push_back(offset(first, k));
        continue;
      }
      for (const int j : junctions) out.offsets_.push_back(offset(j, k));
    }
  }
  out.values_.resize(out.values_.size() +
                     coupling_.coefficients(first).values.size() * junctions.size());
  weigh(run, junctions, out.values_);
  out.runs_.push_back(run);
}

void JunctionCompiler::weigh(JunctionRun& run, std::span<const int> junctions,
                             AlignedVector& values) const {
  double* to = values.data() + run.values;
  const auto values_of = [&](int j) { return coupling_.coefficients(j).values; };
  if (run.form == JunctionForm::dense) {
    for (const int j : junctions) to = std::ranges::copy(values_of(j), to).out;
  } else if (run.form == JunctionForm::reflection) {
    const auto normal = values_of(junctions.front());
    run.shared = std::ranges::all_of(
        junctions, [&](int j) { return std::ranges::equal(normal, values_of(j)); });
    const std::span<const int> distinct = run.shared ? junctions.first(1) : junctions;
    for (int k = 0; k < run.arity; ++k) {
      for (const int j : distinct) *to++ = reflection_value(j, k);
    }
  }
  junction_kernels().choose(run);
}

bool JunctionCompiler::refresh(CompiledJunctions& compiled, std::span<const int> junctions) const {
  if (compiled.junctions_.size() != junctions.size()) return false;
  const auto for_runs = [&](const auto& visit) {
    const int* first = compiled.junctions_.data();
    for (JunctionRun& run : compiled.runs_) {
      const std::span<const int> own(first, static_cast<std::size_t>(run.count));
      if (!visit(run, own)) return false;
      first += run.count;
    }
    return true;
  };
  const auto has_its_form = [&](const JunctionRun& run, std::span<const int> own) {
    return std::ranges::all_of(own, [&](int j) {
      return coupling_.form(j) == run.form && coupling_.coefficients(j).sign == run.sign;
    });
  };
  if (!for_runs(has_its_form)) return false;
  return for_runs([&](JunctionRun& run, std::span<const int> own) {
    if (run.form != JunctionForm::swap) weigh(run, own, compiled.values_);
    return true;
  });
}

const JunctionKernels& junction_kernels() { return PORTWAVE_KERNELS(kJunctionKernels); }

std::size_t CompiledJunctions::bytes() const {
  return runs_.capacity() * sizeof(JunctionRun) +
         (junctions_.capacity() + offsets_.capacity()) * sizeof(int) +
         (values_.capacity() + work_.capacity()) * sizeof(double);
}

void CompiledJunctions::magnitudes(const double* b, double* m) const {
  for (const JunctionRun& run : runs_) {
    const bool is_dense = run.form == JunctionForm::dense;
    const auto arity = static_cast<std::size_t>(run.arity);
    const auto count = static_cast<std::size_t>(run.count);
    const int* const offsets = offsets_.data() + run.offsets;
    const double* const values = values_.data() + run.values;
    for (std::size_t i = 0; i < count; ++i) {
      const auto offset = [&](std::size_t k) {
        return is_dense         ? offsets[i * arity + k]
               : run.contiguous ? offsets[k] + static_cast<int>(i)
                                : offsets[k * count + i];
      };
      const auto size = [&](std::size_t k) { return std::abs(b[offset(k)]); };
      const auto value = [&](std::size_t k) {
        return std::abs(values[run.shared ? k : k * count + i]);
      };
      if (run.form == JunctionForm::swap) {
        m[offset(0)] = size(1);
        m[offset(1)] = size(0);
      } else if (is_dense) {
        const double* row = values + 2 * i * arity * arity;
        for (std::size_t k = 0; k < arity; ++k, row += arity) {
          double sum = 0.0;
          for (std::size_t j = 0; j < arity; ++j) sum += std::abs(row[j]) * size(j);
          m[offset(k)] = sum;
        }
      } else if (arity == 2) {
        m[offset(0)] = value(0) * size(0) + value(1) * size(1);
        m[offset(1)] = value(1) * size(0) + value(0) * size(1);
      } else {
        double along = 0.0;
        for (std::size_t k = 0; k < arity; ++k) along += value(k) * size(k);
        for (std::size_t k = 0; k < arity; ++k) {
          m[offset(k)] = 2.0 * value(k) * along + size(k);
        }
      }
    }
  }
}

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kRoundOff = 1e-14;

/// P = sign (2nnᵀ − I), |n| = 1.
struct ReflectionForm {
  Vector n;
  double sign;
};

/// n/|n| in place, as Eigen's stableNormalize has it.
void normalise(double* n, int count) {
  if (count != 2) return Eigen::Map<Vector>(n, count).stableNormalize();
  const double largest = std::max(std::abs(n[0]), std::abs(n[1]));
  const double first = n[0] / largest, second = n[1] / largest;
  const double square = first * first + second * second;
  if (!(square > 0.0)) return;
  const double norm = std::sqrt(square) * largest;
  n[0] /= norm;
  n[1] /= norm;
}

/// n and sign with P = sign (2nnᵀ − I) up to round-off, or nothing.
std::optional<ReflectionForm> as_reflection(const Matrix& P) {
  const Eigen::Index k = P.rows();
  for (const double sign : {1.0, -1.0}) {
    const Matrix nn = 0.5 * (sign * P + Matrix::Identity(k, k));  // nnᵀ if it is one
    if (std::abs(nn.trace() - 1.0) > kRoundOff * static_cast<double>(k)) continue;
    Eigen::Index pivot = 0;
    nn.diagonal().maxCoeff(&pivot);
    Vector n = nn.col(pivot) / std::sqrt(nn(pivot, pivot));
    if ((n * n.transpose() - nn).cwiseAbs().maxCoeff() > kRoundOff) continue;
    n.normalize();
    return ReflectionForm{n, sign};
  }
  return std::nullopt;
}

/// (2I − P)⁻¹, by its closed form where P² = ±I.
Matrix resolvent(const Matrix& P) {
  const Matrix I = Matrix::Identity(P.rows(), P.cols());
  const Matrix square = P * P;
  if ((square - I).cwiseAbs().maxCoeff() <= kRoundOff) return (2.0 * I + P) / 3.0;
  if ((square + I).cwiseAbs().maxCoeff() <= kRoundOff) return (2.0 * I + P) / 5.0;
  return lu_inverse(2.0 * I - P);
}

std::vector<int> identity(std::size_t size) {
  std::vector<int> out(size);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

Interconnection::Interconnection(std::span<const Junction> junctions,
                                 std::span<const double> impedance)
    : Interconnection(junctions, identity(impedance.size()), impedance) {}

Interconnection::Interconnection(std::span<const Junction> junctions,
                                 std::span<const int> offset_of, std::span<const double> impedance)
    : wave_size_(static_cast<int>(impedance.size())),
      impedance_(impedance.begin(), impedance.end()) {
  std::vector<bool> used(impedance.size());
  std::unordered_map<const DiracStructure*, int> known;
  blocks_.reserve(junctions.size());
  for (const Junction& junction : junctions) {
    const auto [structure, is_new] =
        known.try_emplace(junction.shared.get(), static_cast<int>(structures_.size()));
    if (is_new) structures_.push_back(structure_of(junction));
    const int arity = junction.dirac.size();
    blocks_.push_back({JunctionForm::dense, arity, structure->second,
                       static_cast<int>(waves_.size()), static_cast<int>(values_.size()), 1.0});
    const bool is_reflection = structures_[static_cast<std::size_t>(structure->second)].balance !=
                               Structure::Balance::none;
    values_.resize(values_.size() +
                   static_cast<std::size_t>(is_reflection ? arity : 2 * arity * arity));
    for (const int wave : junction.waves) {
      if (wave < 0 || static_cast<std::size_t>(wave) >= offset_of.size()) {
        throw ConfigError("", "a junction names no wave");
      }
      waves_.push_back(offset_of[static_cast<std::size_t>(wave)]);
      const auto offset = static_cast<std::size_t>(waves_.back());
      if (used[offset]) throw ConfigError("", "every wave must be in exactly one junction");
      used[offset] = true;
    }
    weigh(blocks_.back());
  }
  for (const int offset : offset_of) {
    if (!used[static_cast<std::size_t>(offset)]) {
      throw ConfigError("", "every wave must be in exactly one junction");
    }
  }
  every_ = identity(blocks_.size());
  all_ = compile(every_);
}

/// Where one row says Σ wⱼfⱼ = 0 and the others bind efforts only, isotropy leaves e = w·(a
/// number), so that P = 2nnᵀ − I, n ∝ Γ^−½w; with e and f exchanged, P = I − 2nnᵀ, n ∝ Γ^½w.
/// Common-effort and common-flow junctions, connections, transformers, free and fixed ends are of
/// this kind. No factorisation, and exact however far the impedances are apart.
Interconnection::Structure Interconnection::structure_of(const Junction& junction) {
  constexpr double kUsual = 1e100;  // no square of such a weight, or of its inverse, overflows
  Structure out{junction.shared, Structure::Balance::none, {}, false};
  const auto take = [&](Structure::Balance balance, const Vector& weights) {
    out.balance = balance;
    out.weights.assign(weights.begin(), weights.end());
  };
  if (const auto w = balance_row(junction.dirac.F, junction.dirac.E)) {
    take(Structure::Balance::of_flows, *w);
    const double size = std::abs((*w)[0]);
    out.is_swap_between_equals =
        w->size() == 2 && (*w)[0] == (*w)[1] && size < kUsual && size > 1.0 / kUsual;
  } else if (const auto v = balance_row(junction.dirac.E, junction.dirac.F)) {
    take(Structure::Balance::of_efforts, *v);
  }
  return out;
}

void Interconnection::weigh(Block& block) {
  const Structure& structure = structures_[static_cast<std::size_t>(block.structure)];
  if (structure.balance == Structure::Balance::none) return weigh_dense(block);
  const int* const offsets = waves_.data() + block.waves;
  const auto impedance = [&](int k) { return impedance_[static_cast<std::size_t>(offsets[k])]; };
  if (structure.is_swap_between_equals && impedance(0) == impedance(1)) {
    block.form = JunctionForm::swap;
    return;
  }
  const bool of_flows = structure.balance == Structure::Balance::of_flows;
  const double* const weights = structure.weights.data();
  double* const n = values_.data() + block.values;
  for (int k = 0; k < block.arity; ++k) {
    const double root = std::sqrt(impedance(k));
    n[k] = of_flows ? weights[k] / root : weights[k] * root;
  }
  normalise(n, block.arity);
  const bool is_swap = of_flows && block.arity == 2 && n[0] == n[1];
  block.form = is_swap ? JunctionForm::swap : JunctionForm::reflection;
  block.sign = of_flows ? 1.0 : -1.0;
}

void Interconnection::weigh_dense(Block& block) {
  const Structure& structure = structures_[static_cast<std::size_t>(block.structure)];
  Vector gamma(block.arity);
  const std::span<const int> offsets(waves_.data() + block.waves,
                                     static_cast<std::size_t>(block.arity));
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    gamma[static_cast<Eigen::Index>(k)] = impedance_[static_cast<std::size_t>(offsets[k])];
  }
  const Matrix P = wave_map(*structure.dirac, gamma);
  double* const values = values_.data() + block.values;
  block.sign = 1.0;
  if (const std::optional<ReflectionForm> reflection = as_reflection(P)) {
    const Vector& n = reflection->n;
    const bool is_swap = reflection->sign > 0.0 && n.size() == 2 && n[0] == n[1];
    block.form = is_swap ? JunctionForm::swap : JunctionForm::reflection;
    if (is_swap) return;
    block.sign = reflection->sign;
    std::copy(n.begin(), n.end(), values);
    return;
  }
  block.form = JunctionForm::dense;
  const RowMatrix rows = P, inverse = resolvent(P);
  std::copy_n(rows.data(), rows.size(), values);
  std::copy_n(inverse.data(), inverse.size(), values + rows.size());
}

void Interconnection::set_impedance(std::span<const double> impedance) {
  for (Block& block : blocks_) {
    bool differs = false;
    const std::span<const int> offsets(waves_.data() + block.waves,
                                       static_cast<std::size_t>(block.arity));
    for (const int offset : offsets) {
      const auto at = static_cast<std::size_t>(offset);
      differs = differs || impedance[at] != impedance_[at];
      impedance_[at] = impedance[at];
    }
    if (!differs) continue;
    try {
      weigh(block);
    } catch (...) {  // it is made again the next time
      impedance_[static_cast<std::size_t>(offsets.front())] =
          std::numeric_limits<double>::quiet_NaN();
      throw;
    }
  }
  recompile(all_, every_);
}

std::span<const int> Interconnection::waves(int index) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  return {waves_.data() + block.waves, static_cast<std::size_t>(block.arity)};
}

Interconnection::Coefficients Interconnection::coefficients(int index) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  const int count = block.form == JunctionForm::swap         ? 0
                    : block.form == JunctionForm::reflection ? block.arity
                                                             : 2 * block.arity * block.arity;
  return {block.sign, {values_.data() + block.values, static_cast<std::size_t>(count)}};
}

std::size_t Interconnection::bytes() const {
  return blocks_.capacity() * sizeof(Block) + structures_.capacity() * sizeof(Structure) +
         (waves_.capacity() + every_.capacity()) * sizeof(int) +
         (values_.capacity() + impedance_.capacity()) * sizeof(double) + all_.bytes();
}

CompiledJunctions Interconnection::compile(std::span<const int> junctions,
                                           std::span<const int> renumbering) const {
  return JunctionCompiler(*this, renumbering).compile(junctions);
}

void Interconnection::recompile(CompiledJunctions& compiled, std::span<const int> junctions,
                                std::span<const int> renumbering) const {
  const JunctionCompiler compiler(*this, renumbering);
  if (!compiler.refresh(compiled, junctions)) compiled = compiler.compile(junctions);
}

Eigen::MatrixXd Interconnection::apply_to_basis(int index, bool resolvent) const {
  const std::span<const int> offsets = waves(index);
  const auto k = static_cast<Eigen::Index>(offsets.size());
  const int own[] = {index};
  const CompiledJunctions one = compile(own);
  Matrix out(k, k);
  std::vector<double> b(static_cast<std::size_t>(wave_size_)), a(b.size());
  for (Eigen::Index j = 0; j < k; ++j) {
    const auto offset = static_cast<std::size_t>(offsets[static_cast<std::size_t>(j)]);
    std::fill(b.begin(), b.end(), 0.0);
    std::fill(a.begin(), a.end(), 0.0);
    if (resolvent) {
      a[offset] = -1.0;  // u = −eⱼ, b = 0: the update adds (2I − P)⁻¹ eⱼ
      one.resolve(1.0, b.data(), a.data());
      a[offset] += 1.0;
    } else {
      b[offset] = 1.0;
      one.exchange(b.data(), a.data());
    }
    for (Eigen::Index i = 0; i < k; ++i) {
      out(i, j) = a[static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)])];
    }
  }
  return out;
}

}  // namespace portwave
