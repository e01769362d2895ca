# Comfort for a build of portwave itself: build type, output folder, ccache, mold.
# A project that adds portwave as a subdirectory keeps its own choices.

get_property(portwave_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT portwave_multi_config)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

find_program(PORTWAVE_CCACHE ccache)
mark_as_advanced(PORTWAVE_CCACHE)
if(PORTWAVE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness settings let ccache work with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${PORTWAVE_CCACHE}")
endif()
if(PORTWAVE_CCACHE AND PORTWAVE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC tidies its memory less often: a tenth of the time for a fifth more memory.
  add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
endif()

find_program(PORTWAVE_MOLD mold)
mark_as_advanced(PORTWAVE_MOLD)
if(PORTWAVE_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold PORTWAVE_LINKS_WITH_MOLD)
  if(PORTWAVE_LINKS_WITH_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
