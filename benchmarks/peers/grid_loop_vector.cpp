#include "grid_loop_body.hpp"

namespace portwave::bench {

std::unique_ptr<GridLoop> vector_grid(const GridSetting& setting) {
  return std::make_unique<Grid<Four, false>>(setting);
}
std::unique_ptr<GridLoop> vector_series_grid(const GridSetting& setting) {
  return std::make_unique<Grid<Four, true>>(setting);
}

}  // namespace portwave::bench
