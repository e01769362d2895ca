# cpp-httplib as a library (Debian: libcpp-httplib-dev), which is compiled with TLS and compression, and
# whose header must be read in the same way. Defines CppHttplib::CppHttplib and CppHttplib_FOUND.
find_path(CppHttplib_INCLUDE_DIR NAMES httplib.h)
find_library(CppHttplib_LIBRARY NAMES cpp-httplib)
mark_as_advanced(CppHttplib_INCLUDE_DIR CppHttplib_LIBRARY)
find_package(OpenSSL QUIET)
find_package(ZLIB QUIET)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CppHttplib
  REQUIRED_VARS CppHttplib_LIBRARY CppHttplib_INCLUDE_DIR OPENSSL_FOUND ZLIB_FOUND)

if(CppHttplib_FOUND AND NOT TARGET CppHttplib::CppHttplib)
  add_library(CppHttplib::CppHttplib UNKNOWN IMPORTED)
  set_target_properties(CppHttplib::CppHttplib PROPERTIES
    IMPORTED_LOCATION "${CppHttplib_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CppHttplib_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS
      "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT"
    INTERFACE_LINK_LIBRARIES "OpenSSL::SSL;OpenSSL::Crypto;ZLIB::ZLIB")
endif()
