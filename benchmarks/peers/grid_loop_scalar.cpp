// Compiled without automatic vectorisation.

#include "grid_loop_body.hpp"

namespace portwave::bench {

std::unique_ptr<GridLoop> scalar_grid(const GridSetting& setting) {
  return std::make_unique<Grid<double, false>>(setting);
}

}  // namespace portwave::bench
