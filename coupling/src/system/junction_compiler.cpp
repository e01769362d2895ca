#include "system/junction_compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>

#include "kernels/junction_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {
namespace {

/// Shorter stretches cost more as loops of their own than indexed.
constexpr std::size_t kShortestRun = 8;

}  // namespace

int JunctionCompiler::offset(int junction, int position) const {
  const int offset = coupling_.waves(junction)[static_cast<std::size_t>(position)];
  return renumbering_.empty() ? offset : renumbering_[static_cast<std::size_t>(offset)];
}

bool JunctionCompiler::follows(int previous, int next) const {
  for (int k = 0; k < static_cast<int>(coupling_.waves(previous).size()); ++k) {
    if (offset(next, k) != offset(previous, k) + 1) return false;
  }
  return true;
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
  for (const int j : junctions) {
    kinds[{coupling_.form(j), coupling_.waves(j).size(), coupling_.coefficients(j).sign}].push_back(
        j);
  }
  CompiledJunctions out;
  for (auto& [kind, list] : kinds) {
    std::sort(list.begin(), list.end(), [&](int i, int j) { return offset(i, 0) < offset(j, 0); });
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
    junction_kernels().choose(run);
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
  const auto values_of = [&](int j) { return coupling_.coefficients(j).values; };
  if (run.form == JunctionForm::dense) {
    for (const int j : junctions) {
      for (int k = 0; k < run.arity; ++k) out.offsets_.push_back(offset(j, k));
      const auto values = values_of(j);
      out.values_.insert(out.values_.end(), values.begin(), values.end());
    }
    out.runs_.push_back(run);
    return;
  }
  for (int k = 0; k < run.arity; ++k) {
    if (contiguous) {
      out.offsets_.push_back(offset(first, k));
      continue;
    }
    for (const int j : junctions) out.offsets_.push_back(offset(j, k));
  }
  if (run.form == JunctionForm::reflection) {
    const auto normal = values_of(first);
    run.shared = std::all_of(junctions.begin(), junctions.end(), [&](int j) {
      return std::equal(normal.begin(), normal.end(), values_of(j).begin());
    });
    const std::span<const int> distinct = run.shared ? junctions.first(1) : junctions;
    for (int k = 0; k < run.arity; ++k) {
      for (const int j : distinct) out.values_.push_back(reflection_value(j, k));
    }
  }
  out.runs_.push_back(run);
}

const JunctionKernels& junction_kernels() { return PORTWAVE_KERNELS(kJunctionKernels); }

std::size_t CompiledJunctions::bytes() const {
  return runs_.capacity() * sizeof(JunctionRun) + offsets_.capacity() * sizeof(int) +
         (values_.capacity() + work_.capacity()) * sizeof(double);
}

}  // namespace portwave
