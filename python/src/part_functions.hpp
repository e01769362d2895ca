#pragma once

#include <cstddef>
#include <functional>
#include <nanobind/nanobind.h>
#include <string>

namespace nb = nanobind;

/// Functions of parts as the package hands them over: a Python function, which is called under the
/// interpreter's lock, or a compiled one, which is not: a tuple of its address, whether it takes user
/// data last, these data, and what keeps it alive.
using GivenFunction = nb::object;

/// double f(x), x being n numbers.
std::function<double(const double*)> number_function(const GivenFunction& given, std::size_t n);

/// f(x) writes `size` numbers. `what` names them where the function gives another number of them.
std::function<void(const double*, double*)> array_function(const GivenFunction& given,
                                                           std::size_t n, std::size_t size,
                                                           const std::string& what);

/// f(x) writes a matrix row by row. A Python function must return it with this shape.
std::function<void(const double*, double*)> matrix_function(const GivenFunction& given,
                                                            std::size_t n, std::size_t rows,
                                                            std::size_t columns,
                                                            const std::string& what);

/// f(x, x_next) writes n numbers.
std::function<void(const double*, const double*, double*)> step_function(const GivenFunction& given,
                                                                         std::size_t n,
                                                                         const std::string& what);
