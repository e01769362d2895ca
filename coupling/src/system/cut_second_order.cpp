// Second-order systems, torn at coordinates.
//
// Pieces that share a coordinate s hold copies q_s of it, each with its share of M, D and K. Their
// rates are equal and the forces λ between them balance: Σ λ = 0. So
//   Σᵢ (Mᵢ q″ + Dᵢ q′ + Kᵢ q) = Σᵢ (Bᵢ u + λᵢ) = B u
// is the uncut equation, the energies of the pieces add up to its own, and a Runge–Kutta step of the
// pieces with these conditions is its step. Copies start equal and stay equal.

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "system/condensed_split.hpp"
#include "system/cut_pieces.hpp"
#include "system/semidefinite_split.hpp"

namespace portwave {
namespace {

struct SecondOrderShares {
  SplitMatrix M, D, K;
  std::vector<SparseMatrix> gyroscopic;
  std::vector<int> core;  ///< coordinates of the interface; empty: there is none
};

SecondOrderShares shares_of(const SecondOrderForm& form, const Tearing& tearing, bool is_active) {
  const SparseMatrix transposed = form.D.transpose();
  const SparseMatrix damping = 0.5 * (form.D + transposed);
  const SparseMatrix gyroscopic = 0.5 * (form.D - transposed);
  const SemidefiniteSplitter splitter(tearing);
  SecondOrderShares shares;
  shares.K = splitter.split(form.K, false);
  if (is_active) {
    shares.D.pieces = splitter.assign(damping);
    shares.D.core = SparseMatrix(shares.K.core.rows(), shares.K.core.cols());
  } else {
    shares.D = splitter.split(damping, false);
  }
  // An interface with stiffness needs mass.
  if (shares.K.core.nonZeros() + shares.D.core.nonZeros() > 0 ||
      !splitter.split_dominant(form.M, true, shares.M)) {
    shares.M = splitter.split_by_elimination(form.M);
  }
  shares.gyroscopic = splitter.assign(gyroscopic);
  if (shares.M.core.nonZeros() > 0) shares.core = splitter.core();
  return shares;
}

/// Whether pieces meet in so many coordinates that a response for each of them would be more work than
/// the factors of their insides (decision 84).
bool is_condensed(const DescriptorPortHamiltonian& part, const SecondOrderForm& form,
                  const Tearing& tearing) {
  constexpr Eigen::Index kLarge = 1000;
  constexpr std::size_t kManyPorts = 16;
  if (form.M.rows() < kLarge || part.is_active()) return false;
  if (part.options().storage != StepMapStorage::automatic) return false;
  std::size_t ports = 0;
  for (std::size_t v = 0; v < tearing.holders.size(); ++v) {
    if (tearing.is_shared[v] != 0) ports += tearing.holders[v].size();
  }
  return ports >= kManyPorts * at(tearing.pieces);
}

bool is_symmetric(const SparseMatrix& D) {
  return SparseMatrix(D - SparseMatrix(D.transpose())).cwiseAbs().sum() <=
         1e-15 * D.cwiseAbs().sum();
}

std::vector<int> states_of(const std::vector<int>& vertices, int n) {
  std::vector<int> states = vertices;
  for (const int v : vertices) states.push_back(n + v);
  return states;
}

std::vector<StateVariable> chosen(const std::vector<StateVariable>& all,
                                  const std::vector<int>& indices) {
  std::vector<StateVariable> states;
  states.reserve(indices.size());
  for (const int i : indices) states.push_back(all[at(i)]);
  return states;
}

}  // namespace

Cut cut_second_order(const DescriptorPortHamiltonian& part, const SecondOrderForm& form,
                     int parts) {
  const Signature& whole = part.signature();
  const auto n = static_cast<int>(form.M.rows());
  if (parts > n) {
    throw ConfigError("",
                      fmt::format("cannot be cut into {} parts: it has {} coordinates", parts, n));
  }
  const GraphMatrix graph = graph_of(form.M.cwiseAbs() + SparseMatrix(form.D.cwiseAbs()) +
                                     SparseMatrix(form.K.cwiseAbs()));
  std::vector<int> part_of = partition_graph(graph, VertexGroups(n).numbers(), parts);
  const int count = without_empty_parts(part_of, parts);
  const Tearing tearing = tear(graph, part_of, count, false);
  SecondOrderShares shares;
  CondensedShares condensed;
  std::optional<ProportionalDamping> damping;
  bool condenses = is_condensed(part, form, tearing);
  if (condenses) {
    damping = part.factored() != nullptr ? part.factored()->damping() : proportional_damping(form);
    condenses = damping || is_symmetric(form.D);
    if (condenses) condensed = condensed_shares(form, damping, tearing);
  }
  if (!condenses) shares = shares_of(form, tearing, part.is_active());
  const std::vector<int>& core = condenses ? condensed.shared : shares.core;

  // Rows of B go to the first piece that holds them; a port goes whole to a piece that holds all of
  // its rows, if there is one.
  const auto inputs = static_cast<int>(form.B.cols());
  std::vector<std::vector<int>> columns(at(inputs));
  for (int j = 0, port = 0, left = whole.ports.empty() ? 0 : whole.ports[0].dimension; j < inputs;
       ++port) {
    const bool is_port = port < static_cast<int>(whole.ports.size());
    left = is_port ? whole.ports[at(port)].dimension : 1;
    std::vector<int> everywhere, firsts;
    bool is_empty = true;
    for (int k = j; k < j + left; ++k) {
      for (SparseMatrix::InnerIterator it(form.B, k); it; ++it) {
        if (it.value() == 0.0) continue;
        const std::vector<int>& holders = tearing.holders[static_cast<std::size_t>(it.row())];
        firsts.push_back(holders.front());
        std::vector<int> both;
        std::set_intersection(everywhere.begin(), everywhere.end(), holders.begin(), holders.end(),
                              std::back_inserter(both));
        everywhere = is_empty ? holders : std::move(both);
        is_empty = false;
      }
    }
    std::sort(firsts.begin(), firsts.end());
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    if (!everywhere.empty()) firsts = {everywhere.front()};
    for (int k = j; k < j + left; ++k) columns[at(k)] = firsts;
    j += left;
  }
  CutDraft draft(whole, count, columns);

  // Shared coordinates of the same pieces make one port in each of them.
  std::map<std::vector<int>, std::vector<int>> groups;
  const int interface = count;
  for (int v = 0; v < n; ++v) {
    if (tearing.is_shared[at(v)] == 0) continue;
    std::vector<int> holders = tearing.holders[at(v)];
    if (std::binary_search(core.begin(), core.end(), v)) holders.push_back(interface);
    groups[holders].push_back(v);
  }
  Cut cut;
  cut.states.assign(at(2 * n), {-1, 0});
  std::vector<CutEntries> joined(at(count + 1));  // columns of B of the ports between pieces
  std::vector<int> next(at(count + 1), 0);
  for (int piece = 0; piece < count; ++piece) next[at(piece)] = draft.scalar_ports(piece);
  Signature between{"second_order_system", {}, {}, {}};
  int number = 0;
  for (const auto& [holders, vertices] : groups) {
    const std::string name = fmt::format("{}{}", draft.prefix(), number++);
    const auto dimension = static_cast<int>(vertices.size());
    CutJoint joint{joint::CommonFlow{}, {}};
    for (const int piece : holders) {
      joint.ports.push_back({piece, name});
      if (piece == interface) {
        between.ports.push_back({name, Causality::effort_in, Domain::generic, dimension});
      } else {
        draft.add_port(piece, name, Causality::effort_in, dimension);
      }
      for (const int v : vertices) {
        const auto found = std::lower_bound(core.begin(), core.end(), v);
        const int row =
            piece == interface ? static_cast<int>(found - core.begin()) : tearing.place(piece, v);
        joined[at(piece)].emplace_back(row, next[at(piece)]++, 1.0);
      }
    }
    cut.joints.push_back(std::move(joint));
  }

  DescriptorPortHamiltonian::Options options = part.options();
  options.default_state.clear();
  options.semidefinite_tolerance = kShareTolerance;
  const auto add = [&](std::string name, const std::vector<int>& vertices, SecondOrderForm piece,
                       Signature signature, std::vector<int> of_inputs) {
    const int index = static_cast<int>(cut.pieces.size());
    const std::vector<int> states = states_of(vertices, n);
    signature.states = chosen(whole.states, states);
    for (std::size_t k = 0; k < states.size(); ++k) {
      Cut::Place& place = cut.states[at(states[k])];
      if (place.piece < 0) place = {index, static_cast<int>(k)};
    }
    std::shared_ptr<const DescriptorPortHamiltonian> made =
        condenses
            ? make_second_order_part(std::move(signature), taken(piece), options, true, damping)
            : std::make_shared<const DescriptorPortHamiltonian>(std::move(signature),
                                                                descriptor_form(piece), options);
    cut.pieces.push_back({std::move(name), std::move(made), states, std::move(of_inputs)});
  };
  for (int piece = 0; piece < count; ++piece) {
    const std::vector<int>& vertices = tearing.vertices[at(piece)];
    CutEntries B = joined[at(piece)];
    const std::vector<int> of_column = draft.columns_of(piece);
    for (std::size_t k = 0; k < of_column.size(); ++k) {
      if (of_column[k] < 0) continue;
      const std::vector<int>& pieces = columns[at(of_column[k])];
      for (SparseMatrix::InnerIterator it(form.B, of_column[k]); it; ++it) {
        const std::vector<int>& holders = tearing.holders[static_cast<std::size_t>(it.row())];
        if (pieces.size() > 1 && holders.front() != piece) continue;
        B.emplace_back(tearing.place(piece, static_cast<int>(it.row())), static_cast<int>(k),
                       it.value());
      }
    }
    SecondOrderForm share =
        condenses ? taken(condensed.pieces[at(piece)])
                  : SecondOrderForm{.M = shares.M.pieces[at(piece)],
                                    .D = shares.D.pieces[at(piece)] + shares.gyroscopic[at(piece)],
                                    .K = shares.K.pieces[at(piece)],
                                    .B = {}};
    share.B = from_entries(vertices.size(), of_column.size(), B);
    add(fmt::format("{}", piece), vertices, taken(share), draft.signature(piece, whole.type, {}),
        draft.inputs(piece));
  }
  if (!core.empty()) {
    SecondOrderForm share =
        condenses
            ? taken(condensed.interface)
            : SecondOrderForm{.M = shares.M.core, .D = shares.D.core, .K = shares.K.core, .B = {}};
    share.B = from_entries(core.size(), at(next[at(interface)]), joined[at(interface)]);
    add("interface", core, taken(share), between, {});
  }
  draft.finish(cut);
  return cut;
}

}  // namespace portwave
