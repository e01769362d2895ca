// Port-Hamiltonian parts, cut between states.
//
// Every state x_k has one piece that owns its equation. With z = Qx:
// - Where J_kl or R_kl joins states of two pieces, each of the two has a port there that adds an input i
//   to ẋ_k and shows z_k. J_kl becomes the lossless coupling i_k = J_kl z_l, i_l = −J_kl z_k. Of R the
//   rows that are joined across are split off as resistors without states: R = diag(Rᵢ) + R_c, both
//   semidefinite, i = −R_c z.
// - Where Q_kl joins them, the storage is torn: Q = Σ Rᵢᵀ Qᵢ Rᵢ over copies of x_k. The owner has a port
//   with flow ẋ_k, which it takes from its equations with z_k = (Qᵢ x)_k − ε, ε the effort there; a copy
//   integrates its flow and answers with its share of z_k. All flows are equal and the efforts
//   balance (common flow): z_k is then the sum of all shares.
//   With Π the columns of such states, the ports (ε, u) of the owner have
//     G = [−JΠ, G], P = [−RΠ, P], S = [ΠᵀRΠ, −ΠᵀP; ·, S], N = [−ΠᵀJΠ, ΠᵀG; ·, N],
//   a congruence of the uncut matrices, so dissipation stays semidefinite.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "system/cut_pieces.hpp"
#include "system/semidefinite_split.hpp"
#include "system/state_owners.hpp"

namespace portwave {
namespace {

constexpr int kMostJoined = 2000;  // scalar ports of one coupling between pieces, a dense matrix

LinearPortHamiltonian::Options share_options() {
  LinearPortHamiltonian::Options options;
  options.semidefinite_tolerance = kShareTolerance;
  return options;
}

/// R as shares of the pieces and resistors between them.
struct SplitDissipation {
  std::vector<SparseMatrix> pieces;  ///< [R P; Pᵀ S] over the states and inputs of each piece
  SparseMatrix between;              ///< n×n
};

class StructureCutter {
 public:
  StructureCutter(const WholeStructure& whole, std::vector<int> owner, int count)
      : whole_(whole),
        owner_(std::move(owner)),
        count_(count),
        storage_(tear(graph_of(whole.Q), owner_, count, true)),
        draft_(whole.signature, count, input_columns()) {
    own_.resize(at(count));
    for (int k = 0; k < static_cast<int>(owner_.size()); ++k) own_[at(owner_[at(k)])].push_back(k);
  }

  const std::vector<int>& own(int piece) const { return own_[at(piece)]; }
  bool tears_storage() const {
    return std::any_of(storage_.is_shared.begin(), storage_.is_shared.end(),
                       [](char shared) { return shared != 0; });
  }

  /// `make`: a component out of the matrices of a piece.
  template <class Make>
  Cut cut(const Make& make) {
    split_storage();
    split_dissipation();
    join_storage();
    join_structure();
    Cut cut;
    cut.states.resize(owner_.size());
    for (int piece = 0; piece < count_; ++piece) {
      const std::vector<int> states = states_of(piece);
      for (std::size_t k = 0; k < states.size(); ++k) {
        if (owner_[at(states[k])] != piece) continue;
        cut.states[at(states[k])] = {piece, static_cast<int>(k)};
      }
      std::vector<StateVariable> names;
      for (const int k : states) names.push_back(whole_.signature.states[at(k)]);
      cut.pieces.push_back(
          {fmt::format("{}", piece),
           make(piece, draft_.signature(piece, whole_.signature.type, names), states, *this),
           states, draft_.inputs(piece)});
    }
    if (!storage_core_.empty()) add_interface(cut);
    for (const CutJoint& joint : storage_joints_) cut.joints.push_back(joint);
    add_structure_joints(cut);
    draft_.finish(cut);
    return cut;
  }

  /// Its own states, then copies of those of others.
  std::vector<int> states_of(int piece) const {
    std::vector<int> states = own_[at(piece)];
    for (const int k : storage_.vertices[at(piece)]) {
      if (owner_[at(k)] != piece) states.push_back(k);
    }
    return states;
  }

