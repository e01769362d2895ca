#include "state_structure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <Eigen/Dense>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace {

using portwave::SparseMatrix;
using portwave::Structure;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Every entry is there, whatever its value is.
bool is_full(const SparseMatrix& matrix) {
  return matrix.isCompressed() && matrix.nonZeros() == matrix.rows() * matrix.cols();
}

/// The entries of a full matrix, column by column.
Eigen::Map<const Eigen::MatrixXd> entries_of(const SparseMatrix& matrix) {
  return {matrix.valuePtr(), matrix.rows(), matrix.cols()};
}

SparseMatrix full(int rows, int columns) {
  SparseMatrix out(rows, columns);
  out.reserve(Eigen::VectorXi::Constant(columns, rows));
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) out.insert(i, j) = 0.0;
  }
  out.makeCompressed();
  return out;
}

/// Sound beyond doubt and cheap to see: entries of full matrices in exact pairs, and R diagonal or
/// positive definite.
bool is_plainly_sound(const Structure& structure) {
  if (!is_full(structure.J) || !is_full(structure.R) || !is_full(structure.G)) return false;
  const auto J = entries_of(structure.J), R = entries_of(structure.R), G = entries_of(structure.G);
  if (!J.allFinite() || !R.allFinite() || !G.allFinite()) return false;
  if (J != -J.transpose() || R != R.transpose()) return false;
  if (R.isDiagonal(0.0)) return R.size() == 0 || R.diagonal().minCoeff() >= 0.0;
  return false;
}

}  // namespace

StateStructure::StateStructure(const portwave::Signature& signature, MatrixOfState J,
                               MatrixOfState R, MatrixOfState G)
    : type_(signature.type),
      n_(signature.state_size()),
      m_(signature.wave_size() + signature.input_size()),
      names_(portwave::variable_names(signature)),
      J_(std::move(J)),
      R_(std::move(R)),
      G_(std::move(G)) {}

bool StateStructure::is_constant() const { return !J_.function && !R_.function && !G_.function; }

Structure StateStructure::first(const std::vector<double>& state) const {
  Structure out = Structure::zero(n_, m_);
  std::vector<double> x(state);
  x.resize(static_cast<std::size_t>(n_), 0.0);
  const auto write = [&](const MatrixOfState& from, SparseMatrix& to) {
    if (is_constant()) {  // as sparse as it is
      for (int i = 0; i < from.rows; ++i) {
        for (int j = 0; j < from.columns; ++j) {
          const double value = from.constant[static_cast<std::size_t>(i * from.columns + j)];
          if (value != 0.0) to.insert(i, j) = value;
        }
      }
      to.makeCompressed();
      return;
    }
    to = full(from.rows, from.columns);
    try {
      fill(from, x.data(), to);
    } catch (const std::exception& error) {
      throw portwave::ConfigError(
          "/" + from.name, "\"" + type_ + "\": at " + state_text(x.data()) + ": " + error.what());
    }
  };
  write(J_, out.J);
  write(R_, out.R);
  write(G_, out.G);
  portwave::Issues issues = defects(out);
  for (portwave::Issue& issue : issues) {
    issue.what.insert(
        0, "\"" + type_ + "\": " + (is_constant() ? "" : "at " + state_text(x.data()) + ": "));
  }
  portwave::throw_if_any(std::move(issues));
  return out;
}

portwave::Issues StateStructure::defects(const Structure& structure) const {
  portwave::StructureRules rules;
  rules.names = names_;
  portwave::Issues issues = portwave::validate(structure, n_, m_, rules);
  for (portwave::Issue& issue :
       issues) {  // such parts have no other dissipation, and are never active
    constexpr std::string_view kWhole = "[R P; P^T S]";
    if (!issue.what.starts_with(kWhole)) continue;
    issue.what.replace(0, kWhole.size(), "R");
    issue.what.resize(issue.what.rfind(';'));
  }
  return issues;
}

void StateStructure::fill(const MatrixOfState& from, const double* x, SparseMatrix& to) const {
  Eigen::Map<Eigen::MatrixXd> values(to.valuePtr(), from.rows, from.columns);
  if (!from.function) {
    values = Eigen::Map<const RowMajor>(from.constant.data(), from.rows, from.columns);
    return;
  }
  thread_local std::vector<double> rows;
  rows.assign(static_cast<std::size_t>(from.rows * from.columns), 0.0);
  from.function(x, rows.data());
  values = Eigen::Map<const RowMajor>(rows.data(), from.rows, from.columns);
}

void StateStructure::operator()(const double* x, Structure& out) const {
  if (!is_full(out.J) || !is_full(out.R) || !is_full(out.G)) out = first({x, x + n_});
  fill(J_, x, out.J);
  fill(R_, x, out.R);
  fill(G_, x, out.G);
  if (is_plainly_sound(out)) return;
  const portwave::Issues issues = defects(out);
  if (issues.empty()) return;
  std::string text = "at " + state_text(x);
  for (const portwave::Issue& issue : issues) {
    text += (&issue == &issues.front() ? ": " : "; ") + issue.what;
  }
  throw std::runtime_error(text);
}

std::string StateStructure::state_text(const double* x) const {
  std::string text;
  for (int i = 0; i < std::min(n_, 8); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.6g", x[i]);
    text += (i == 0 ? "" : ", ") + names_[static_cast<std::size_t>(i)] + " = " + number;
  }
  return n_ > 8 ? text + ", ..." : text;
}
