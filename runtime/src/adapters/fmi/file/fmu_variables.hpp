#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/fmi/file/fmu.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::fmi {

/// The variables of an FMU as single numbers: scalars as they are, and elements of arrays by names such as "A[1,2]".
/// Indices count from 1, and the last one runs fastest. One thread at a time.
class FmuVariables {
 public:
  /// Structural parameters have the values given, else those of the description. Notes those that are none.
  FmuVariables(std::shared_ptr<const Fmu> fmu, const std::map<std::string, FmuValue>& start,
               Issues& issues);

  const Fmu& fmu() const { return *fmu_; }
  /// A scalar, a whole array, or an element of one, called as here also where that is an alias; null: there is none
  /// of that name. Lives as long as this.
  const Variable* find(std::string_view name);
  /// Sizes of an array; nothing, and a reason: they are not fixed.
  std::optional<std::vector<std::size_t>> shape_of(const Variable& array, std::string& why) const;
  /// All elements, or so many first ones; none if the sizes are not fixed.
  std::vector<const Variable*> elements_of(const Variable& array,
                                           std::size_t most = static_cast<std::size_t>(-1));
  /// Why there is no element of this name where there is an array of it, such as "has 2 x 3 elements"; empty: there
  /// is no such array.
  std::string element_defect(std::string_view name) const;

 private:
  /// A name in the form "array[1,2]".
  struct Place {
    const Variable* array = nullptr;
    std::vector<std::uint64_t> indices;
  };
  Place place_of(std::string_view name) const;
  const Variable* element(const Variable& array, const std::vector<std::size_t>& shape,
                          std::size_t place);

  std::shared_ptr<const Fmu> fmu_;
  std::map<Reference, std::uint64_t> sizes_;  ///< values of structural parameters
  std::deque<Variable> elements_;             ///< and aliases
  std::map<std::pair<const Variable*, std::size_t>, const Variable*> known_;
};

/// Such as "2 x 3".
std::string shown_shape(const std::vector<std::size_t>& shape);

}  // namespace portwave::fmi
