#include "portwave/subsystems/core/component_digest.hpp"

#include <cstddef>
#include <exception>
#include <vector>

#include "core/port_memory.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {
namespace {

void add(Digest& digest, const SparseMatrix& matrix) {
  digest.add(static_cast<int>(matrix.rows()));
  digest.add(static_cast<int>(matrix.cols()));
  for (int j = 0; j < matrix.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(matrix, j); it; ++it) {
      if (it.value() == 0.0) continue;
      digest.add(static_cast<int>(it.row()));
      digest.add(j);
      digest.add(it.value());
    }
  }
}

void add(Digest& digest, const Structure& structure) {
  for (const SparseMatrix* matrix :
       {&structure.J, &structure.R, &structure.G, &structure.P, &structure.S, &structure.N}) {
    add(digest, *matrix);
  }
}

/// States on both sides of the typical one, no two of their entries in the same ratio to it.
std::vector<std::vector<double>> probe_states(const Subsystem& physics) {
  constexpr double kShares[] = {0.37, -0.59, 1.13, -1.71, 4.3};
  const std::vector<double> typical = physics.typical_state();
  std::vector<std::vector<double>> out;
  for (const double share : kShares) {
    std::vector<double>& x = out.emplace_back(typical);
    double own = share;
    for (double& entry : x) {
      entry *= own;
      own *= 1.0 + 0.07 / static_cast<double>(x.size());
    }
  }
  return out;
}

void add_energies(Digest& digest, const Subsystem& physics) {
  std::vector<double> gradient(static_cast<std::size_t>(physics.signature().state_size()));
  Structure there = physics.structure();
  for (const std::vector<double>& x : probe_states(physics)) {
    try {
      digest.add(physics.storage(x.data()));
      physics.gradient(x.data(), gradient.data());
      for (const double entry : gradient) digest.add(entry);
      if (physics.constant_structure()) continue;
      physics.structure_at(x.data(), there);
      add(digest, there);
    } catch (const std::exception&) {  // outside the domain of a callback
      digest.add("outside");
    }
  }
}

/// Of vertical laws the points where u + y has these values, without inputs and with inputs of 1.
void add_vertical_laws(Digest& digest, const Subsystem& physics) {
  const std::vector<double> on(static_cast<std::size_t>(physics.signature().input_size()), 1.0);
  for (int port = 0; port < physics.signature().wave_size(); ++port) {
    for (const double size : {1e-3, 1.0, 1e3}) {
      for (const double r : {size, -size}) {
        for (const double* const external : {static_cast<const double*>(nullptr), on.data()}) {
          digest.add(physics.port_law_point(port, 1.0, 1.0, r, external).u);
        }
      }
    }
  }
}

/// The laws of the ports; `law` is one of them.
template <class Law>
void add_port_laws(Digest& digest, const Subsystem& physics, const Law& law) {
  constexpr double kSizes[] = {1e-9, 1e-6, 1e-3, 0.03, 0.7, 5.0, 80.0, 1e3, 1e5};
  for (int port = 0; port < physics.signature().wave_size(); ++port) {
    for (const double size : kSizes) {
      for (const double u : {size, -size}) {
        try {
          digest.add(law(port, u).value);
        } catch (const std::exception&) {
          digest.add("outside");
        }
      }
    }
  }
}

void add_port_laws(Digest& digest, const Subsystem& physics) {
  add_port_laws(digest, physics, [&](int port, double u) { return physics.port_law(port, u); });
  const auto* const memory = dynamic_cast<const PortMemory*>(&physics);
  if (memory == nullptr) return;
  for (const double size : physics.typical_state()) digest.add(size);
  for (const std::vector<double>& x : probe_states(physics)) {
    add_port_laws(digest, physics,
                  [&](int port, double u) { return memory->port_law_after(x.data(), port, u); });
  }
}

}  // namespace

std::uint64_t component_digest(const Component& component) {
  Digest digest;
  digest.add(component.is_active() ? 1 : 0);
  digest.add(component.stages());
  digest.add(component.substeps());
  const Subsystem* const physics = component.port_hamiltonian();
  if (physics == nullptr) return digest.value();
  add(digest, physics->structure());
  if (const LinearForm form = physics->linear_form(); form.Q != nullptr) {
    add(digest, *form.Q);
    if (form.E != nullptr) add(digest, *form.E);
  } else {
    add_energies(digest, *physics);
  }
  if (physics->has_vertical_laws()) {
    add_vertical_laws(digest, *physics);
  } else if (physics->has_port_laws()) {
    add_port_laws(digest, *physics);
  }
  for (const StateLevel& level : physics->state_levels()) {
    digest.add(level.state);
    digest.add(level.level);
  }
  return digest.value();
}

}  // namespace portwave
