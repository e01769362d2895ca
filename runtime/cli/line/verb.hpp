#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace portwave::cli {

/// The defect of a text; empty if there is none.
using Defect = std::function<std::string(const std::string&)>;

/// A whole number from `least` to `most`, in decimal digits and nothing else.
struct IntegerRange {
  std::int64_t least;
  std::int64_t most;

  /// The defect of `text`; empty if there is none. CLI11's own check takes "0x2", " 2" and "010" for 8.
  std::string defect(std::string_view text) const;
};

/// A number from `least` to `most`, written without spaces.
struct RealRange {
  double least;
  double most;

  std::string defect(std::string_view text) const;
};

/// The number in a text without defect.
std::int64_t integer(std::string_view text);
double real(std::string_view text);

/// "3,8," is "3", "8" and "".
std::vector<std::string_view> split_at_commas(std::string_view list);
/// Numbers with a comma between them.
std::string list_defect(std::string_view list, IntegerRange range);
std::string list_defect(std::string_view list, RealRange range);
/// The numbers of lists without defect, in the given order, each once.
std::vector<int> distinct_integers(const std::vector<std::string>& lists);
std::vector<double> distinct_reals(const std::vector<std::string>& lists);

/// A verb being described. Values with a defect are not taken but noted, so that everything wrong
/// with a line is told at once.
class Verb {
 public:
  Verb(CLI::App& app, std::vector<std::string>& defects) : app_(app), defects_(defects) {}

  CLI::App& app() { return app_; }
  /// A verb below this one.
  Verb add(const std::string& name, const std::string& what) {
    return {*app_.add_subcommand(name, what), defects_};
  }

  /// An option with one text; `value` stands for it in the help.
  CLI::Option* text(const std::string& name, const std::string& value, const std::string& what,
                    Defect defect_of, std::function<void(const std::string&)> take);
  /// The same, to be given any number of times; taken when none has a defect.
  CLI::Option* texts(const std::string& name, const std::string& value, const std::string& what,
                     Defect defect_of, std::function<void(const std::vector<std::string>&)> take);
  CLI::Option* integer(const std::string& name, const std::string& what, IntegerRange range,
                       std::function<void(std::int64_t)> take);
  CLI::Option* real(const std::string& name, const std::string& value, const std::string& what,
                    RealRange range, std::function<void(double)> take);
  /// One of some words.
  CLI::Option* choice(const std::string& name, const std::vector<std::string>& words,
                      const std::string& what, std::function<void(std::size_t)> take);
  /// Some of some words, "a,b": their places, in the order given, each once.
  CLI::Option* choices(const std::string& name, const std::string& value,
                       const std::vector<std::string>& words, const std::string& what,
                       std::function<void(std::vector<std::size_t>)> take);
  /// "3,8,20", in the order given, each once.
  CLI::Option* integers(const std::string& name, const std::string& value, const std::string& what,
                        IntegerRange range, std::function<void(std::vector<int>)> take);
  /// "0.01,0.005", likewise.
  CLI::Option* reals(const std::string& name, const std::string& value, const std::string& what,
                     RealRange range, std::function<void(std::vector<double>)> take);
  /// A file or folder to write to.
  CLI::Option* path(const std::string& name, const std::string& value, const std::string& what,
                    std::optional<std::filesystem::path>& path);
  /// Called when the line has reached this verb: returns the defects of its options together.
  void check(std::function<std::vector<std::string>()> defects_of);
  void flag(const std::string& name, const std::string& what, bool& flag) {
    app_.add_flag(name, flag, what);
  }

 private:
  CLI::App& app_;
  std::vector<std::string>& defects_;  ///< of the whole line
};

}  // namespace portwave::cli
