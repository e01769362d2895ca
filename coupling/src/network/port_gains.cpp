#include "network/port_gains.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;

/// Junctions that feedthrough ties together: their numbers, group by group.
std::vector<std::vector<int>> groups(const System& system, const SparseMatrix& D) {
  const auto count = system.junctions().size();
  std::vector<int> junction_of(system.scalar_ports().size(), -1), root(count);
  for (std::size_t g = 0; g < count; ++g) {
    root[g] = static_cast<int>(g);
    for (const int port : system.junctions()[g].waves) {
      junction_of[static_cast<std::size_t>(port)] = static_cast<int>(g);
    }
  }
  const auto find = [&](int i) {
    while (root[static_cast<std::size_t>(i)] != i) {
      int& up = root[static_cast<std::size_t>(i)];
      up = root[static_cast<std::size_t>(up)];
      i = up;
    }
    return i;
  };
  for (int j = 0; j < D.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(D, j); it; ++it) {
      const int a = find(junction_of[static_cast<std::size_t>(it.row())]);
      const int b = find(junction_of[static_cast<std::size_t>(j)]);
      root[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::vector<int>> out;
  std::vector<int> number(count, -1);
  for (int g = 0; g < static_cast<int>(count); ++g) {
    int& group = number[static_cast<std::size_t>(find(g))];
    if (group < 0) {
      group = static_cast<int>(out.size());
      out.emplace_back();
    }
    out[static_cast<std::size_t>(group)].push_back(g);
  }
  return out;
}

/// Of the junctions of a group, A_u u + A_y y = 0 with y = y⁰ + D u: the gain from y⁰ to u, over
/// `ports`. Empty when there is none.
MatrixXd gain_of(const System& system, const std::vector<int>& group, const SparseMatrix& D,
                 const std::vector<bool>& effort_in, std::vector<int>& ports) {
  ports.clear();
  for (const int g : group) {
    const std::vector<int>& own = system.junctions()[static_cast<std::size_t>(g)].waves;
    ports.insert(ports.end(), own.begin(), own.end());
  }
  const auto k = static_cast<Eigen::Index>(ports.size());
  MatrixXd of_u = MatrixXd::Zero(k, k), of_y = of_u, feed = of_u;
  Eigen::Index at = 0;
  for (const int g : group) {
    const DiracStructure& dirac = system.junctions()[static_cast<std::size_t>(g)].dirac;
    const Eigen::Index size = dirac.size();
    for (Eigen::Index j = 0; j < size; ++j) {
      const bool effort =
          effort_in[static_cast<std::size_t>(ports[static_cast<std::size_t>(at + j)])];
      of_u.col(at + j).segment(at, size) = effort ? dirac.E.col(j) : dirac.F.col(j);
      of_y.col(at + j).segment(at, size) = effort ? dirac.F.col(j) : dirac.E.col(j);
    }
    at += size;
  }
  for (Eigen::Index j = 0; j < k; ++j) {
    for (Eigen::Index i = 0; i < k; ++i) {
      feed(i, j) = D.coeff(ports[static_cast<std::size_t>(i)], ports[static_cast<std::size_t>(j)]);
    }
  }
  MatrixXd matrix = of_u + of_y * feed;
  for (Eigen::Index i = 0; i < k; ++i) {
    const double size =
        std::max(matrix.row(i).cwiseAbs().maxCoeff(), of_y.row(i).cwiseAbs().maxCoeff());
    if (size == 0.0) continue;
    matrix.row(i) /= size;
    of_y.row(i) /= size;
  }
  // Inputs of unlike units have columns of unlike sizes.
  Eigen::VectorXd scale = Eigen::VectorXd::Ones(k);
  for (Eigen::Index j = 0; j < k; ++j) {
    const double size = matrix.col(j).cwiseAbs().maxCoeff();
    if (size > 0.0) scale[j] = 1.0 / size;
  }
  const std::optional<MatrixXd> scaled_inverse = pivoted_inverse(matrix * scale.asDiagonal());
  if (!scaled_inverse) return {};
  const MatrixXd inverse = scale.asDiagonal() * *scaled_inverse;
  MatrixXd gain = -inverse * of_y;
  // Gains that only rounding has made are as small as that beside their terms.
  const MatrixXd terms = inverse.cwiseAbs() * of_y.cwiseAbs();
  for (Eigen::Index i = 0; i < gain.size(); ++i) {
    if (std::abs(gain.data()[i]) <= 1e-15 * terms.data()[i]) gain.data()[i] = 0.0;
  }
  return gain;
}

/// That a coupling is a constraint, and how to model around it.
std::string constraint_text(const System& system, const std::vector<int>& ports,
                            const std::vector<bool>& effort_in) {
  const auto efforts = std::count_if(ports.begin(), ports.end(), [&](int port) {
    return effort_in[static_cast<std::size_t>(port)];
  });
  std::string_view why = "it ties their states together";
  std::string_view around = "put an element between them that makes the inputs a matter of states";
  if (ports.size() == 1) {
    why = efforts == 1 ? "a mass that is held is a constraint"
                       : "a spring whose end is free has no force, which is a constraint";
    around = efforts == 1
                 ? "leave it out of the part, or put an element there that has a state"
                 : "leave it out of the part (of a chain by \"right_end\": \"mass\"), give it a "
                   "damper, or put an element there that has a state";
  } else if (efforts == std::ssize(ports)) {
    why =
        "all of them take an effort and give a flow, as masses do, and a rigid joint between "
        "masses is a constraint";
    around =
        "put a stiff spring between them (a part whose ports take flows), or end one of the parts "
        "in a spring and give its last mass to the other";
  } else if (efforts == 0) {
    why =
        "all of them take a flow and give an effort, as springs do, and springs end to end are "
        "a constraint";
    around = "put a small mass between them, or make one spring of them";
  }
  return fmt::format(
      "the coupling of {} does not give the inputs of these ports from the states of the parts: "
      "{}. For a method without waves {}; wave coupling (\"kind\": \"auto\") takes it as it is "
      "(docs/concepts/choosing-a-method.md, \"Joining two masses\")",
      port_names(system, ports), why, around);
}

}  // namespace

std::vector<bool> effort_inputs(const System& system) {
  std::vector<bool> out;
  out.reserve(system.scalar_ports().size());
  for (const ScalarPort& port : system.scalar_ports()) {
    const Signature& signature =
        system.parts()[static_cast<std::size_t>(port.part)].component->signature();
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
  SparseEntries entries;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Subsystem& part = *system.parts()[i].port_hamiltonian();
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
  return sparse_matrix(ports, ports, entries);
}

SparseMatrix port_gains(const System& system, const SparseMatrix& D, Issues& issues,
                        const std::vector<bool>& left_out) {
  const auto count = static_cast<Eigen::Index>(system.scalar_ports().size());
  const std::vector<bool> effort_in = effort_inputs(system);
  SparseEntries entries;
  std::vector<int> ports;
  for (const std::vector<int>& group : groups(system, D)) {
    const MatrixXd gain = gain_of(system, group, D, effort_in, ports);
    if (ports.size() == 1 && !left_out.empty() && left_out[static_cast<std::size_t>(ports[0])]) {
      continue;
    }
    if (gain.size() == 0) {
      issues.push_back({"/couplings", constraint_text(system, ports, effort_in)});
      continue;
    }
    for (Eigen::Index j = 0; j < gain.cols(); ++j) {
      for (Eigen::Index i = 0; i < gain.rows(); ++i) {
        if (gain(i, j) == 0.0) continue;
        entries.emplace_back(ports[static_cast<std::size_t>(i)], ports[static_cast<std::size_t>(j)],
                             gain(i, j));
      }
    }
  }
  return sparse_matrix(count, count, entries);
}

}  // namespace portwave
