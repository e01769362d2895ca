#include "portwave/subsystems/idle/idle_ports.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "idle/live_batch.hpp"
#include "idle/live_columns.hpp"
#include "idle/live_physics.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {
namespace {

std::shared_ptr<const Component> live_linear_part(const LinearPortHamiltonian& part,
                                                  const LiveColumns& columns) {
  Structure structure;
  columns.take(part.structure(), structure);
  return std::make_shared<const LinearPortHamiltonian>(columns.signature(), std::move(structure),
                                                       part.Q(), part.options());
}

std::shared_ptr<const Component> live_descriptor_part(const DescriptorPortHamiltonian& part,
                                                      const LiveColumns& columns) {
  if (const SecondOrderForm* const given = part.second_order().get()) {
    SecondOrderForm form = *given;
    columns.take_columns(given->B, form.B);
    const bool condenses = part.condensed() != nullptr;
    std::optional<ProportionalDamping> damping;
    if (condenses) damping = part.condensed()->damping();
    return make_second_order_part(columns.signature(), std::move(form), part.options(), condenses,
                                  damping);
  }
  DescriptorForm form = part.form();
  columns.take_columns(part.form().B, form.B);
  return std::make_shared<const DescriptorPortHamiltonian>(columns.signature(), std::move(form),
                                                           part.options());
}

/// The part without some idle ports; null where it has to be stepped by a solver of its own.
std::shared_ptr<const Component> live_part(const std::shared_ptr<const Component>& part,
                                           const std::vector<bool>& idle) {
  LiveColumns columns(part->signature(), idle);
  const Component& component = *part;
  if (typeid(component) == typeid(LinearPortHamiltonian)) {
    return live_linear_part(dynamic_cast<const LinearPortHamiltonian&>(component), columns);
  }
  if (typeid(component) == typeid(DescriptorPortHamiltonian)) {
    return live_descriptor_part(dynamic_cast<const DescriptorPortHamiltonian&>(component), columns);
  }
  const Component* const alone = part.get();
  const auto options = newton_options_of(*part->make_batch(std::span(&alone, 1)));
  if (!options) return nullptr;
  return std::make_shared<const LivePhysics>(part, std::move(columns), *options);
}

/// A part without its idle ports that knows the part with them.
class LivePart final : public Component {
 public:
  LivePart(std::shared_ptr<const Component> given, std::shared_ptr<const Component> live,
           std::vector<int> ports)
      : Component(live->signature()),
        given_(std::move(given)),
        live_(std::move(live)),
        ports_(std::move(ports)) {}

  int given_port(int scalar_port) const {
    const int ports = static_cast<int>(ports_.size());
    const int stage = scalar_port / ports;
    return stage * given_->signature().wave_size() + ports_[at(scalar_port % ports)];
  }
  std::shared_ptr<const LivePart> with_stages(const StageRule& rule) const {
    return std::make_shared<const LivePart>(given_, staged_part(live_, rule), ports_);
  }

  Capabilities capabilities() const override { return live_->capabilities(); }
  const Subsystem* port_hamiltonian() const override { return live_->port_hamiltonian(); }
  const StageRule& stage_rule() const override { return live_->stage_rule(); }
  bool is_active() const override { return given_->is_active(); }
  std::vector<double> default_state() const override { return given_->default_state(); }
  std::vector<double> typical_state() const override { return given_->typical_state(); }
  Issues check_initial_state(const double* x) const override {
    return given_->check_initial_state(x);
  }
  std::string batch_key() const override {
    const std::string own = live_->batch_key();
    const Component& live = *live_;
    return own.empty() ? own : fmt::format("{}/live/{}", own, typeid(live).name());
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    std::vector<const Component*> live;
    std::vector<LiveBatch::Given> given;
    for (const Component* const part : parts) {
      const auto& own = dynamic_cast<const LivePart&>(*part);
      live.push_back(own.live_.get());
      given.push_back({own.given_->port_hamiltonian(), own.stage_rule()});
    }
    return std::make_unique<LiveBatch>(live_->make_batch(live), std::move(given));
  }

 private:
  std::shared_ptr<const Component> given_;
  std::shared_ptr<const Component> live_;
  std::vector<int> ports_;  ///< by scalar port: its number in the given part
};

}  // namespace

std::shared_ptr<const Component> without_idle_ports(std::shared_ptr<const Component> part,
                                                    const std::vector<bool>& idle) {
  if (std::ranges::find(idle, true) == idle.end()) return nullptr;
  if (part->port_hamiltonian() != part.get() || part->stages() > 1 || part->substeps() > 1) {
    return nullptr;
  }
  std::shared_ptr<const Component> live = part;
  std::vector<bool> left = idle;  // by port of `live`
  if (const auto* const own = dynamic_cast<const LeavesPorts*>(part.get())) {
    if (auto better = own->without_ports(idle)) {
      left.clear();
      std::size_t next = 0;
      const std::vector<Port>& ports = part->signature().ports;
      for (const Port& port : better->signature().ports) {
        while (ports[next].name != port.name) ++next;
        left.push_back(idle[next++]);
      }
      live = std::move(better);
    }
  }
  if (std::ranges::find(left, true) != left.end()) live = live_part(live, left);
  if (live == nullptr) return nullptr;
  std::vector<int> ports = LiveColumns(part->signature(), idle).ports();
  return std::make_shared<const LivePart>(std::move(part), std::move(live), std::move(ports));
}

std::shared_ptr<const Component> staged_live_part(std::shared_ptr<const Component> part,
                                                  const StageRule& rule) {
  const auto* const own = dynamic_cast<const LivePart*>(part.get());
  if (own == nullptr) return staged_part(std::move(part), rule);
  if (rule.count == 1 && rule.is_damped() && rule != damped(stage_rule(1, rule.nodes))) {
    throw std::logic_error("with one stage parts without idle ports are damped as a whole");
  }
  return own->with_stages(rule);
}

int given_scalar_port(const Component& part, int scalar_port) {
  const auto* const own = dynamic_cast<const LivePart*>(&part);
  return own == nullptr ? scalar_port : own->given_port(scalar_port);
}

}  // namespace portwave
