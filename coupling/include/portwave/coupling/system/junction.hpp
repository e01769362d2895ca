#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "portwave/coupling/system/dirac.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A Dirac structure over offsets of the wave vector. Copies share the structure, and so may all
/// junctions of one kind.
struct Junction {
  Junction(DiracStructure structure, std::vector<int> offsets)
      : Junction(std::make_shared<const DiracStructure>(std::move(structure)), std::move(offsets)) {
  }
  Junction(std::shared_ptr<const DiracStructure> structure, std::vector<int> offsets)
      : shared(std::move(structure)), dirac(*shared), waves(std::move(offsets)) {}

  std::shared_ptr<const DiracStructure> shared;  ///< not null
  const DiracStructure& dirac;                   ///< *shared
  std::vector<int> waves;  ///< dirac.size() distinct offsets in the wave vector
};

}  // namespace portwave
