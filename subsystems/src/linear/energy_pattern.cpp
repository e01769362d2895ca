#include "linear/energy_pattern.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace portwave {
namespace {

using Places = std::set<std::pair<int, int>>;

std::vector<LinearEntry> list_of(const Places& places) {
  std::vector<LinearEntry> out;
  for (const auto& [row, column] : places) out.push_back({row, column});
  return out;
}

bool is_before(const LinearEntry& a, const LinearEntry& b) {
  return std::pair(a.row, a.column) < std::pair(b.row, b.column);
}

}  // namespace

void EnergyPattern::arrange(std::span<const LinearSparsity> sparsities, bool staged, int width,
                            LinearShape& shape) {
  Places storage, gradient, dissipation, output;
  std::set<int> needed;
  for (const LinearSparsity& own : sparsities) {
    for (const LinearEntry& e : own.storage.at()) {
      if (e.row != e.column) storage.insert({e.row, e.column});
    }
    for (const LinearEntry& e : own.dissipation.at()) {
      dissipation.insert({e.row, e.column});
      needed.insert({e.row, e.column});
    }
    for (const LinearEntry& e : own.output.at()) {
      output.insert({e.row, e.column});
      needed.insert(e.column);
    }
  }
  mapped_.clear();
  if (staged) {
    std::ranges::copy_if(needed, std::back_inserter(mapped_),
                         [&](int row) { return row < shape.z; });
  } else {
    for (const LinearSparsity& own : sparsities) {
      for (const LinearEntry& e : own.Q.at()) {
        if (needed.count(e.row) > 0) gradient.insert({e.row, e.column});
      }
    }
    for (const int row : needed) {  // rows without an entry are written too, as zeros
      if (row < shape.n) gradient.insert({row, row});
    }
  }
  shape.mapped = mapped_.data();
  shape.mapped_count = static_cast<int>(mapped_.size());
  shape.ports_dissipate = !needed.empty() && *needed.rbegin() >= shape.z;
  storage_.at = list_of(storage);
  gradient_.at = list_of(gradient);
  dissipation_.at = list_of(dissipation);
  output_.at = list_of(output);
  diagonal_gradient_.assign(static_cast<std::size_t>(shape.n), 0);
  for (const int row : needed) {
    const auto is_beside = [row](const LinearEntry& e) { return e.row == row && e.column != row; };
    if (staged || row >= shape.n || std::ranges::any_of(gradient_.at, is_beside)) continue;
    diagonal_gradient_[static_cast<std::size_t>(row)] = 1;
    std::erase_if(gradient_.at, [row](const LinearEntry& e) { return e.row == row; });
  }
  shape.diagonal_gradient = diagonal_gradient_.data();
  const auto set = [width](Pattern& pattern, const LinearOffsets*& at, int& count) {
    at = pattern.offsets.of(pattern.at, width);
    count = static_cast<int>(pattern.at.size());
  };
  set(storage_, shape.storage, shape.storage_count);
  set(gradient_, shape.gradient, shape.gradient_count);
  set(dissipation_, shape.dissipation, shape.dissipation_count);
  set(output_, shape.output, shape.output_count);

  targets_.clear();
  for (const LinearSparsity& own : sparsities) {
    std::size_t begin = static_cast<std::size_t>(shape.n);
    std::vector<Target>& targets = targets_.emplace_back();
    const auto place_in = [](const Pattern& pattern, std::size_t first, const LinearEntry& e) {
      const auto found = std::lower_bound(pattern.at.begin(), pattern.at.end(), e, is_before);
      if (found == pattern.at.end() || is_before(e, *found)) return -1;
      return static_cast<int>(first) + static_cast<int>(found - pattern.at.begin());
    };
    const auto add = [&](const Pattern& pattern, const EntryList& list, double factor,
                         bool per_step) {
      Target& target = targets.emplace_back(&list, factor, per_step);
      for (const LinearEntry& e : list.at()) target.places.push_back(place_in(pattern, begin, e));
      begin += pattern.at.size();
    };
    add(storage_, own.storage, 1.0, false);
    for (std::size_t k = 0; k < own.storage.size(); ++k) {
      const LinearEntry& e = own.storage.at()[k];
      if (e.row == e.column) targets.back().places[k] = e.row;
    }
    add(gradient_, own.Q, 0.5, false);
    add(dissipation_, own.dissipation, 1.0, true);
    add(output_, own.output, 1.0, true);
    size_ = begin;
  }
}

void EnergyPattern::append(std::size_t sparsity, const SparseMatrix& Q, const Structure& structure,
                           double step_s, std::vector<double>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + size_, 0.0);
  for (const Target& target : targets_[sparsity]) {
    values_.resize(target.list->size());
    LinearSparsity::read(*target.list, Q, structure,
                         target.factor * (target.per_step ? step_s : 1.0), values_.data(), 1);
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (target.places[k] >= 0)
        out[begin + static_cast<std::size_t>(target.places[k])] = values_[k];
    }
  }
}

}  // namespace portwave
