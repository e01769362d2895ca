#pragma once

#include <cstdint>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"

/// A sparse matrix as Python hands it over: its name, its shape, then row, column and value of each entry. Equal
/// places add up.
using HandedMatrix = std::tuple<
    std::string, int, int,
    nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig,
                      nanobind::device::cpu>,
    nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig,
                      nanobind::device::cpu>,
    nanobind::ndarray<const double, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>>;

inline portwave::Plugins plugins_of(bool allowed) {
  return allowed ? portwave::Plugins::allowed : portwave::Plugins::refused;
}

/// Errors: std::invalid_argument for an entry outside the shape, or arrays of different lengths.
inline std::vector<portwave::NamedMatrix> matrices_of(const std::vector<HandedMatrix>& handed) {
  std::vector<portwave::NamedMatrix> out;
  out.reserve(handed.size());
  for (const auto& [name, rows, columns, row, column, value] : handed) {
    const std::size_t count = value.shape(0);
    portwave::ShapedMatrix matrix{rows, columns, {}, name};
    matrix.entries.reserve(count);
    bool is_inside = row.shape(0) == count && column.shape(0) == count;
    for (std::size_t k = 0; is_inside && k < count; ++k) {
      const int i = row.data()[k], j = column.data()[k];
      is_inside = i >= 0 && i < rows && j >= 0 && j < columns;
      matrix.entries.push_back({i, j, value.data()[k]});
    }
    if (!is_inside) throw std::invalid_argument("the matrix " + name + " has entries outside it");
    out.push_back({name, std::move(matrix)});
  }
  return out;
}
