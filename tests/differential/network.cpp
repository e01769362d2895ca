#include "differential/network.hpp"

#include <algorithm>
#include <cstddef>

namespace portwave::differential {

std::vector<int> Network::islands() const {
  std::vector<int> root(parts.size());
  for (std::size_t i = 0; i < root.size(); ++i) root[i] = static_cast<int>(i);
  const auto find = [&root](int i) {
    while (root[static_cast<std::size_t>(i)] != i) i = root[static_cast<std::size_t>(i)];
    return i;
  };
  for (const JointData& joint : joints) {
    for (const PortRef& port : joint.ports) {
      const int a = find(joint.ports[0].part), b = find(port.part);
      root[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<int> number(parts.size(), -1);
  int count = 0;
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto r = static_cast<std::size_t>(find(static_cast<int>(i)));
    if (number[r] < 0) number[r] = count++;
    number[i] = number[r];
  }
  return number;
}

void kernel_of(const Network& network, const JointData& joint, Matrix& E, Matrix& F) {
  const auto k = static_cast<Eigen::Index>(joint.ports.size());
  E = F = Matrix::Zero(k, k);
  // Row 0: Σ balanced = 0; row j: the shared variable of port 0 is that of port j.
  const auto junction = [k](Matrix& shared, Matrix& balanced) {
    balanced.row(0).setOnes();
    for (Eigen::Index j = 1; j < k; ++j) {
      shared(j, 0) = 1.0;
      shared(j, j) = -1.0;
    }
  };
  switch (joint.kind) {
    case JointKind::connection:
    case JointKind::common_effort:
      junction(E, F);
      break;
    case JointKind::common_flow:
      junction(F, E);
      break;
    case JointKind::transformer:
      E(0, 0) = 1.0;
      E(0, 1) = -joint.value;
      F(1, 1) = 1.0;
      F(1, 0) = joint.value;
      break;
    case JointKind::gyrator:
      E(0, 0) = E(1, 1) = 1.0;
      F(0, 1) = -joint.value;
      F(1, 0) = joint.value;
      break;
    case JointKind::skew_gain:
      for (Eigen::Index j = 0; j < k; ++j) {
        const PortRef port = joint.ports[static_cast<std::size_t>(j)];
        const bool effort_in = network.parts[static_cast<std::size_t>(port.part)]
                                   .effort_in[static_cast<std::size_t>(port.port)];
        (effort_in ? E : F)(j, j) = 1.0;
        (effort_in ? F : E).col(j) += joint.first.col(j);
      }
      break;
    case JointKind::kernel:
      E = joint.first;
      F = joint.second;
      break;
    case JointKind::free:
      E(0, 0) = 1.0;
      break;
    case JointKind::fixed:
      F(0, 0) = 1.0;
      break;
    case JointKind::resistive:
      E(0, 0) = 1.0;
      F(0, 0) = joint.value;
      break;
  }
}

}  // namespace portwave::differential