  SparseMatrix storage_of(int piece) const {
    std::vector<int> order;
    for (const int k : states_of(piece)) order.push_back(storage_.place(piece, k));
    return sub_matrix(storage_split_.pieces[at(piece)], order, order);
  }

  /// J, R, G, P, S and N of a piece.
  Structure structure_of(int piece) const {
    const std::vector<int>& own = own_[at(piece)];
    const Structure& whole = whole_.structure;
    const SparseMatrix J = sub_matrix(whole.J, own, own);
    std::vector<int> inputs;  // of the uncut part that act here, with their columns
    std::vector<int> column_of;
    const std::vector<int> columns = draft_.columns_of(piece);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (columns[k] < 0) continue;
      inputs.push_back(columns[k]);
      column_of.push_back(static_cast<int>(k));
    }
    const SparseMatrix G = sub_matrix(whole.G, own, inputs);
    const SparseMatrix N = sub_matrix(whole.N, inputs, inputs);
    const SparseMatrix& W = dissipation_.pieces[at(piece)];
    std::vector<int> first(own.size()), rest;
    for (std::size_t k = 0; k < own.size(); ++k) first[k] = static_cast<int>(k);
    const std::vector<int>& fed = dissipation_inputs_[at(piece)];
    for (std::size_t k = 0; k < fed.size(); ++k) rest.push_back(static_cast<int>(own.size() + k));
    const SparseMatrix R = sub_matrix(W, first, first), P = sub_matrix(W, first, rest),
                       S = sub_matrix(W, rest, rest);
    const auto fed_column = [&](int k) {
      const auto found = std::find(inputs.begin(), inputs.end(), fed[at(k)]);
      return column_of[static_cast<std::size_t>(found - inputs.begin())];
    };
    CutEntries j, r, g, p, s, n;
    for_entries(J, [&](int a, int b, double v) { j.emplace_back(a, b, v); });
    for_entries(R, [&](int a, int b, double v) { r.emplace_back(a, b, v); });
    for_entries(G, [&](int a, int b, double v) { g.emplace_back(a, column_of[at(b)], v); });
    for_entries(P, [&](int a, int b, double v) { p.emplace_back(a, fed_column(b), v); });
    for_entries(S,
                [&](int a, int b, double v) { s.emplace_back(fed_column(a), fed_column(b), v); });
    for_entries(
        N, [&](int a, int b, double v) { n.emplace_back(column_of[at(a)], column_of[at(b)], v); });
    // The ports where storage is torn, and those to the structure of others.
    std::map<int, int> effort_column;  // ε by own state
    for (const auto& [state, column] : torn_columns_[at(piece)]) {
      if (owner_[at(state)] == piece) {
        effort_column.emplace(local(own, state), column);
      } else {
        const std::vector<int> states = states_of(piece);
        const auto copy = std::find(states.begin() + static_cast<std::ptrdiff_t>(own.size()),
                                    states.end(), state);
        g.emplace_back(static_cast<int>(copy - states.begin()), column, 1.0);
      }
    }
    const auto with_effort = [&](int state, const auto& use) {
      const auto found = effort_column.find(state);
      if (found != effort_column.end()) use(found->second);
    };
    for_entries(J, [&](int a, int b, double v) {
      with_effort(b, [&](int eb) {
        g.emplace_back(a, eb, -v);
        with_effort(a, [&](int ea) { n.emplace_back(ea, eb, -v); });
      });
    });
    for_entries(R, [&](int a, int b, double v) {
      with_effort(b, [&](int eb) {
        p.emplace_back(a, eb, -v);
        with_effort(a, [&](int ea) { s.emplace_back(ea, eb, v); });
      });
    });
    for_entries(G, [&](int a, int b, double v) {
      with_effort(a, [&](int ea) {
        n.emplace_back(ea, column_of[at(b)], v);
        n.emplace_back(column_of[at(b)], ea, -v);
      });
    });
    for_entries(P, [&](int a, int b, double v) {
      with_effort(a, [&](int ea) {
        s.emplace_back(ea, fed_column(b), -v);
        s.emplace_back(fed_column(b), ea, -v);
      });
    });
    for (const auto& [state, column] : joined_columns_[at(piece)]) {
      const int a = local(own, state);
      g.emplace_back(a, column, 1.0);
      with_effort(a, [&, column = column](int ea) {
        n.emplace_back(ea, column, 1.0);
        n.emplace_back(column, ea, -1.0);
      });
    }
    const std::size_t size = states_of(piece).size(), m = columns.size();
    return {.J = from_entries(size, size, j),
            .R = from_entries(size, size, r),
            .G = from_entries(size, m, g),
            .P = from_entries(size, m, p),
            .S = from_entries(m, m, s),
            .N = from_entries(m, m, n)};
  }

