// The numbers and matrices of joints, and the places that they join.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/point_places.hpp"
#include "system/system_draft.hpp"

namespace portwave {

void SystemBuilder::Draft::check_values(int joint) {
  const auto where = [joint] { return fmt::format("/couplings/{}", joint); };
  const auto check_ratio = [&](double ratio) {
    if (std::isfinite(ratio) && ratio != 0.0) return;
    add(where() + "/ratio", fmt::format("must be finite and not 0, got {}", shown_number(ratio)));
  };
  std::visit(
      [&](const auto& kind) {
        using T = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<T, joint::Transformer> || std::is_same_v<T, joint::Gyrator>) {
          check_ratio(kind.ratio);
        } else if constexpr (std::is_same_v<T, joint::Resistive>) {
          if (std::isfinite(kind.resistance) && kind.resistance >= 0.0) return;
          add(where() + "/resistance",
              fmt::format("must be finite and >= 0, got {}", shown_number(kind.resistance)));
        } else if constexpr (std::is_same_v<T, joint::SkewGain>) {
          check_gain(kind, where() + "/gain", scalar_size(joint));
        } else if constexpr (std::is_same_v<T, joint::Kernel>) {
          check_kernel(kind, where(), scalar_size(joint));
        }
      },
      joints[joint].joint);
}

/// Points that are joined start at one place: their distance would stay, and forces on them would be a couple that
/// nothing holds.
void SystemBuilder::Draft::check_places(int joint) {
  if (!std::holds_alternative<joint::CommonFlow>(joints[joint].joint)) return;
  /// Relative to the places: what digits of a file leave.
  constexpr double kRounding = 1e-6;
  const auto shown = [](const Eigen::Vector3d& at) {
    return fmt::format("({:.9g}, {:.9g}, {:.9g})", at[0], at[1], at[2]);
  };
  const auto ports = references.of(static_cast<std::size_t>(joint));
  Eigen::Vector3d first = Eigen::Vector3d::Zero(), place = first;
  const std::string* first_path = nullptr;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!ports[i].known()) continue;
    const PendingPart& part = parts[ports[i].part];
    const auto* const points = dynamic_cast<const PointPlaces*>(part.component.get());
    if (points == nullptr) continue;
    const std::vector<double> x = part.options.initial_state.empty()
                                      ? part.component->default_state()
                                      : part.options.initial_state;
    if (static_cast<int>(x.size()) != part.component->signature().state_size() ||
        !points->place_of(ports[i].port, x.data(), place.data()) || !place.allFinite()) {
      continue;
    }
    const std::string& path = joints[joint].ports[i];
    if (first_path == nullptr) {
      first = place;
      first_path = &path;
      continue;
    }
    const double apart = (place - first).norm();
    if (apart <= kRounding * std::max(place.norm(), first.norm())) continue;
    add(path_of(joint, i),
        fmt::format("the points {} and {} start {:.3g} m apart, at {} and {} m, and would stay so: "
                    "speeds are joined, not places. Give {} another initial state, or a frame "
                    "that is moved by {} in the axes of the world",
                    in_quotes(*first_path), in_quotes(path), apart, shown(first), shown(place),
                    in_quotes(part.name), shown(first - place)));
  }
}

void SystemBuilder::Draft::check_gain(const joint::SkewGain& gain, const std::string& where,
                                      int size) {
  const Eigen::MatrixXd& C = gain.gain;
  const Eigen::Index expected = size < 0 ? C.rows() : size;
  if (C.rows() != expected || C.cols() != expected) {
    return add(where,
               fmt::format("must be {0}×{0}, one row and column per scalar port, got {1}×{2}",
                           expected, C.rows(), C.cols()));
  }
  if (!C.allFinite()) return add(where, "every entry must be finite");
  if (C.size() == 0) return;
  // Every pair of entries beside its own size, and beside the rounding that its row and column may
  // have brought in: gains between ports of unlike units differ by many decades.
  constexpr double kRounding = 64.0 * std::numeric_limits<double>::epsilon();
  const Eigen::ArrayXd row = C.cwiseAbs().rowwise().maxCoeff().array().max(
      C.cwiseAbs().colwise().maxCoeff().transpose().array());
  const Eigen::MatrixXd allowed =
      1e-12 * C.cwiseAbs().cwiseMax(C.transpose().cwiseAbs()) +
      kRounding * (row.sqrt().matrix() * row.sqrt().matrix().transpose());
  Eigen::Index i = 0;
  Eigen::Index j = 0;
  const double worst = ((C + C.transpose()).cwiseAbs() - allowed).maxCoeff(&i, &j);
  if (worst <= 0.0) return;
  if (i > j) std::swap(i, j);
  add(where, i == j ? fmt::format("must be skew, but gain({0},{0}) = {1}", i, C(i, i))
                    : fmt::format("must be skew, but gain({0},{1}) = {2} and gain({1},{0}) = {3}",
                                  i, j, C(i, j), C(j, i)));
}

void SystemBuilder::Draft::check_kernel(const joint::Kernel& kernel, const std::string& where,
                                        int size) {
  if (size >= 0 && kernel.E.rows() != size) {
    return add(where + "/E", fmt::format("must be {0}×{0}, one row and column per scalar port, got "
                                         "{1}×{2}",
                                         size, kernel.E.rows(), kernel.E.cols()));
  }
  append(issues, where, validate(DiracStructure{kernel.E, kernel.F}));
}

}  // namespace portwave
