#include "system/junction_compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/junction_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {
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

}  // namespace portwave
