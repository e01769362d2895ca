#include "robot/robot_file.hpp"

#include <string_view>

#ifdef PORTWAVE_URDF
#include <tinyxml2.h>
#endif

#include "robot/mjcf.hpp"
#include "robot/urdf.hpp"

namespace portwave::cli {

Robot read_robot(const std::string& text) {
#ifdef PORTWAVE_URDF
  tinyxml2::XMLDocument document;
  document.Parse(text.data(), text.size());
  const tinyxml2::XMLElement* const root = document.RootElement();
  if (root != nullptr && std::string_view(root->Name()) == "mujoco") return read_mjcf(text);
#endif
  return read_urdf(text);
}

}  // namespace portwave::cli
