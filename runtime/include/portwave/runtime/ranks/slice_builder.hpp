#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The slice of another rank has defects.
class SliceDefects : public RankError {
 public:
  using RankError::RankError;
};

/// A system that no process has as a whole: every rank builds the parts that it steps, a *slice*, and the
/// parts *outside* with which these share a coupling. Results are those of one process, bit by bit
/// (docs/decisions/0059-slices.md).
///
/// Parts of the whole are numbered. Slices are runs of numbers, in the order of the ranks; a rank begins with
/// the first part of an island, or a multiple of 64 parts after it.
///
///   SliceBuilder builder(first);
///   for (std::int64_t i = first; i < end; ++i) builder.add(name(i), block);
///   if (first > 0) builder.add_outside(first - 1, name(first - 1), block);
///   …
///   const System slice = builder.build(*ranks);
///   options.ranks = ranks;
///   Stepper stepper(slice, options);
///
/// All ranks give the same step size and method, impedances for the scalar ports of their own slice. Part
/// numbers of `Stepper` are those of the slice; states of parts outside are not known. Energies, reports
/// and the certificate are of the whole, and the part that a certificate names is numbered as in the whole.
class SliceBuilder {
 public:
  /// Within an island, ranks begin at multiples of this number of parts.
  static constexpr int kUnit = 64;

  /// `first_part`: the number of the first part that is added.
  explicit SliceBuilder(std::int64_t first_part) : first_part_(first_part) {}

  /// A part of this rank; the next one has the next number.
  SliceBuilder& add(std::string name, std::shared_ptr<const Component> component,
                    SystemBuilder::PartOptions options = {});
  /// A part of another rank. Those of its ports that share a coupling with parts of this rank are joined
  /// here, as there.
  SliceBuilder& add_outside(std::int64_t number, std::string name,
                            std::shared_ptr<const Component> component);
  /// A coupling of at least one part of this rank.
  SliceBuilder& join(Joint joint, std::vector<std::string> ports);
  SliceBuilder& connect(std::string port_1, std::string port_2) {
    return join(joint::Connection{}, {std::move(port_1), std::move(port_2)});
  }

  /// The defects of this slice by itself.
  Issues check() const;

  /// All ranks call it. The builder is spent afterwards.
  /// Errors: ConfigError with all defects of this slice, as of SystemBuilder::build, `where` counting the
  /// parts outside after all others; resistive ends, whose resistors have no number (add one as a part);
  /// or, on all ranks, slices that do not fit together. SliceDefects where another rank has defects.
  System build(Ranks& ranks);

 private:
  struct Outside {
    std::int64_t number;
    std::string name;
    std::shared_ptr<const Component> component;
  };

  std::int64_t first_part_;
  int own_parts_ = 0, joints_ = 0;
  Issues issues_;
  std::vector<Outside> outside_;
  SystemBuilder builder_;
};

/// The pointer "/subsystems/7/…" of a slice, as in the whole.
Issue placed_in_whole(Issue issue, const System& slice);

/// The range of parts, {first, end}, of a rank's slice where `parts` parts of one island are divided evenly.
std::pair<std::int64_t, std::int64_t> even_slice(std::int64_t parts, int rank, int ranks);

}  // namespace portwave
