#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/method/number_range.hpp"
#include "portwave/runtime/adapters/number_array.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// One key of a block in "signals".
struct BlockField {
  enum class Kind {
    signal,   ///< an input: the name of a signal, a quantity "part.state", or a number
    signals,  ///< an array of inputs
    /// Named inputs: an object of them, or an array of inputs that are named u1, u2, …; the names are the
    /// value.
    named_signals,
    text,
    number,
    integer,
    boolean,
    choice,
    numbers,
    matrix,
    pairs,  ///< [[x, y], …] with increasing x
    texts,
    named_values,  ///< an object of numbers, truth values, which count as 0 and 1, texts, and arrays of numbers
  };

  std::string name;
  Kind kind = Kind::number;
  std::string unit = {};
  std::string summary = {};
  bool required = true;
  double default_number = 0.0;            ///< of numbers, integers and booleans; infinite: no bound
  std::vector<std::string> choices = {};  ///< the first is the default
  NumberRange range =
      {};  ///< of numbers and integers, which are from 0 to 10⁶ where it does not say
};

/// The values read for the fields of a block, without inputs.
class BlockValues {
 public:
  using NamedValues = std::map<std::string, std::variant<double, std::string, NumberArray>>;
  using Value = std::variant<double, std::string, std::vector<double>, Eigen::MatrixXd,
                             std::vector<Signal::Knot>, std::vector<std::string>, NamedValues>;

  void set(const std::string& name, Value value) {
    values_.insert_or_assign(name, std::move(value));
  }
  double number(std::string_view name) const { return get<double>(name); }
  int integer(std::string_view name) const { return static_cast<int>(number(name)); }
  bool flag(std::string_view name) const { return number(name) != 0.0; }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::string>& names(std::string_view name) const {
    return get<std::vector<std::string>>(name);
  }
  const std::vector<double>& numbers(std::string_view name) const {
    return get<std::vector<double>>(name);
  }
  const Eigen::MatrixXd& matrix(std::string_view name) const { return get<Eigen::MatrixXd>(name); }
  const std::vector<Signal::Knot>& pairs(std::string_view name) const {
    return get<std::vector<Signal::Knot>>(name);
  }
  const NamedValues& named_values(std::string_view name) const { return get<NamedValues>(name); }
  /// A number that stands for all of them.
  std::uint64_t digest() const;

 private:
  template <class T>
  const T& get(std::string_view name) const {
    return std::get<T>(values_.find(name)->second);
  }
  std::map<std::string, Value, std::less<>> values_;
};

/// A kind of block that scenario files can name: the source of its keys, schema and errors.
struct BlockKind {
  std::string name;
  std::string summary;
  std::vector<BlockField> fields;
  /// `inputs`: the number of signals given. Errors: ConfigError, `where` being "/<field>".
  std::function<block::Handle(const BlockValues& values, int inputs)> make;
};

/// In the order of the documentation. Beside them "signals" takes the kinds of external inputs
/// ("constant", "table", …), which are sampled, and "sensor".
const std::vector<BlockKind>& block_kinds();

/// Appends a user's kind, or replaces one that was added before under the same name: scenarios read from
/// then on have the new one. References into `block_kinds` become invalid. Must not run while another
/// thread reads a scenario.
/// Errors: ConfigError — "/name": it is empty, or that of a kind of portwave's own; "/make": there is
/// no function; "/fields/2": a key without a name, a duplicate, or one that all blocks have.
void add_block_kind(BlockKind kind);

}  // namespace portwave