 private:
  static int local(const std::vector<int>& sorted, int value) {
    return static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  }

  std::vector<std::vector<int>> input_columns() const {
    const Structure& s = whole_.structure;
    std::vector<std::set<int>> touched(at(s.inputs()));
    for (const SparseMatrix* const M : {&s.G, &s.P}) {
      for_entries(
          *M, [&](int state, int input, double) { touched[at(input)].insert(owner_[at(state)]); });
    }
    // Inputs that feed through to one another are in one group with the states of any of them.
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const SparseMatrix* const M : {&s.S, &s.N}) {
        for_entries(*M, [&](int a, int b, double) {
          if (touched[at(a)].empty() && !touched[at(b)].empty()) {
            touched[at(a)] = touched[at(b)];
            goes_on = true;
          }
        });
      }
    }
    std::vector<std::vector<int>> columns;
    for (const std::set<int>& pieces : touched) columns.emplace_back(pieces.begin(), pieces.end());
    return columns;
  }

  void split_storage() {
    if (whole_.E != nullptr || !tears_storage()) {
      for (int piece = 0; piece < count_; ++piece) {
        storage_split_.pieces.push_back(sub_matrix(whole_.Q, own_[at(piece)], own_[at(piece)]));
      }
      return;
    }
    const SemidefiniteSplitter splitter(storage_);
    storage_split_ = splitter.split(whole_.Q, false);
    if (storage_split_.core.nonZeros() > 0) storage_core_ = splitter.core();
  }

  // Rows of R that are joined to those of another piece are shared with what lies between.
  void split_dissipation() {
    const Structure& whole = whole_.structure;
    const int n = whole.states();
    const SparseMatrix W = dissipation_matrix(whole);
    Tearing tearing;
    tearing.pieces = count_;
    tearing.holders.resize(static_cast<std::size_t>(W.rows()));
    tearing.is_shared.assign(static_cast<std::size_t>(W.rows()), 0);
    tearing.vertices = own_;
    for (int k = 0; k < n; ++k) tearing.holders[at(k)] = {owner_[at(k)]};
    for_entries(whole.R, [&](int a, int b, double) {
      if (owner_[at(a)] != owner_[at(b)]) tearing.is_shared[at(a)] = tearing.is_shared[at(b)] = 1;
    });
    dissipation_inputs_.resize(at(count_));
    std::vector<char> feeds(at(whole.inputs()), 0);
    for_entries(whole.P, [&](int, int input, double) { feeds[at(input)] = 1; });
    for_entries(whole.S, [&](int a, int b, double) { feeds[at(a)] = feeds[at(b)] = 1; });
    for (int piece = 0; piece < count_; ++piece) {
      for (const int column : draft_.columns_of(piece)) {
        if (column < 0 || feeds[at(column)] == 0) continue;
        dissipation_inputs_[at(piece)].push_back(column);
      }
      std::vector<int>& fed = dissipation_inputs_[at(piece)];
      std::sort(fed.begin(), fed.end());
      for (const int column : fed) {
        tearing.vertices[at(piece)].push_back(n + column);
        tearing.holders[at(n + column)] = {piece};
      }
    }
    const bool crosses = std::any_of(tearing.is_shared.begin(), tearing.is_shared.end(),
                                     [](char shared) { return shared != 0; });
    dissipation_.between = SparseMatrix(n, n);
    if (!crosses) {
      dissipation_.pieces = SemidefiniteSplitter(tearing).assign(W);
      return;
    }
    if (split_dissipation_by_edges(W, tearing)) return;
    if (whole_.is_active) {
      throw ConfigError(
          "",
          "cannot be cut: with allow_active its R, which joins the pieces, has no split "
          "into resistors");
    }
    const SemidefiniteSplitter splitter(tearing, SemidefiniteSplitter::Rest::to_core);
    SplitMatrix split = splitter.split_by_elimination(W);
    dissipation_.pieces = std::move(split.pieces);
    CutEntries between;
    for_entries(split.core, [&](int a, int b, double value) {
      between.emplace_back(splitter.core()[at(a)], splitter.core()[at(b)], value);
    });
    dissipation_.between = from_entries(at(n), at(n), between);
  }

  // A resistor per entry that crosses, |R_kl| [1 ±1; ±1 1], taken from the diagonal of the pieces.
  bool split_dissipation_by_edges(const SparseMatrix& W, const Tearing& tearing) {
    const int n = whole_.structure.states();
    CutEntries between;
    std::vector<double> taken(at(n), 0.0);
    for_entries(whole_.structure.R, [&](int a, int b, double value) {
      if (owner_[at(a)] == owner_[at(b)]) return;
      between.emplace_back(a, b, value);
      between.emplace_back(a, a, std::abs(value));
      taken[at(a)] += std::abs(value);
    });
    dissipation_.pieces = SemidefiniteSplitter(tearing).assign(W);
    for (int k = 0; k < n; ++k) {
      if (taken[at(k)] == 0.0) continue;
      const int piece = owner_[at(k)];
      const int place = tearing.place(piece, k);
      double& diagonal = dissipation_.pieces[at(piece)].coeffRef(place, place);
      const double left = diagonal - taken[at(k)];
      diagonal = std::abs(left) <= 1e-15 * 16.0 * diagonal ? 0.0 : left;
    }
    for (const SparseMatrix& share : dissipation_.pieces) {
      if (!is_positive_semidefinite(share)) return false;
    }
    dissipation_.between = from_entries(at(n), at(n), between);
    return true;
  }

  void join_storage() {
    torn_columns_.resize(at(count_ + 1));
    if (whole_.E != nullptr) return;
    std::map<std::vector<int>, std::vector<int>> groups;  // owner first, then the others
    for (int k = 0; k < static_cast<int>(owner_.size()); ++k) {
      if (storage_.is_shared[at(k)] == 0) continue;
      std::vector<int> holders = {owner_[at(k)]};
      for (const int piece : storage_.holders[at(k)]) {
        if (piece != owner_[at(k)]) holders.push_back(piece);
      }
      if (std::binary_search(storage_core_.begin(), storage_core_.end(), k)) {
        holders.push_back(count_);
      }
      groups[holders].push_back(k);
    }
    int number = 0;
    for (const auto& [holders, states] : groups) {
      const std::string name = fmt::format("{}{}", draft_.prefix(), number++);
      CutJoint joint{joint::CommonFlow{}, {}};
      for (const int piece : holders) {
        joint.ports.push_back({piece, name});
        const auto causality = piece == holders.front() ? Causality::effort_in : Causality::flow_in;
        const auto dimension = static_cast<int>(states.size());
        int first = between_columns_;
        if (piece == count_) {
          between_ports_.push_back({name, causality, Domain::generic, dimension});
          between_columns_ += dimension;
        } else {
          first = draft_.scalar_ports(piece);
          draft_.add_port(piece, name, causality, dimension);
        }
        for (const int k : states) torn_columns_[at(piece)].emplace(k, first++);
      }
      storage_joints_.push_back(std::move(joint));
    }
  }

  // The couplings of J and R across, one for each connected set of states.
  void join_structure() {
    const int n = whole_.structure.states();
    joined_columns_.resize(at(count_));
    CutEntries across;
    for_entries(whole_.structure.J, [&](int a, int b, double value) {
      if (owner_[at(a)] != owner_[at(b)]) across.emplace_back(a, b, value);
    });
    across_ = from_entries(at(n), at(n), across);
    VertexGroups groups(n);
    const auto join = [&groups](int a, int b, double) { groups.join(a, b); };
    for_entries(across_, join);
    for_entries(dissipation_.between, join);
    std::set<int> joined;
    const auto note = [&joined](int a, int b, double) {
      joined.insert(a);
      joined.insert(b);
    };
    for_entries(across_, note);
    for_entries(dissipation_.between, note);
    std::map<int, std::vector<int>> by_group;
    for (const int k : joined) by_group[groups.root(k)].push_back(k);
    int number = 0;
    for (auto& [root, states] : by_group) {
      if (static_cast<int>(states.size()) > kMostJoined) {
        throw ConfigError("", fmt::format("cannot be cut: {} states of different pieces are all "
                                          "joined by J and R, which is more than {}",
                                          states.size(), kMostJoined));
      }
      std::stable_sort(states.begin(), states.end(),
                       [&](int a, int b) { return owner_[at(a)] < owner_[at(b)]; });
      const std::string name = fmt::format("{}_joint{}", draft_.prefix(), number++);
      StructureJoint joint{states, {}, name};
      for (std::size_t begin = 0; begin < states.size();) {
        std::size_t end = begin;
        const int piece = owner_[at(states[begin])];
        int first = draft_.scalar_ports(piece);
        for (; end < states.size() && owner_[at(states[end])] == piece; ++end) {
          joined_columns_[at(piece)].emplace(states[end], first++);
        }
        draft_.add_port(piece, name, Causality::effort_in, static_cast<int>(end - begin));
        joint.ports.push_back({piece, name});
        begin = end;
      }
      structure_joints_.push_back(std::move(joint));
    }
  }

  void add_interface(Cut& cut) const {
    const std::size_t size = storage_core_.size();
    const int columns = between_columns_;
    Structure structure = Structure::zero(static_cast<int>(size), columns);
    CutEntries G;
    for (const auto& [state, column] : torn_columns_[at(count_)]) {
      G.emplace_back(local(storage_core_, state), column, 1.0);
    }
    structure.G = from_entries(size, at(columns), G);
    Signature signature{whole_.signature.type, {}, between_ports_, {}};
    for (const int k : storage_core_) signature.states.push_back(whole_.signature.states[at(k)]);
    cut.pieces.push_back(
        {"interface",
         std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 storage_split_.core, share_options()),
         storage_core_,
         {}});
  }

  void add_structure_joints(Cut& cut) const {
    int resistors = 0;
    for (const StructureJoint& each : structure_joints_) {
      const auto size = static_cast<int>(each.states.size());
      const SparseMatrix J = sub_matrix(across_, each.states, each.states);
      const SparseMatrix R = sub_matrix(dissipation_.between, each.states, each.states);
      const bool resists = R.nonZeros() > 0;
      joint::SkewGain joint{
          Eigen::MatrixXd::Zero((resists ? 2 : 1) * size, (resists ? 2 : 1) * size)};
      for_entries(J, [&](int a, int b, double value) { joint.gain(a, b) = -value; });
      std::vector<CutPort> ports = each.ports;
      if (resists) {
        for (int k = 0; k < size; ++k) {
          joint.gain(k, size + k) = 1.0;
          joint.gain(size + k, k) = -1.0;
        }
        Structure structure = Structure::zero(0, size);
        structure.S = R;
        LinearPortHamiltonian::Options options = share_options();
        options.allow_active = whole_.is_active;
        ports.push_back({static_cast<int>(cut.pieces.size()), each.name});
        cut.pieces.push_back(
            {fmt::format("resistor{}", resistors++),
             std::make_shared<LinearPortHamiltonian>(
                 Signature{"resistor",
                           {},
                           {{each.name, Causality::effort_in, Domain::generic, size}},
                           {}},
                 std::move(structure), SparseMatrix(0, 0), options),
             {},
             {}});
      }
      cut.joints.push_back({std::move(joint), std::move(ports)});
    }
  }

  struct StructureJoint {
    std::vector<int> states;  ///< by owner
    std::vector<CutPort> ports;
    std::string name;
  };

  const WholeStructure& whole_;
  std::vector<int> owner_;
  int count_;
  Tearing storage_;
  CutDraft draft_;
  std::vector<std::vector<int>> own_;
  SplitMatrix storage_split_;
  std::vector<int> storage_core_;
  SplitDissipation dissipation_;
  std::vector<std::vector<int>> dissipation_inputs_;  ///< by piece: inputs with P or S
  std::vector<std::map<int, int>> torn_columns_;      ///< by piece: column by state
  std::vector<std::map<int, int>> joined_columns_;
  std::vector<CutJoint> storage_joints_;
  std::vector<Port> between_ports_;
  int between_columns_ = 0;
  SparseMatrix across_;
  std::vector<StructureJoint> structure_joints_;
};

}  // namespace

