#include "port_gains.hpp"

#include <algorithm>
#include <cstddef>

#include <Eigen/LU>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Triplets = std::vector<Eigen::Triplet<double>>;

/// u = N y at one junction; empty when it does not give u from y.
MatrixXd gain_of(const Junction& junction, const std::vector<bool>& effort_in) {
  const int k = junction.dirac.size();
  MatrixXd of_u(k, k), of_y(k, k);
  for (int j = 0; j < k; ++j) {
    const bool effort = effort_in[static_cast<std::size_t>(junction.waves[j])];
    of_u.col(j) = effort ? junction.dirac.E.col(j) : junction.dirac.F.col(j);
    of_y.col(j) = effort ? junction.dirac.F.col(j) : junction.dirac.E.col(j);
  }
  for (int i = 0; i < k; ++i) {
    const double size =
        std::max(of_u.row(i).cwiseAbs().maxCoeff(), of_y.row(i).cwiseAbs().maxCoeff());
    if (size > 0.0) {
      of_u.row(i) /= size;
      of_y.row(i) /= size;
    }
  }
  const Eigen::FullPivLU<MatrixXd> lu(of_u);
  if (!lu.isInvertible()) return {};
  MatrixXd gain = lu.solve(-of_y);
  const double largest = gain.cwiseAbs().maxCoeff();
  for (Eigen::Index i = 0; i < gain.size(); ++i) {
    if (std::abs(gain.data()[i]) <= 1e-15 * largest) gain.data()[i] = 0.0;
  }
  return gain;
}

/// The groups of ports with feedthrough that act on one another.
std::vector<std::vector<int>> groups(const std::vector<int>& members, const SparseMatrix& loop) {
  std::vector<int> root(static_cast<std::size_t>(loop.rows()));
  for (std::size_t i = 0; i < root.size(); ++i) root[i] = static_cast<int>(i);
  const auto find = [&](int i) {
    while (root[static_cast<std::size_t>(i)] != i) {
      i = root[static_cast<std::size_t>(i)] =
          root[static_cast<std::size_t>(root[static_cast<std::size_t>(i)])];
    }
    return i;
  };
  for (int j = 0; j < loop.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(loop, j); it; ++it) {
      const int a = find(static_cast<int>(it.row())), b = find(j);
      root[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::vector<int>> out;
  std::vector<int> number(root.size(), -1);
  for (const int port : members) {
    int& group = number[static_cast<std::size_t>(find(port))];
    if (group < 0) {
      group = static_cast<int>(out.size());
      out.emplace_back();
    }
    out[static_cast<std::size_t>(group)].push_back(port);
  }
  return out;
}

}  // namespace

std::vector<bool> effort_inputs(const System& system) {
  std::vector<bool> out;
  out.reserve(system.scalar_ports().size());
  for (const ScalarPort& port : system.scalar_ports()) {
    const Signature& signature =
        system.parts()[static_cast<std::size_t>(port.part)].subsystem->signature();
    out.push_back(signature.ports[static_cast<std::size_t>(port.port)].causality ==
                  Causality::effort_in);
  }
  return out;
}

std::string port_names(const System& system, const std::vector<int>& ports) {
  std::vector<std::string> names;
  for (const int port : ports) {
    if (names.size() == 6) {
      names.emplace_back("...");
      break;
    }
    names.push_back(system.port_label(port));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

SparseMatrix port_feedthrough(const System& system) {
  Triplets entries;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Subsystem& part = *system.parts()[i].subsystem;
    const int first = system.first_scalar_port(static_cast<int>(i));
    const int p = part.signature().wave_size();
    const SparseMatrix feed = part.structure().S + part.structure().N;
    for (int j = 0; j < p; ++j) {
      for (SparseMatrix::InnerIterator it(feed, j); it; ++it) {
        if (it.row() < p && it.value() != 0.0) {
          entries.emplace_back(first + static_cast<int>(it.row()), first + j, it.value());
        }
      }
    }
  }
  const auto ports = static_cast<Eigen::Index>(system.scalar_ports().size());
  SparseMatrix D(ports, ports);
  D.setFromTriplets(entries.begin(), entries.end());
  return D;
}

SparseMatrix port_gains(const System& system, const SparseMatrix& D, Issues& issues) {
  const auto ports = static_cast<Eigen::Index>(system.scalar_ports().size());
  const std::vector<bool> effort_in = effort_inputs(system);
  Triplets entries;
  for (const Junction& junction : system.junctions()) {
    const MatrixXd gain = gain_of(junction, effort_in);
    if (gain.size() == 0) {
      issues.push_back(
          {"/couplings",
           fmt::format(
               "the coupling of {} does not give the inputs of these ports from their outputs; "
               "wave coupling takes it as it is",
               port_names(system, junction.waves))});
      continue;
    }
    for (int j = 0; j < gain.cols(); ++j) {
      for (int i = 0; i < gain.rows(); ++i) {
        if (gain(i, j) != 0.0)
          entries.emplace_back(junction.waves[i], junction.waves[j], gain(i, j));
      }
    }
  }
  SparseMatrix N(ports, ports);
  N.setFromTriplets(entries.begin(), entries.end());
  if (!issues.empty() || D.nonZeros() == 0) return N;

  // u_F = N_F y⁰ + N_F D u_F on the ports F with feedthrough, group by group; then u = N(y⁰ + D u_F).
  std::vector<int> members;
  for (int j = 0; j < D.outerSize(); ++j) {
    if (SparseMatrix::InnerIterator(D, j)) members.push_back(j);
  }
  const SparseMatrix loop = N * D;
  const Eigen::SparseMatrix<double, Eigen::RowMajor> rows = N;
  Triplets closed;
  for (const std::vector<int>& group : groups(members, loop)) {
    const auto k = static_cast<Eigen::Index>(group.size());
    std::vector<Eigen::Index> place(static_cast<std::size_t>(ports), -1);
    for (Eigen::Index i = 0; i < k; ++i)
      place[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])] = i;
    MatrixXd within = MatrixXd::Identity(k, k);
    for (Eigen::Index j = 0; j < k; ++j) {
      for (SparseMatrix::InnerIterator it(loop, group[static_cast<std::size_t>(j)]); it; ++it) {
        if (place[static_cast<std::size_t>(it.row())] >= 0)
          within(place[static_cast<std::size_t>(it.row())], j) -= it.value();
      }
    }
    const Eigen::FullPivLU<MatrixXd> lu(within);
    if (!lu.isInvertible()) {
      issues.push_back({"/couplings", "the feedthrough of " + port_names(system, group) +
                                          " closes a loop that has no solution"});
      continue;
    }
    const MatrixXd inverse = lu.inverse();
    for (Eigen::Index i = 0; i < k; ++i) {
      for (Eigen::Index j = 0; j < k; ++j) {
        if (inverse(i, j) == 0.0) continue;
        for (Eigen::SparseMatrix<double, Eigen::RowMajor>::InnerIterator it(
                 rows, group[static_cast<std::size_t>(j)]);
             it; ++it) {
          closed.emplace_back(group[static_cast<std::size_t>(i)], static_cast<int>(it.col()),
                              inverse(i, j) * it.value());
        }
      }
    }
  }
  SparseMatrix u_of_F(ports, ports);
  u_of_F.setFromTriplets(closed.begin(), closed.end());
  const SparseMatrix fed = D * u_of_F;
  SparseMatrix M = N + SparseMatrix(N * fed);
  M.prune(0.0);
  return M;
}

}  // namespace portwave
