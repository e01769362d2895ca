#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <stdexcept>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "callbacks.hpp"

namespace nb = nanobind;

/// An object of Python that threads may hold and release without the interpreter's lock.
class SharedObject {
 public:
  explicit SharedObject(nb::object own)
      : own_(new nb::object(std::move(own)), [](nb::object* object) {
          // The catalogue outlives the interpreter; by then the memory is gone.
          if (Py_IsInitialized() == 0) return;
          const nb::gil_scoped_acquire lock;
          delete object;
        }) {}

  /// Read with the interpreter's lock.
  const nb::object& get() const { return *own_; }

 private:
  std::shared_ptr<nb::object> own_;
};

/// A new array, which the called function may keep.
inline nb::object copied(const double* x, std::size_t n) {
  double* data = nullptr;
  auto out = new_array({n}, &data);
  std::copy_n(x, n, data);
  return nb::cast(std::move(out));
}

/// A Python function that threads may call and release without the interpreter's lock.
class SharedCallable {
 public:
  explicit SharedCallable(nb::callable function) : function_(std::move(function)) {}

  /// Returns use(function), with the interpreter's lock. An exception of Python is kept for this
  /// thread, and its text is thrown.
  template <class Use>
  auto operator()(const Use& use) const {
    const bool is_worker = PyGILState_GetThisThreadState() == nullptr;
    const nb::gil_scoped_acquire lock;
    try {
      return use(function_.get());
    } catch (const nb::python_error& error) {
      keep_raised(error, is_worker);
      throw std::runtime_error(error.what());  // copies the text while the lock is held
    }
  }

 private:
  SharedObject function_;
};

/// What a function returned as numbers. Called with the interpreter's lock.
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
inline Numbers as_numbers(const nb::object& from) {
  using namespace nb::literals;
  // NumPy reads None as NaN: a forgotten `return` would look like a number that overflowed.
  if (from.is_none()) throw std::runtime_error("it returned None, where numbers are needed");
  if (Numbers own; nb::try_cast(from, own, false)) return own;
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(from);
  if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "c") {
    throw std::runtime_error("real numbers are needed, got complex ones");
  }
  return nb::cast<Numbers>(numpy.attr("ascontiguousarray")(array, "dtype"_a = "float64"));
}

inline void copy_result(const nb::object& from, std::size_t size, double* to, const char* what) {
  const Numbers values = as_numbers(from);
  if (values.size() != size) {
    throw std::runtime_error(std::string(what) + " must have " + std::to_string(size) +
                             " entries, got " + std::to_string(values.size()));
  }
  std::copy_n(values.data(), size, to);
}
