#include "part_functions.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "shared_callable.hpp"

namespace {

/// A function in C. A call of it holds no lock and touches nothing of Python.
class CompiledFunction {
 public:
  static std::optional<CompiledFunction> of(const GivenFunction& given) {
    if (!nb::isinstance<nb::tuple>(given)) return std::nullopt;
    return CompiledFunction(nb::borrow<nb::tuple>(given));
  }

  template <class Result, class... Arguments>
  std::function<Result(Arguments...)> as() const {
    // The data come last, behind what the callee reads if it takes none.
    if (takes_user_data_) {
      auto* const call = reinterpret_cast<Result (*)(Arguments..., void*)>(address_);
      return [call, own = *this](Arguments... arguments) {
        return call(arguments..., reinterpret_cast<void*>(own.user_data_));
      };
    }
    auto* const call = reinterpret_cast<Result (*)(Arguments...)>(address_);
    return [call, own = *this](Arguments... arguments) { return call(arguments...); };
  }

 private:
  explicit CompiledFunction(const nb::tuple& given)
      : address_(nb::cast<std::uintptr_t>(given[0])),
        takes_user_data_(nb::cast<bool>(given[1])),
        user_data_(nb::cast<std::uintptr_t>(given[2])),
        keeper_(nb::borrow(given[3])) {}

  std::uintptr_t address_;
  bool takes_user_data_;
  std::uintptr_t user_data_;
  SharedObject keeper_;
};

SharedCallable python_function(const GivenFunction& given) {
  return SharedCallable(nb::cast<nb::callable>(given));
}

void copy_matrix(const nb::object& from, std::size_t rows, std::size_t columns, double* to,
                 const std::string& what) {
  const Numbers values = as_numbers(from);
  if (values.ndim() == 2 && values.shape(0) == rows && values.shape(1) == columns) {
    std::copy_n(values.data(), rows * columns, to);
    return;
  }
  std::string shape;
  for (std::size_t i = 0; i < values.ndim(); ++i) {
    shape += (i == 0 ? "" : ", ") + std::to_string(values.shape(i));
  }
  throw std::runtime_error(what + " must have the shape (" + std::to_string(rows) + ", " +
                           std::to_string(columns) + "), got (" + shape + ")");
}

}  // namespace

std::function<double(const double*)> number_function(const GivenFunction& given, std::size_t n) {
  if (const auto compiled = CompiledFunction::of(given))
    return compiled->as<double, const double*>();
  return [n, call = python_function(given)](const double* x) {
    return call([&](const nb::object& function) {
      return nb::cast<double>(nb::float_(function(copied(x, n))));
    });
  };
}

std::function<void(const double*, double*)> array_function(const GivenFunction& given,
                                                           std::size_t n, std::size_t size,
                                                           const std::string& what) {
  if (const auto compiled = CompiledFunction::of(given)) {
    return compiled->as<void, const double*, double*>();
  }
  return [n, size, what, call = python_function(given)](const double* x, double* out) {
    call([&](const nb::object& function) {
      copy_result(function(copied(x, n)), size, out, what.c_str());
    });
  };
}

std::function<void(const double*, double*)> matrix_function(const GivenFunction& given,
                                                            std::size_t n, std::size_t rows,
                                                            std::size_t columns,
                                                            const std::string& what) {
  if (const auto compiled = CompiledFunction::of(given)) {
    return compiled->as<void, const double*, double*>();
  }
  return [=, call = python_function(given)](const double* x, double* out) {
    call([&](const nb::object& function) {
      copy_matrix(function(copied(x, n)), rows, columns, out, what);
    });
  };
}

std::function<void(const double*, const double*, double*)> step_function(const GivenFunction& given,
                                                                         std::size_t n,
                                                                         const std::string& what) {
  if (const auto compiled = CompiledFunction::of(given)) {
    return compiled->as<void, const double*, const double*, double*>();
  }
  return
      [n, what, call = python_function(given)](const double* x, const double* x_next, double* out) {
        call([&](const nb::object& function) {
          copy_result(function(copied(x, n), copied(x_next, n)), n, out, what.c_str());
        });
      };
}
