#pragma once

namespace portwave {

/// Facet of parts that know how their structure changes, so that it need not be evaluated at two states for every
/// state that it depends on.
class StructureSlopes {
 public:
  virtual ~StructureSlopes() = default;

  /// Whether this one does. Then columns of G and P at ports, S and N are constant.
  virtual bool has_structure_slopes() const = 0;
  /// ∂((J − R)g + (G − P)u)/∂x, g and u held: n×n by columns. `u`: of the scalar ports, then the external ones.
  virtual void structure_slopes(const double* x, const double* g, const double* u,
                                double* slopes) const = 0;
};

/// The facet, or null.
template <class Part>
const StructureSlopes* structure_slopes_of(const Part& part) {
  const auto* const own = dynamic_cast<const StructureSlopes*>(&part);
  return own != nullptr && own->has_structure_slopes() ? own : nullptr;
}

}  // namespace portwave
