#include "portwave/coupling/system/cut.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "system/cut_pieces.hpp"

namespace portwave {
namespace {

bool is_identity(const SparseMatrix& M, double factor) {
  SparseMatrix identity(M.rows(), M.cols());
  identity.setIdentity();
  return M.rows() == M.cols() && SparseMatrix(M - factor * identity).norm() == 0.0;
}

/// M, D, K and B of what descriptor_form made; nothing for other matrices.
std::optional<SecondOrderForm> second_order_form(const DescriptorForm& form) {
  const Eigen::Index size = form.E.rows(), n = size / 2;
  if (size == 0 || size % 2 != 0) return std::nullopt;
  const auto block = [n](const SparseMatrix& M, Eigen::Index row, Eigen::Index column) {
    return SparseMatrix(
               SparseMatrix(M.middleCols(column * n, n)).transpose().middleCols(row * n, n))
        .transpose()
        .eval();
  };
  const auto is_zero = [](const SparseMatrix& M) { return (M.coeffs() == 0.0).all(); };
  const bool fits = is_identity(block(form.E, 0, 0), 1.0) && is_zero(block(form.E, 0, 1)) &&
                    is_zero(block(form.E, 1, 0)) && is_identity(block(form.J, 0, 1), 1.0) &&
                    is_zero(block(form.J, 0, 0)) && is_zero(block(form.R, 0, 0)) &&
                    is_zero(block(form.R, 0, 1)) && is_identity(block(form.Q, 1, 1), 1.0) &&
                    is_zero(block(form.Q, 0, 1)) && is_zero(block(form.Q, 1, 0)) &&
                    is_zero(SparseMatrix(form.B.topRows(n)));
  if (!fits) return std::nullopt;
  return SecondOrderForm{.M = block(form.E, 1, 1),
                         .D = block(form.R, 1, 1) - block(form.J, 1, 1),
                         .K = block(form.Q, 0, 0),
                         .B = form.B.bottomRows(n)};
}

// u0 and its copy: what the pieces ask of the port comes back at it, e.g. e0 = e of each, f0 = Σ f.
std::unique_ptr<Subsystem> spread_port(const Port& port) {
  const int d = port.dimension;
  Signature signature{"port", {}, {port, {"pieces", Causality::effort_in, Domain::generic, d}}, {}};
  Structure structure = Structure::zero(0, 2 * d);
  CutEntries N;
  for (int k = 0; k < d; ++k) {
    N.emplace_back(k, d + k, -1.0);
    N.emplace_back(d + k, k, 1.0);
  }
  structure.N.setFromTriplets(N.begin(), N.end());
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 SparseMatrix(0, 0));
}

}  // namespace

SparseMatrix from_entries(std::size_t rows, std::size_t columns, const CutEntries& entries) {
  return sparse_matrix(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns),
                       entries);
}

SparseMatrix sub_matrix(const SparseMatrix& M, const std::vector<int>& rows,
                        const std::vector<int>& columns) {
  std::map<int, int> place;
  for (std::size_t i = 0; i < rows.size(); ++i) place.emplace(rows[i], static_cast<int>(i));
  CutEntries entries;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (SparseMatrix::InnerIterator it(M, columns[j]); it; ++it) {
      const auto row = place.find(static_cast<int>(it.row()));
      if (row == place.end()) continue;
      entries.emplace_back(row->second, static_cast<int>(j), it.value());
    }
  }
  return from_entries(rows.size(), columns.size(), entries);
}

int without_empty_parts(std::vector<int>& part, int parts) {
  std::vector<int> number(at(parts), -1);
  for (const int each : part) number[at(each)] = 0;
  int count = 0;
  for (int& each : number) {
    if (each == 0) each = count++;
  }
  for (int& each : part) each = number[at(each)];
  return count;
}

CutDraft::CutDraft(const Signature& whole, int pieces, const std::vector<std::vector<int>>& columns)
    : whole_(whole), ports_(at(pieces)), inputs_(at(pieces)), prefix_("cut") {
  const auto is_taken = [&whole](const std::string& prefix) {
    return std::any_of(whole.ports.begin(), whole.ports.end(),
                       [&](const Port& port) { return port.name.starts_with(prefix); });
  };
  while (is_taken(prefix_)) prefix_ += '_';
  int first = 0;
  for (std::size_t p = 0; p < whole.ports.size(); ++p) {
    const Port& port = whole.ports[p];
    std::set<int> touched;
    for (int k = 0; k < port.dimension; ++k) {
      touched.insert(columns[at(first + k)].begin(), columns[at(first + k)].end());
    }
    if (touched.empty()) touched.insert(0);
    for (const int piece : touched) ports_[at(piece)].push_back({port, first});
    if (touched.size() == 1) {
      places_.push_back({*touched.begin(), port.name});
    } else {
      places_.push_back({-1, port.name});
      spread_.push_back({static_cast<int>(p), {touched.begin(), touched.end()}});
    }
    first += port.dimension;
  }
  for (int input = 0; input < whole.input_size(); ++input) {
    const std::vector<int>& touched = columns[at(first + input)];
    if (touched.empty()) inputs_[0].push_back(input);
    for (const int piece : touched) inputs_[at(piece)].push_back(input);
  }
}

