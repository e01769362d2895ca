#pragma once

// How an instance of FMI 3 gets and sets numbers and arrays.

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/instance/fmu_loaded.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {

/// Memory that an FMU writes an array to: what it left as it was, and what it wrote behind the end, can be seen.
class ArrayMemory {
 public:
  template <class Number>
  Number* prepare(std::size_t count) {
    bytes_ = count * sizeof(Number);
    memory_.resize(std::max(memory_.size(), bytes_ + kGuard));
    Number* const begin = reinterpret_cast<Number*>(memory_.data());
    std::fill_n(begin, count, untouched<Number>());
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_), kGuard, kMark);
    return begin;
  }
  bool was_overrun() const {
    return !std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_),
                        memory_.begin() + static_cast<std::ptrdiff_t>(bytes_ + kGuard),
                        [](std::byte own) { return own == kMark; });
  }

 private:
  static constexpr std::size_t kGuard = 1024;
  static constexpr std::byte kMark{0xa5};

  std::vector<std::byte> memory_;
  std::size_t bytes_ = 0;
};

/// Gets and sets numbers of an instance, whatever mode it is in.
class Access3 : public LoadedInstance {
 protected:
  Access3(const v3::Functions& functions, InstanceOrigin from, FmuLog* log)
      : LoadedInstance(std::move(from), log), f_(functions) {}

  void read(const VariableList::Run& run, double* values) {
    if (run.is_array()) return read_array(run, values);
    if (run.type == VariableType::float64) {
      return get_reals(run, values, [this](const Reference* which, std::size_t count, double* to) {
        expect_ok(f_.GetFloat64(instance_, which, count, to, count), "fmi3GetFloat64");
      });
    }
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number>) {
      get_converted<Number>(run, values,
                            [&](const Reference* which, std::size_t count, Number* to) {
                              expect_ok(getter(instance_, which, count, to, count), "fmi3Get");
                            });
    });
  }
  void write(const VariableList::Run& run, const double* values) {
    if (run.is_array()) return write_array(run, values);
    if (run.type == VariableType::float64) {
      return expect_ok(f_.SetFloat64(instance_, run.references.data(), run.references.size(),
                                     values + run.first, run.references.size()),
                       "fmi3SetFloat64");
    }
    with_type(run.type, [&]<class Number>(v3::Get<Number>, v3::Set<Number> setter) {
      set_converted<Number>(run, values,
                            [&](const Reference* which, std::size_t count, const Number* from) {
                              expect_ok(setter(instance_, which, count, from, count), "fmi3Set");
                            });
    });
  }
  const v3::Functions f_;
  void* instance_ = nullptr;

 private:
  template <class Number>
  const Number* all_of(const VariableList::Run& run, v3::Get<Number> getter) {
    Number* const all = array_.prepare<Number>(run.elements);
    const int status = getter(instance_, run.references.data(), 1, all, run.elements);
    if (array_.was_overrun()) {
      fail(fmt::format("wrote more than the {} elements of its array {}: the defect is in the FMU",
                       run.elements, in_quotes(run.array)));
    }
    if (status != kOk) expect_ok(status, "fmi3Get", of_array(run));
    return all;
  }
  void read_array(const VariableList::Run& run, double* values) {
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number>) {
      const Number* const all = all_of<Number>(run, getter);
      for (std::size_t k = 0; k < run.places.size(); ++k) {
        const Number own = all[run.places[k]];
        if (is_untouched(own)) {
          fail(
              fmt::format("gave no value for element {} of the {} of its array {}: it is smaller "
                          "than its modelDescription.xml says",
                          run.places[k] + 1, run.elements, in_quotes(run.array)));
        }
        values[run.first + k] = static_cast<double>(own);
      }
    });
  }
  /// Arrays are set as a whole: elements that are not in the run stay as they are.
  void write_array(const VariableList::Run& run, const double* values) {
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number> setter) {
      Number* const all = run.places.size() == run.elements
                              ? array_.prepare<Number>(run.elements)
                              : const_cast<Number*>(all_of<Number>(run, getter));
      for (std::size_t k = 0; k < run.places.size(); ++k)
        all[run.places[k]] = number_of<Number>(values[run.first + k]);
      const int status = setter(instance_, run.references.data(), 1, all, run.elements);
      if (status != kOk) expect_ok(status, "fmi3Set", of_array(run));
    });
  }
  static std::string of_array(const VariableList::Run& run) {
    return fmt::format(" of the {} elements of the array {}", run.elements, in_quotes(run.array));
  }

  template <class Act>
  void with_type(VariableType type, const Act& act) {
    switch (type) {
      case VariableType::float64:
        return act(f_.GetFloat64, f_.SetFloat64);
      case VariableType::float32:
        return act(f_.GetFloat32, f_.SetFloat32);
      case VariableType::int8:
        return act(f_.GetInt8, f_.SetInt8);
      case VariableType::uint8:
        return act(f_.GetUInt8, f_.SetUInt8);
      case VariableType::int16:
        return act(f_.GetInt16, f_.SetInt16);
      case VariableType::uint16:
        return act(f_.GetUInt16, f_.SetUInt16);
      case VariableType::int32:
        return act(f_.GetInt32, f_.SetInt32);
      case VariableType::uint32:
        return act(f_.GetUInt32, f_.SetUInt32);
      case VariableType::int64:
        return act(f_.GetInt64, f_.SetInt64);
      case VariableType::uint64:
        return act(f_.GetUInt64, f_.SetUInt64);
      case VariableType::boolean:
        return act(f_.GetBoolean, f_.SetBoolean);
      case VariableType::text:
      case VariableType::clock:
      case VariableType::other:
        break;
    }
    throw std::logic_error("a variable that is no number");
  }

  ArrayMemory array_;
};

}  // namespace portwave::fmi
