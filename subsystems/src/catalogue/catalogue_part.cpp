#include "portwave/subsystems/catalogue/catalogue_part.hpp"

#include <utility>

#include <fmt/format.h>

namespace portwave {

MatrixParameter::MatrixParameter(const Eigen::MatrixXd& matrix) {
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    std::vector<double>& row = rows_.emplace_back();
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) row.push_back(matrix(i, j));
  }
}

MatrixParameter::MatrixParameter(const SparseMatrix& matrix) {
  ShapedMatrix& shaped = sparse_.emplace();
  shaped.rows = static_cast<int>(matrix.rows());
  shaped.columns = static_cast<int>(matrix.cols());
  for (Eigen::Index j = 0; j < matrix.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator entry(matrix, j); entry; ++entry) {
      shaped.entries.push_back(
          {static_cast<int>(entry.row()), static_cast<int>(entry.col()), entry.value()});
    }
  }
}

std::optional<ParameterValue> MatrixParameter::value() const {
  if (sparse_) return *sparse_;
  if (rows_.empty()) return std::nullopt;
  return rows_;
}

ExpressionMatrixParameter::Entry::Entry(double number) : text_(fmt::format("{}", number)) {}

ExpressionMatrixParameter::ExpressionMatrixParameter(
    std::initializer_list<std::vector<Entry>> rows) {
  for (const std::vector<Entry>& row : rows) {
    std::vector<std::string>& own = rows_.emplace_back();
    for (const Entry& entry : row) own.push_back(entry.text());
  }
}

void CataloguePart::set(std::string_view name, ParameterValue value) {
  parameters_.insert_or_assign(std::string(name), std::move(value));
}

void CataloguePart::give(std::string_view name, double value) { set(name, value); }
void CataloguePart::give(std::string_view name, int value) { set(name, value); }
void CataloguePart::give(std::string_view name, bool value) { set(name, value); }
void CataloguePart::give(std::string_view name, const std::optional<double>& value) {
  if (value) set(name, *value);
}
void CataloguePart::give(std::string_view name, const std::optional<int>& value) {
  if (value) set(name, *value);
}
void CataloguePart::give(std::string_view name, const std::string& value) {
  if (!value.empty()) set(name, value);
}
void CataloguePart::give(std::string_view name, const std::vector<double>& value) {
  if (!value.empty()) set(name, value);
}
void CataloguePart::give(std::string_view name, const MatrixParameter& value) {
  if (auto own = value.value()) set(name, *std::move(own));
}
void CataloguePart::give(std::string_view name, const std::vector<std::string>& value) {
  if (!value.empty()) set(name, value);
}
void CataloguePart::give(std::string_view name, const ExpressionMatrixParameter& value) {
  if (!value.rows().empty()) set(name, value.rows());
}
void CataloguePart::give(std::string_view name, const std::vector<NamedNumber>& value) {
  if (!value.empty()) set(name, value);
}
void CataloguePart::give(std::string_view name, const std::vector<Port>& value) {
  set(name, value);
}
void CataloguePart::give(std::string_view name, const std::vector<ExternalInput>& value) {
  set(name, value);
}
void CataloguePart::give(std::string_view name, const std::vector<StateVariable>& value) {
  set(name, value);
}

std::unique_ptr<Component> CataloguePart::build() const { return make_part(type_, parameters_); }

}  // namespace portwave
