#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A matrix as a parameter: by rows, {{0, 1}, {-1, 0}}, or dense or sparse of Eigen. Empty: not given.
class MatrixParameter {
 public:
  MatrixParameter() = default;
  MatrixParameter(std::initializer_list<std::vector<double>> rows) : rows_(rows) {}
  MatrixParameter(MatrixRows rows) : rows_(std::move(rows)) {}
  MatrixParameter(const Eigen::MatrixXd& matrix);
  MatrixParameter(const SparseMatrix& matrix);

  /// Empty: not given.
  std::optional<ParameterValue> value() const;

 private:
  MatrixRows rows_;
  std::optional<ShapedMatrix> sparse_;
};

/// A matrix of expressions as a parameter, by rows of texts and numbers: {{0, "p3"}, {"-p3", 0}}. Empty: not
/// given.
class ExpressionMatrixParameter {
 public:
  /// An expression, or a number in its place.
  class Entry {
   public:
    Entry(const char* text) : text_(text) {}
    Entry(std::string text) : text_(std::move(text)) {}
    Entry(int number) : Entry(static_cast<double>(number)) {}
    Entry(double number);

    const std::string& text() const { return text_; }

   private:
    std::string text_;
  };

  ExpressionMatrixParameter() = default;
  ExpressionMatrixParameter(std::initializer_list<std::vector<Entry>> rows);
  ExpressionMatrixParameter(ExpressionRows rows) : rows_(std::move(rows)) {}

  const ExpressionRows& rows() const { return rows_; }

 private:
  ExpressionRows rows_;
};

/// A part of a catalogue's type as it is described: a type and parameters, not yet checked. NetworkBuilder
/// takes it, and keeps its parameters, so that they can be changed while the part is stepped. Where a component
/// is expected, as by SystemBuilder, it is built; `description_of` then gives its parameters.
///
/// The functions in <portwave/subsystems/catalogue/parts.hpp> make one for each type of portwave:
///   const CataloguePart wheel = parts::mass({.mass_kg = 2, .ports = 2});
/// Types that a program has added are named here:
///   const CataloguePart coil("solenoid", {{"inductance_H", 0.1}});
class CataloguePart {
 public:
  explicit CataloguePart(std::string type, Parameters parameters = {})
      : type_(std::move(type)), parameters_(std::move(parameters)) {}

  /// Gives a parameter. What is empty counts as not given.
  void give(std::string_view name, double value);
  void give(std::string_view name, int value);
  void give(std::string_view name, bool value);
  void give(std::string_view name, const std::optional<double>& value);
  void give(std::string_view name, const std::optional<int>& value);
  void give(std::string_view name, const std::string& value);
  void give(std::string_view name, const char* value) { give(name, std::string(value)); }
  void give(std::string_view name, const std::vector<double>& value);
  void give(std::string_view name, const MatrixParameter& value);
  void give(std::string_view name, const std::vector<std::string>& value);
  void give(std::string_view name, const ExpressionMatrixParameter& value);
  void give(std::string_view name, const std::vector<NamedNumber>& value);
  /// Given also where the list is empty.
  void give(std::string_view name, const std::vector<Port>& value);
  void give(std::string_view name, const std::vector<ExternalInput>& value);
  void give(std::string_view name, const std::vector<StateVariable>& value);

  const std::string& type() const { return type_; }
  const Parameters& parameters() const { return parameters_; }

  /// Checks the parameters and builds the part. Errors: ConfigError with every defect, `where` being
  /// "/<parameter>", or empty for an unknown type.
  std::unique_ptr<Component> build() const;
  operator std::shared_ptr<const Component>() const { return build(); }

 private:
  void set(std::string_view name, ParameterValue value);

  std::string type_;
  Parameters parameters_;
};

/// The description that a component was built from, with all parameters; none for a component that was built by
/// hand, and where a parameter is a list or a matrix, which components do not keep.
std::optional<CataloguePart> description_of(const Component& part);

}  // namespace portwave
