#pragma once

#include <cstddef>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

/// Σ(a + b)² and Σ(a − b)² over the waves of a commit, four times the energies of its efforts and of its flows [J].
/// Whoever commits a lane group forms its sums, so that nobody passes over the waves of others; totals have the same
/// bits whoever that was.
class WaveSums {
 public:
  struct Sums {
    double efforts = 0.0, flows = 0.0;
    void add(double incident, double outgoing) {
      efforts += (incident + outgoing) * (incident + outgoing);
      flows += (incident - outgoing) * (incident - outgoing);
    }
  };

  /// `arrange` is to follow, and again where batches were exchanged for others.
  explicit WaveSums(const WaveDiscretisation& waves) : waves_(waves) {}
  void arrange() {
    std::size_t groups = 0;
    places_.clear();
    for (const BatchSlot& slot : waves_.batches()) {
      const int size = slot.batch->lane_group();
      places_.push_back(
          {slot.wave, slot.batch->wave_size(), slot.batch->stride(), size == 1, groups});
      groups += static_cast<std::size_t>((slot.batch->lanes() + size - 1) / size);
    }
    by_group_.assign(groups, {});
  }

  /// Lanes that committed incident waves `a` and outgoing waves `b`, of the whole system.
  void take(int batch, LaneRange lanes, const double* a, const double* b) {
    const Place& place = places_[static_cast<std::size_t>(batch)];
    Sums* out = by_group_.data() + place.first;
    a += place.wave;
    b += place.wave;
    if (place.is_single) {
      for (int lane = lanes.first; lane < lanes.last; ++lane) {
        Sums own;
        for (int port = 0, i = lane; port < place.ports; ++port, i += place.stride)
          own.add(a[i], b[i]);
        out[lane] = own;
      }
      return;
    }
    for (int first = lanes.first; first < lanes.last; first += kLaneGroup) {
      // Side by side, so that none waits for its last term.
      double effort[kLaneGroup] = {}, flow[kLaneGroup] = {};
      const auto add_ports = [&](int count) {
        for (int port = 0, i = first; port < place.ports; ++port, i += place.stride) {
          for (int l = 0; l < count; ++l) {
            const double sum = a[i + l] + b[i + l], difference = a[i + l] - b[i + l];
            effort[l] += sum * sum;
            flow[l] += difference * difference;
          }
        }
      };
      const bool is_full = lanes.last - first >= kLaneGroup;
      is_full ? add_ports(kLaneGroup) : add_ports(lanes.last - first);
      Sums own;
      for (const double each : effort) own.efforts += each;
      for (const double each : flow) own.flows += each;
      out[first / kLaneGroup] = own;
    }
  }
  Sums total() const {
    Sums out;
    for (const Sums& own : by_group_) {
      out.efforts += own.efforts;
      out.flows += own.flows;
    }
    return out;
  }
  std::size_t bytes() const { return by_group_.capacity() * sizeof(Sums); }

 private:
  /// Of a batch: its waves, and the first of its lane groups.
  struct Place {
    int wave, ports, stride;
    bool is_single;  ///< a lane group is a lane
    std::size_t first;
  };

  const WaveDiscretisation& waves_;
  std::vector<Place> places_;
  std::vector<Sums> by_group_;
};

}  // namespace portwave
