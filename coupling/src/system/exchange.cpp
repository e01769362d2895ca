#include "portwave/coupling/system/exchange.hpp"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

bool have_same_ports(const Signature& a, const Signature& b) {
  return std::ranges::equal(a.ports, b.ports, [](const Port& x, const Port& y) {
    return x.name == y.name && x.causality == y.causality && x.domain == y.domain &&
           x.dimension == y.dimension;
  });
}

bool are_equal(const Capabilities& a, const Capabilities& b) {
  return a.linear == b.linear && a.repeatable == b.repeatable && a.knows_energy == b.knows_energy &&
         a.thread_safe == b.thread_safe && a.linearisable == b.linearisable &&
         a.restorable == b.restorable;
}

}  // namespace

std::string exchange_defect(const Component& present, const Component& other) {
  const Signature& a = present.signature();
  const Signature& b = other.signature();
  if (a.type != b.type || typeid(present) != typeid(other)) {
    return fmt::format("it is of type {}, and the part of type {}", b.type, a.type);
  }
  if (!std::ranges::equal(a.states, b.states, {}, &StateVariable::name, &StateVariable::name)) {
    return "its states are others";
  }
  if (!have_same_ports(a, b)) return "its ports are others";
  if (!std::ranges::equal(a.inputs, b.inputs, {}, &ExternalInput::name, &ExternalInput::name)) {
    return "its external inputs are others";
  }
  if (!are_equal(present.capabilities(), other.capabilities()) ||
      present.batch_key() != other.batch_key()) {
    return "it is solved in another way";
  }
  if (other.is_active() && !present.is_active()) return "it is active, and the part is not";
  return {};
}

void exchange_component(System& system, int part, std::shared_ptr<const Component> component) {
  system.parts_[at(part)].component = std::move(component);
}

}  // namespace portwave