std::vector<int> CutDraft::columns_of(int piece) const {
  std::vector<int> columns;
  for (const Own& own : ports_[at(piece)]) {
    for (int k = 0; k < own.port.dimension; ++k) {
      columns.push_back(own.first < 0 ? -1 : own.first + k);
    }
  }
  for (const int input : inputs_[at(piece)]) columns.push_back(whole_.wave_size() + input);
  return columns;
}

void CutDraft::add_port(int piece, const std::string& name, Causality causality, int dimension) {
  ports_[at(piece)].push_back({{name, causality, Domain::generic, dimension}, -1});
}

int CutDraft::scalar_ports(int piece) const {
  int count = 0;
  for (const Own& own : ports_[at(piece)]) count += own.port.dimension;
  return count;
}

Signature CutDraft::signature(int piece, const std::string& type,
                              std::vector<StateVariable> states) const {
  Signature signature{type, std::move(states), {}, {}};
  for (const Own& own : ports_[at(piece)]) signature.ports.push_back(own.port);
  for (const int input : inputs_[at(piece)]) {
    signature.inputs.push_back(whole_.inputs[at(input)]);
  }
  return signature;
}

void CutDraft::finish(Cut& cut) const {
  cut.ports = places_;
  for (const Spread& spread : spread_) {
    const Port& port = whole_.ports[at(spread.port)];
    const int piece = static_cast<int>(cut.pieces.size());
    cut.ports[at(spread.port)].piece = piece;
    cut.pieces.push_back({fmt::format("port{}", spread.port), spread_port(port), {}, {}});
    // u of each piece is that of the port; what they answer goes back: u = −Ĉ y, by components.
    const int d = port.dimension, count = static_cast<int>(spread.pieces.size());
    joint::SkewGain joint{Eigen::MatrixXd::Zero((count + 1) * d, (count + 1) * d)};
    std::vector<CutPort> ports = {{piece, "pieces"}};
    for (int i = 1; i <= count; ++i) {
      ports.push_back({spread.pieces[at(i - 1)], port.name});
      for (int k = 0; k < d; ++k) {
        joint.gain(i * d + k, k) = -1.0;
        joint.gain(k, i * d + k) = 1.0;
      }
    }
    cut.joints.push_back({std::move(joint), std::move(ports)});
  }
}

Cut cut_part(const Component& part, int parts) {
  const Signature& whole = part.signature();
  const auto fail = [](std::string what) { throw ConfigError("", std::move(what)); };
  if (parts < 1) fail(fmt::format("must be cut into 1 part or more, got {}", parts));
  if (parts > whole.state_size()) {
    fail(fmt::format("cannot be cut into {} parts: it has {} states", parts, whole.state_size()));
  }
  if (const auto* const linear = dynamic_cast<const LinearPortHamiltonian*>(&part)) {
    return cut_structure(whole, linear->structure(), linear->Q(), linear->options(), parts);
  }
  const auto* const descriptor = dynamic_cast<const DescriptorPortHamiltonian*>(&part);
  if (descriptor == nullptr) {
    fail(
        fmt::format("{} cannot be cut: it is not given by matrices of second_order_system, "
                    "linear_port_hamiltonian or descriptor_port_hamiltonian",
                    whole.type));
  }
  if (descriptor->second_order() != nullptr) {
    return cut_second_order(*descriptor, *descriptor->second_order(), parts);
  }
  if (const auto form = second_order_form(descriptor->form())) {
    return cut_second_order(*descriptor, *form, parts);
  }
  return cut_descriptor(*descriptor, descriptor->options(), parts);
}

void add_pieces(SystemBuilder& builder, const std::string& name, const Component& whole,
                const Cut& cut, const SystemBuilder::PartOptions& options) {
  const std::vector<double> initial =
      options.initial_state.empty() ? whole.default_state() : options.initial_state;
  CutName names{name, whole.signature(), 0, static_cast<int>(cut.pieces.size()), {}, {}, {}};
  for (const Cut::Place& place : cut.states) names.states.push_back({place.piece, place.state});
  for (const CutPort& port : cut.ports) names.ports.push_back(path_of(name, cut, port));
  for (const CutPiece& piece : cut.pieces) names.copies.push_back(piece.states);
  builder.begin_cut(std::move(names));
  for (const CutPiece& piece : cut.pieces) {
    SystemBuilder::PartOptions own;
    own.substeps = options.substeps;
    own.integrator = options.integrator;
    own.damping.theta = options.damping.theta;  // states are refused: pieces have others
    for (const int state : piece.states) own.initial_state.push_back(initial[at(state)]);
    for (const int input : piece.inputs) {
      const auto given = options.inputs.find(whole.signature().inputs[at(input)].name);
      if (given != options.inputs.end()) own.inputs.insert(*given);
    }
    builder.add(name + "/" + piece.name, piece.component, std::move(own));
  }
}

void join_pieces(SystemBuilder& builder, const std::string& name, const Cut& cut) {
  for (const CutJoint& each : cut.joints) {
    std::vector<std::string> ports;
    for (const CutPort& port : each.ports) ports.push_back(path_of(name, cut, port));
    builder.join(each.joint, std::move(ports));
  }
}

std::string path_of(const std::string& name, const Cut& cut, const CutPort& port) {
  return fmt::format("{}/{}.{}", name, cut.pieces[at(port.piece)].name, port.port);
}

}  // namespace portwave
