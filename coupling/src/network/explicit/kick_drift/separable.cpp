#include "network/explicit/kick_drift/separable.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {
namespace separable {

/// Two colours of states: J joins unlike ones, H and R like ones.
class Colouring {
 public:
  explicit Colouring(int states) : root_(at(states)), odd_(at(states), 0) {
    std::iota(root_.begin(), root_.end(), 0);
  }
  /// {root, colour beside that of the root}.
  std::pair<int, int> find(int i) {
    int parity = 0;
    while (root_[at(i)] != i) {
      parity ^= odd_[at(i)];
      i = root_[at(i)];
    }
    return {i, parity};
  }
  /// False where it contradicts what was joined before.
  bool join(int a, int b, int unlike) {
    const auto [ra, pa] = find(a);
    const auto [rb, pb] = find(b);
    if (ra == rb) return (pa ^ pb) == unlike;
    const auto [low, high] = std::minmax(ra, rb);
    root_[at(high)] = low;
    odd_[at(high)] = pa ^ pb ^ unlike;
    return true;
  }

 private:
  std::vector<int> root_, odd_;
};

}  // namespace separable
}  // namespace

using separable::Colouring;

SeparableNetwork::SeparableNetwork(const System& system)
    : NetworkForm(system, {.name = "kicks and drifts", .takes_damped_inputs = false}),
      kind(at(size()), SeparableKind::position),
      shift(at(size()), 0.0) {
  for (int i = 0; i < size(); ++i) {
    if (is_dead[at(i)] != 0) kind[at(i)] = SeparableKind::dead;
  }
  colour();
}

void SeparableNetwork::colour() {
  const int n = size();
  Colouring colouring(n);
  Issues issues;
  FewIssues odd(issues), tied(issues), damped(issues);
  const auto join = [&](const SparseMatrix& m, int unlike, const auto& refuse) {
    for (int j = 0; j < m.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
        const auto i = static_cast<int>(it.row());
        if (i >= j || it.value() == 0.0) continue;
        if (!colouring.join(i, j, unlike)) refuse(i, j);
      }
    }
  };
  join(J, 1, [&](int i, int j) {
    odd.add("/couplings",
            fmt::format("{} and {} act on each other, but stand on the same side of the network (a "
                        "cycle of an odd number of states): positions and momenta cannot be told "
                        "apart{}",
                        label(i), label(j), kWaves));
  });
  join(couplings, 0, [&](int i, int j) {
    tied.add(fmt::format("/subsystems/{}", part_of(i)),
             fmt::format("the storage ties {} to {}, a position to a momentum{}", label(i),
                         label(j), kWaves));
  });
  join(R, 0, [&](int i, int j) {
    damped.add("/couplings",
               fmt::format("a damper acts between {} and {}, a position and a momentum: put a "
                           "spring or a mass between them{}",
                           label(i), label(j), kWaves));
  });
  throw_if_any(std::move(issues));

  struct Side {
    Issues issues;
    std::size_t defects = 0;
    int damped = 0, driven = 0, states = 0;
  };
  std::vector<char> driven(at(n), 0);
  for (int k = 0; k < B.outerSize(); ++k) {
    for (SparseMatrix::InnerIterator it(B, k); it; ++it) driven[at(static_cast<int>(it.row()))] = 1;
  }
  std::vector<std::array<Side, 2>> sides(at(n));  // by root: colour 0 or 1 as that of momenta
  const auto object = [&](Side& side, int state, std::string what) {
    if (side.defects++ < FewIssues::kMost) {
      side.issues.push_back({fmt::format("/subsystems/{}", part_of(state)), std::move(what)});
    }
  };
  for (int i = 0; i < n; ++i) {
    if (kind[at(i)] == SeparableKind::dead) continue;
    const auto [root, own] = colouring.find(i);
    Side& as_momentum = sides[at(root)][at(own)];
    Side& as_position = sides[at(root)][at(1 - own)];
    const bool bent = is_bent(i);
    ++as_momentum.states;
    if (driven[at(i)] != 0) ++as_position.driven;
    if (bent) {
      object(as_momentum, i,
             fmt::format("the storage of {} is not quadratic, and it would have to be a momentum, "
                         "as the positions are on the other side{}",
                         label(i), kWaves));
    }
    bool is_damped = false, shared = false, tied_storage = false;
    for (SparseMatrix::InnerIterator it(R, i); it; ++it) {
      if (it.value() == 0.0) continue;
      is_damped = true;
      shared = shared || it.row() != i;
    }
    for (SparseMatrix::InnerIterator it(couplings, i); it; ++it)
      tied_storage = tied_storage || it.row() != i;
    if (constant[at(i)] != 0.0 && (tied_storage || hessian.coeff(i, i) <= 0.0)) {
      object(
          as_momentum, i,
          fmt::format("the storage of {} has a linear term, and it would have to be a momentum{}",
                      label(i), kWaves));
    }
    if (!is_damped) continue;
    ++as_position.damped;
    if (bent) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is not quadratic: give the damper a spring "
                         "or a capacitor of its own{}",
                         label(i), kWaves));
    } else if (shared) {
      object(as_position, i,
             fmt::format("{} shares a damper with another position: put a mass or an inductor "
                         "between them{}",
                         label(i), kWaves));
    } else if (constant[at(i)] != 0.0 && hessian.coeff(i, i) <= 0.0) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is a linear term alone: it would move for "
                         "ever{}",
                         label(i), kWaves));
    } else if (tied_storage) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is tied to that of another state{}",
                         label(i), kWaves));
    }
  }
  std::vector<int> momentum_colour(at(n), 1);
  for (int root = 0; root < n; ++root) {
    auto& [zero, one] = sides[at(root)];
    if (zero.states + one.states == 0) continue;
    const auto rank = [](const Side& side) {
      return std::array<std::size_t, 4>{side.defects, at(side.damped), at(side.driven),
                                        at(side.states)};
    };
    const bool takes_zero = rank(zero) < rank(one);
    momentum_colour[at(root)] = takes_zero ? 0 : 1;
    Side& taken = takes_zero ? zero : one;
    for (Issue& issue : taken.issues) issues.push_back(std::move(issue));
  }
  throw_if_any(std::move(issues));
  for (int i = 0; i < n; ++i) {
    if (kind[at(i)] == SeparableKind::dead) continue;
    const auto [root, own] = colouring.find(i);
    if (own == momentum_colour[at(root)]) {
      kind[at(i)] = SeparableKind::momentum;
      if (constant[at(i)] != 0.0) shift[at(i)] = constant[at(i)] / hessian.coeff(i, i);
      constant[at(i)] = 0.0;
    } else if (R.coeff(i, i) != 0.0) {
      kind[at(i)] = SeparableKind::decaying;
    }
  }
}

}  // namespace portwave
