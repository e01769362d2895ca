#pragma once

#include <algorithm>
#include <cstddef>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <vector>

namespace nb = nanobind;

/// A new NumPy array that owns its memory.
inline nb::ndarray<nb::numpy, double> new_array(std::vector<std::size_t> shape, double** data) {
  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  *data = new double[std::max<std::size_t>(size, 1)];
  const nb::capsule owner(*data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return nb::ndarray<nb::numpy, double>(*data, shape.size(), shape.data(), owner);
}

template <class Vector>
nb::ndarray<nb::numpy, double> array_of(const Vector& values) {
  double* data = nullptr;
  auto out = new_array({static_cast<std::size_t>(values.size())}, &data);
  std::copy_n(values.data(), values.size(), data);
  return out;
}