Cut cut_structure(const Signature& signature, const Structure& structure, const SparseMatrix& Q,
                  const LinearPortHamiltonian::Options& options, int parts) {
  const WholeStructure whole{signature, structure, Q, nullptr, options.allow_active};
  int count = 0;
  std::vector<int> owner = state_owners(whole, parts, false, count);
  LinearPortHamiltonian::Options piece_options = options;
  piece_options.default_state.clear();
  piece_options.semidefinite_tolerance = kShareTolerance;
  return StructureCutter(whole, std::move(owner), count)
      .cut([&](int piece, Signature piece_signature, const std::vector<int>&,
               const StructureCutter& cutter) -> std::shared_ptr<const Component> {
        return std::make_shared<LinearPortHamiltonian>(std::move(piece_signature),
                                                       cutter.structure_of(piece),
                                                       cutter.storage_of(piece), piece_options);
      });
}

Cut cut_descriptor(const DescriptorPortHamiltonian& part,
                   const DescriptorPortHamiltonian::Options& options, int parts) {
  const DescriptorForm& form = part.form();
  const auto n = static_cast<int>(form.J.rows()), m = static_cast<int>(form.B.cols());
  Structure structure = Structure::zero(n, m);
  structure.J = form.J;
  structure.R = form.R;
  structure.G = form.B;
  const WholeStructure whole{part.signature(), structure, form.Q, &form.E, options.allow_active};
  DescriptorPortHamiltonian::Options piece_options = options;
  piece_options.default_state.clear();
  piece_options.semidefinite_tolerance = kShareTolerance;
  const auto attempt = [&](bool with_algebraic) {
    int count = 0;
    std::vector<int> owner = state_owners(whole, parts, with_algebraic, count);
    return StructureCutter(whole, std::move(owner), count)
        .cut([&](int piece, Signature signature, const std::vector<int>& states,
                 const StructureCutter& cutter) -> std::shared_ptr<const Component> {
          Structure of_piece = cutter.structure_of(piece);
          return std::make_shared<DescriptorPortHamiltonian>(
              std::move(signature),
              DescriptorForm{.E = sub_matrix(form.E, states, states),
                             .J = std::move(of_piece.J),
                             .R = std::move(of_piece.R),
                             .Q = cutter.storage_of(piece),
                             .B = std::move(of_piece.G)},
              piece_options);
        });
  };
  try {
    return attempt(false);
  } catch (const ConfigError&) {
    // A piece without equations for its algebraic states: these stay with their neighbours.
    return attempt(true);
  }
}

}  // namespace portwave
