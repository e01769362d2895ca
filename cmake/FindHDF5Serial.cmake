# HDF5's C library and its high level part, built without MPI (Debian: libhdf5-dev). Defines
# HDF5Serial::HDF5 and HDF5Serial_FOUND. CMake's own FindHDF5 wants a C compiler.
find_path(HDF5Serial_INCLUDE_DIR NAMES hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5Serial_LIBRARY NAMES hdf5_serial hdf5)
find_library(HDF5Serial_HL_LIBRARY NAMES hdf5_serial_hl hdf5_hl)
mark_as_advanced(HDF5Serial_INCLUDE_DIR HDF5Serial_LIBRARY HDF5Serial_HL_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5Serial
  REQUIRED_VARS HDF5Serial_LIBRARY HDF5Serial_HL_LIBRARY HDF5Serial_INCLUDE_DIR)

if(HDF5Serial_FOUND AND NOT TARGET HDF5Serial::HDF5)
  add_library(HDF5Serial::HDF5 UNKNOWN IMPORTED)
  set_target_properties(HDF5Serial::HDF5 PROPERTIES
    IMPORTED_LOCATION "${HDF5Serial_HL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${HDF5Serial_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${HDF5Serial_LIBRARY}")
endif()
