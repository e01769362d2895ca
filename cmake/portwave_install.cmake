# Install rules and the package that find_package(portwave) reads. Components: program, library (the shared
# one), c_library, development. A Debian package is made of each (portwave_pack.cmake).
include(CMakePackageConfigHelpers)

set(portwave_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/portwave")

# Targets of a static and of a shared library, which may be installed to the same place.
function(portwave_install_library target)
  get_target_property(type ${target} TYPE)
  set(kind static)
  if(type STREQUAL "SHARED_LIBRARY")
    set(kind shared)
  endif()
  install(TARGETS ${target} portwave_plugin EXPORT portwave_${kind}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  install(EXPORT portwave_${kind} NAMESPACE portwave:: FILE portwaveTargets-${kind}.cmake
    DESTINATION ${portwave_package_dir} COMPONENT development)
endfunction()

portwave_install_library(portwave)
if(TARGET portwave_static)
  portwave_install_library(portwave_static)
endif()

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
  "${CMAKE_CURRENT_LIST_DIR}/FindHDF5Serial.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindLibZip.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/portwave_plugins.cmake"
  DESTINATION ${portwave_package_dir} COMPONENT development)

# For builds without CMake. What the library is made with is private where it is shared, so that only
# `pkg-config --static` names it; a static library alone always needs it.
set(portwave_pc_public "eigen3, nlohmann_json >= 3.9")
set(portwave_pc_private "fmt, tbb, zlib")
set(portwave_pc_libs "-lmetis -pthread")
if(PORTWAVE_HAS_FMI)
  string(APPEND portwave_pc_private ", libzip, pugixml")
endif()
if(HDF5Serial_FOUND)
  string(PREPEND portwave_pc_libs "${HDF5Serial_HL_LIBRARY} ${HDF5Serial_LIBRARY} ")
endif()
if(CMAKE_DL_LIBS)
  string(APPEND portwave_pc_libs " -l${CMAKE_DL_LIBS}")
endif()
set(portwave_pc_flags "-DEIGEN_MPL2_ONLY")
if(PORTWAVE_NATIVE)
  string(APPEND portwave_pc_flags " -march=native")
endif()
if(BUILD_SHARED_LIBS)
  set(portwave_pc_libs_private "${portwave_pc_libs}")
  set(portwave_pc_libs "")
else()
  string(APPEND portwave_pc_public ", ${portwave_pc_private}")
  set(portwave_pc_private "")
  set(portwave_pc_libs_private "")
  string(PREPEND portwave_pc_libs " ")
endif()
# The folder of the file tells where all of it lies, so that the tree can be moved.
cmake_path(SET portwave_pc_folder NORMALIZE "/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH portwave_pc_folder BASE_DIRECTORY "/" OUTPUT_VARIABLE portwave_pc_up)
string(REGEX REPLACE "[^/]+" ".." portwave_pc_up "${portwave_pc_up}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/portwave.pc.in" "${PROJECT_BINARY_DIR}/portwave.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/portwave.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# The C library, which needs nothing else to be built with: a package of its own.
if(TARGET portwave_c)
  set(portwave_c_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/portwave_c")
  install(TARGETS portwave_c EXPORT portwave_c
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c_library NAMELINK_COMPONENT development
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  install(EXPORT portwave_c NAMESPACE portwave:: FILE portwave_cTargets.cmake
    DESTINATION ${portwave_c_package_dir} COMPONENT development)
  configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/portwave_cConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/portwave_cConfig.cmake"
    INSTALL_DESTINATION ${portwave_c_package_dir})
  write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/portwave_cConfigVersion.cmake"
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
  configure_file(
    "${CMAKE_CURRENT_LIST_DIR}/portwave_c.pc.in" "${PROJECT_BINARY_DIR}/portwave_c.pc" @ONLY)
  install(FILES
    "${PROJECT_BINARY_DIR}/portwave_cConfig.cmake"
    "${PROJECT_BINARY_DIR}/portwave_cConfigVersion.cmake"
    DESTINATION ${portwave_c_package_dir} COMPONENT development)
  install(FILES "${PROJECT_BINARY_DIR}/portwave_c.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endif()

# The program, what editors read for completion, and scenarios to begin with.
set(portwave_share "${CMAKE_INSTALL_DATADIR}/portwave")
if(TARGET portwave_cli)
  install(TARGETS portwave_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  if(BUILD_SHARED_LIBS)
    # The tree can be moved here as well.
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
      BASE_DIRECTORY "${CMAKE_INSTALL_FULL_BINDIR}" OUTPUT_VARIABLE portwave_bin_to_lib)
    set_target_properties(portwave_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/${portwave_bin_to_lib}")
  endif()
endif()
install(FILES "${PROJECT_SOURCE_DIR}/docs/reference/scenario.schema.json"
  DESTINATION ${portwave_share} COMPONENT program)
file(GLOB portwave_examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.json"
  "${PROJECT_SOURCE_DIR}/examples/*.urdf")
install(FILES ${portwave_examples} DESTINATION "${portwave_share}/examples" COMPONENT program)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE"
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)
