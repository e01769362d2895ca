# Debian packages by cpack: the program, the shared library, that for C, what one builds with, and the Python
# package if there is one. `./dev deb` makes them of a build for /usr that has both kinds of library.
if(NOT (BUILD_SHARED_LIBS AND PORTWAVE_STATIC_TOO AND TARGET portwave_cli AND TARGET portwave_c))
  return()
endif()

set(portwave_soversion "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "portwave")
set(CPACK_PACKAGE_CONTACT "The portwave maintainers <maintainers@portwave.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program library c_library development)
if(TARGET portwave_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# Versions that break a library have another name, so a later one of the same name will do.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
# Headers, and the program, belong to the library of just their version.
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_PROGRAM_DEPENDS library)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library c_library)

set(portwave_deb_program portwave)
set(portwave_deb_library libportwave${portwave_soversion})
# A package of its own: its ABI outlives that of the C++ library, and both may be installed in two versions.
get_target_property(portwave_c_soversion portwave_c SOVERSION)
set(portwave_deb_c_library libportwave-c${portwave_c_soversion})
set(portwave_deb_development libportwave-dev)
set(portwave_deb_python python3-portwave)
set(portwave_section_program science)
set(portwave_section_library libs)
set(portwave_section_c_library libs)
set(portwave_section_development libdevel)
set(portwave_section_python python)
set(portwave_what_program "
 The program portwave runs scenario files in JSON. It cuts a system into
 port-Hamiltonian subsystems, couples them by waves, and keeps an account of
 the energy in every step. Scenarios and their schema are included.")
set(portwave_what_library "
 The shared library that the program portwave and other programs in C++ use.")
set(portwave_what_c_library "
 The shared library with the C interface, which holds all of portwave that it
 needs.")
set(portwave_what_development "
 Headers for C++ and C, the static library, and what find_package of CMake
 and pkg-config read.")
set(portwave_what_python "
 The module portwave: scenarios and systems, steppers, ensembles, and parts of
 one's own, with NumPy arrays.")
set(portwave_title_python "co-simulation of port-Hamiltonian subsystems - Python")
set(portwave_title_program "co-simulation of port-Hamiltonian subsystems")
set(portwave_title_library "co-simulation of port-Hamiltonian subsystems - library")
set(portwave_title_c_library "co-simulation of port-Hamiltonian subsystems - C library")
set(portwave_title_development "co-simulation of port-Hamiltonian subsystems - development")

# Only in these packages.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(package ${portwave_deb_${component}})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${portwave_section_${component}})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION
    "${portwave_title_${component}}${portwave_what_${component}}")

  install(FILES "${CMAKE_CURRENT_LIST_DIR}/debian/copyright"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

# Programs and libraries get theirs from dpkg-shlibdeps, which finds the library of this build.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_C_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
# A module is compiled for one minor version of Python.
if(TARGET portwave_python)
  math(EXPR portwave_next_python "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${Python_VERSION_MINOR}~), python3 (<< 3.${portwave_next_python}), python3-numpy")
  # Compiled modules of Python come and go with the package.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${CMAKE_CURRENT_LIST_DIR}/debian/python/postinst;${CMAKE_CURRENT_LIST_DIR}/debian/python/prerm")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS
    "python3-pandas, python3-xarray, python3-matplotlib, python3-scipy, python3-tqdm")
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libeigen3-dev (>= 3.4), nlohmann-json3-dev (>= 3.9), libfmt-dev, libtbb-dev, zlib1g-dev, libmetis-dev, libhdf5-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "portwave, cmake, pkg-config")

set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/pack_for_debian.cmake")
include(CPack)
