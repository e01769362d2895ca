// The numbers and matrices of joints.

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
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
