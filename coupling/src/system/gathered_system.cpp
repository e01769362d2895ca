#include "portwave/coupling/system/gathered_system.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace portwave {

System gathered_system(std::span<const System* const> systems, const double* states) {
  System out;
  for (const System* const own : systems) {
    const int first_part = static_cast<int>(out.parts_.size());
    const int first_port = static_cast<int>(out.scalar_ports_.size());
    const int first_slot = static_cast<int>(out.settable_inputs_.size());
    for (const Part& part : own->parts_) {
      out.parts_.push_back(part);
      if (states != nullptr) {
        std::vector<double>& own_state = out.parts_.back().initial_state;
        std::copy_n(states, own_state.size(), own_state.begin());
        states += own_state.size();
      }
      for (Signal& input : out.parts_.back().inputs) {
        if (input.slot() >= 0) input.set_slot(first_slot + input.slot());
      }
    }
    for (const ScalarPort& port : own->scalar_ports_) {
      out.scalar_ports_.push_back({first_part + port.part, port.port, port.entry});
    }
    for (const int port : own->first_scalar_port_) {
      out.first_scalar_port_.push_back(first_port + port);
    }
    for (const Junction& junction : own->junctions_) {
      std::vector<int> ports = junction.waves;
      for (int& port : ports) port += first_port;
      out.junctions_.emplace_back(junction.shared, std::move(ports));
    }
    for (const int island : own->island_of_part_) {
      out.island_of_part_.push_back(out.island_count_ + island);
    }
    out.island_count_ += own->island_count_;
    for (CutName cut : own->cuts_) {
      cut.first_part += first_part;
      out.cuts_.push_back(std::move(cut));
    }
    for (const System::SettableInput& input : own->settable_inputs_) {
      out.settable_inputs_.push_back({first_part + input.part, input.input, input.initial});
    }
  }
  out.parts_by_name_.resize(out.parts_.size());
  std::iota(out.parts_by_name_.begin(), out.parts_by_name_.end(), 0);
  std::ranges::stable_sort(out.parts_by_name_, {}, [&out](int part) -> const std::string& {
    return out.parts_[static_cast<std::size_t>(part)].name;
  });
  return out;
}

}  // namespace portwave
