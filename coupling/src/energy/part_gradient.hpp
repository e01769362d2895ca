#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace portwave {

/// Memory for the port maps of parts, one after another: in the object itself if a part has few ports.
class GuardPortMap {
 public:
  void fit(int ports) {
    ports_ = static_cast<std::size_t>(ports);
    if (ports_ > kFew) many_.resize(std::max(many_.size(), ports_ * ports_ + ports_));
  }
  double* matrix() { return ports_ > kFew ? many_.data() : few_.data(); }
  double* offset() { return matrix() + ports_ * ports_; }

 private:
  static constexpr std::size_t kFew = 8;
  std::size_t ports_ = 0;
  std::array<double, kFew * kFew + kFew> few_;
  std::vector<double> many_;
};

/// The data of a part for ∇m; waves are `stride` apart.
struct PortsOfPart {
  int count;
  long stride;
  const double* D;
  const double* outgoing;
  const double* incident;
  double* direction;
};

/// |∇m|² and |D∇m|².
struct Gradient {
  long double square = 0.0L, image = 0.0L;
};

/// Adds the gradient of a part with P ports; P = 0: with any number of ports.
template <int P>
void add_gradient(const PortsOfPart& part, Gradient& sum) {
  const int p = P > 0 ? P : part.count;
  for (int j = 0; j < p; ++j) {
    double slope = 0.0;
    for (int i = 0; i < p; ++i) slope += part.D[i * p + j] * part.outgoing[i * part.stride];
    slope -= part.incident[j * part.stride];
    part.direction[j * part.stride] = slope;
    sum.square += static_cast<long double>(slope) * slope;
  }
  for (int i = 0; i < p; ++i) {
    long double image = 0.0L;
    for (int j = 0; j < p; ++j) {
      image += static_cast<long double>(part.D[i * p + j]) * part.direction[j * part.stride];
    }
    sum.image += image * image;
  }
}

}  // namespace portwave
