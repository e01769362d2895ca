#include "portwave/coupling/method/method.hpp"

#include "portwave/coupling/method/update_rule.hpp"

namespace portwave {

std::string_view to_string(MethodKind kind) {
  switch (kind) {
    case MethodKind::douglas_rachford:
      return douglas_rachford().name();
    case MethodKind::peaceman_rachford:
      return peaceman_rachford().name();
    case MethodKind::interface:
      return "interface";
    case MethodKind::automatic:
      return "auto";
    case MethodKind::strang:
      return "strang";
    case MethodKind::impulse:
      return "impulse";
    case MethodKind::lions_mercier:
      return "lions-mercier";
    case MethodKind::jacobi:
      return "jacobi";
    case MethodKind::gauss_seidel:
      return "gauss-seidel";
  }
  return "unknown";
}

std::string_view name_of(const CouplingMethod& method) {
  return method.own_rule != nullptr ? method.own_rule->name() : to_string(method.kind);
}

bool is_splitting(MethodKind kind) {
  return kind == MethodKind::strang || kind == MethodKind::impulse;
}

bool is_dynamic_iteration(MethodKind kind) {
  return kind == MethodKind::lions_mercier || kind == MethodKind::jacobi ||
         kind == MethodKind::gauss_seidel;
}

bool is_wave_method(MethodKind kind) { return !is_splitting(kind) && !is_dynamic_iteration(kind); }

std::string_view to_string(CouplingFlow flow) {
  switch (flow) {
    case CouplingFlow::automatic:
      return "auto";
    case CouplingFlow::scalar:
      return "scalar";
    case CouplingFlow::low_rank:
      return "low-rank";
  }
  return "unknown";
}

std::string_view to_string(Integrator integrator) {
  switch (integrator) {
    case Integrator::automatic:
      return "auto";
    case Integrator::midpoint:
      return "midpoint";
    case Integrator::radau_iia:
      return "radau-iia";
  }
  return "unknown";
}

std::string_view to_string(IterationMetric metric) {
  switch (metric) {
    case IterationMetric::automatic:
      return "auto";
    case IterationMetric::identity:
      return "identity";
    case IterationMetric::energy:
      return "energy";
  }
  return "unknown";
}

std::string_view to_string(ImpedanceKind kind) {
  switch (kind) {
    case ImpedanceKind::given:
      return "given";
    case ImpedanceKind::fne:
      return "fne";
    case ImpedanceKind::matched:
      return "matched";
    case ImpedanceKind::leaf:
      return "leaf";
    case ImpedanceKind::adapted:
      return "adapted";
    case ImpedanceKind::automatic:
      return "auto";
  }
  return "unknown";
}

}  // namespace portwave
