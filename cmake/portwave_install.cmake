# Install rules and the package that find_package(portwave) reads.
include(CMakePackageConfigHelpers)

set(portwave_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/portwave")

install(TARGETS portwave EXPORT portwaveTargets)
install(EXPORT portwaveTargets NAMESPACE portwave:: DESTINATION ${portwave_package_dir})

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/portwaveConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/portwaveConfig.cmake"
  INSTALL_DESTINATION ${portwave_package_dir})
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/portwaveConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/portwaveConfig.cmake"
  "${PROJECT_BINARY_DIR}/portwaveConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindMETIS.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/portwave_plugins.cmake"
  DESTINATION ${portwave_package_dir})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})
