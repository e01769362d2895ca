#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace portwave::cli {

/// An option of `portwave generate KIND`.
struct GenerateOption {
  std::string_view name;        ///< "--blocks"
  std::string_view value;       ///< "N", "X", …: what stands for its value in the help
  std::string_view by_default;  ///< "" : none
  std::string_view summary;
};

/// A kind of network as the command line knows it: its own options, then the common ones.
struct GenerateKind {
  std::string_view name;
  std::string_view summary;
  std::vector<GenerateOption> options;
};

std::span<const GenerateKind> generate_kinds();

}  // namespace portwave::cli
