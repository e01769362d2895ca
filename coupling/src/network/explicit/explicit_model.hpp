#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/network/network_model.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// A network whose states are those of its parts, one behind the other.
class ExplicitModel : public NetworkModel {
 public:
  explicit ExplicitModel(const System& system) : system_(&system) {
    int first = 0;
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const auto size = static_cast<int>(system.parts()[at(i)].initial_state.size());
      block_of_part_.push_back(size > 0 ? static_cast<int>(blocks_.size()) : -1);
      if (size > 0) blocks_.push_back({i, first, size});
      first += size;
    }
  }

  const System& system() const override { return *system_; }
  std::span<const NetworkBlock> blocks() const override { return blocks_; }
  int block_of_part(int part) const override { return block_of_part_[at(part)]; }

 private:
  const System* system_;
  std::vector<NetworkBlock> blocks_;
  std::vector<int> block_of_part_;
};

}  // namespace portwave
