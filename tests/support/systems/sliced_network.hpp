#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/ranks/slice_builder.hpp"

namespace portwave::testing {

/// A network as a list, of which the whole may be built, or slices.
struct SlicedNetwork {
  struct OnePart {
    std::string name;
    std::shared_ptr<const Component> component;
    SystemBuilder::PartOptions options;
  };
  struct OneJoint {
    Joint joint;
    std::vector<std::pair<int, std::string>> ports;  ///< part and port
  };
  std::vector<OnePart> parts;
  std::vector<OneJoint> joints;

  std::vector<std::string> names_of(const OneJoint& joint) const {
    std::vector<std::string> names;
    for (const auto& [part, port] : joint.ports) {
      names.push_back(parts[static_cast<std::size_t>(part)].name + "." + port);
    }
    return names;
  }

  System whole() const {
    SystemBuilder builder;
    for (const OnePart& part : parts) builder.add(part.name, part.component, part.options);
    for (const OneJoint& joint : joints) builder.join(joint.joint, names_of(joint));
    return builder.build();
  }

  /// Parts `first` to `end` − 1.
  SliceBuilder slice(int first, int end) const {
    SliceBuilder builder(first);
    for (int i = first; i < end; ++i) {
      const OnePart& part = parts[static_cast<std::size_t>(i)];
      builder.add(part.name, part.component, part.options);
    }
    const auto is_own = [&](const auto& port) { return port.first >= first && port.first < end; };
    std::set<int> outside;
    for (const OneJoint& joint : joints) {
      if (std::ranges::none_of(joint.ports, is_own)) continue;
      builder.join(joint.joint, names_of(joint));
      for (const auto& port : joint.ports) {
        if (!is_own(port)) outside.insert(port.first);
      }
    }
    for (const int number : outside) {
      const OnePart& part = parts[static_cast<std::size_t>(number)];
      builder.add_outside(number, part.name, part.component);
    }
    return builder;
  }
};

}  // namespace portwave::testing
