# What every target of portwave shares.

# Settings that stay inside portwave: warnings, floating point, version, hidden names.
function(portwave_target_defaults target)
  # What <portwave/subsystems/base/export.hpp> marks is seen from outside a shared library.
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Never fuse a multiply and an add: results must not depend on the compiler's choice. GCC does it
  # unasked wherever the target can, on AArch64 always.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough -Wundef)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wduplicated-cond -Wlogical-op)
    # GCC 12 reports these wrongly in std::string and in inlined Eigen code.
    target_compile_options(${target} PRIVATE
      -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds
      -Wno-error=maybe-uninitialized -Wno-error=free-nonheap-object)
  endif()
  if(PORTWAVE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  target_compile_definitions(${target} PRIVATE PORTWAVE_VERSION="${PROJECT_VERSION}")
endfunction()

# portwave_check_sve(): PORTWAVE_COMPILES_SVE says whether the compiler has vectors of SVE whose length it
# knows, and operators for them.
set(PORTWAVE_SVE -march=armv8.2-a+sve)
function(portwave_check_sve)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS "${PORTWAVE_SVE} -msve-vector-bits=256")
  check_cxx_source_compiles("
    #include <arm_sve.h>
    using Native = svfloat64_t __attribute__((arm_sve_vector_bits(256)));
    Native choose(Native a, Native b) { return a <= b ? -a : a * b; }
    int main() {}" PORTWAVE_COMPILES_SVE)
endfunction()

# portwave_kernels(<target>): compiles <folder>/src/kernels/*.cpp once per instruction set, each into a
# namespace of its own; instruction_set.hpp knows them all and says which one runs. They fuse multiply
# and add where they say so, and nowhere else, so all give the same bits.
function(portwave_kernels target)
  file(GLOB kernels CONFIGURE_DEPENDS src/kernels/*.cpp)
  set(names baseline)
  set(flags_baseline "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND names v3 v4)
    set(flags_v3 -march=x86-64-v3)
    set(flags_v4 -march=x86-64-v4)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
      # Otherwise small arrays of vectors are copied in halves of 16 bytes.
      list(APPEND flags_v3 -mmove-max=256 -mstore-max=256)
      list(APPEND flags_v4 -mmove-max=512 -mstore-max=512)
    endif()
    target_compile_definitions(${target} PRIVATE PORTWAVE_X86_64_KERNELS)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    portwave_check_sve()
    if(PORTWAVE_COMPILES_SVE)
      list(APPEND names sve256 sve512)
      set(flags_sve256 ${PORTWAVE_SVE} -msve-vector-bits=256)
      set(flags_sve512 ${PORTWAVE_SVE} -msve-vector-bits=512)
      target_compile_definitions(${target} PRIVATE PORTWAVE_SVE_KERNELS)
    endif()
  endif()
  foreach(name IN LISTS names)
    set(objects ${target}_kernels_${name})
    add_library(${objects} OBJECT ${kernels})
    target_compile_features(${objects} PRIVATE cxx_std_20)
    target_include_directories(${objects} PRIVATE
      "${CMAKE_CURRENT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/include"
      "${PROJECT_SOURCE_DIR}/subsystems/include")
    portwave_target_defaults(${objects})
    target_compile_options(${objects} PRIVATE ${flags_${name}} -O3 -Wno-psabi -Wno-ignored-attributes)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # It says so when it does not vectorise a loop that may be.
      target_compile_options(${objects} PRIVATE -Wno-pass-failed)
    endif()
    target_compile_definitions(${objects} PRIVATE PORTWAVE_ISA=${name})
    if(PORTWAVE_LIBFUZZER)
      target_compile_options(${objects} PRIVATE -O1 -fno-sanitize=all)  # as in portwave_add_room
    endif()
    portwave_unity(${objects} ${kernels})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(GLOBAL APPEND PROPERTY PORTWAVE_OBJECTS $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# portwave_unity(<target> [SIZE <count>] <source>...): compiles the sources of one folder together, at most
# `count` of them, which parses the headers of Eigen and JSON once per folder instead of once per file. What
# stands in an anonymous namespace needs another name in each file of a folder: in the catalogue
# `build_<part>` and, around what would be alike in two parts (State, kPosition), a namespace of the part.
# Tests have a namespace for each file.
function(portwave_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SIZE" "")
  if(NOT PORTWAVE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes a source that is included for a header, whose types may be used elsewhere.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    if(NOT name IN_LIST PORTWAVE_COMPILE_ALONE)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      if(arg_SIZE)
        list(APPEND of_${group} "${source}")
        list(LENGTH of_${group} count)
        math(EXPR group_number "(${count} - 1) / ${arg_SIZE}")
        string(APPEND group "_${group_number}")
      endif()
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${group}")
    endif()
  endforeach()
endfunction()

# portwave_cheap_code(<target> [<configuration>...]): code that is built to be checked or to run once. In
# RelWithDebInfo, or those build types, it is optimised little, and the compiler is done in two thirds of
# the time.
function(portwave_cheap_code target)
  set(configurations RelWithDebInfo)
  if(ARGN)
    set(configurations ${ARGN})
  endif()
  list(JOIN configurations "," list)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:${list}>:-O1>")
endfunction()

# portwave_precompile(<target> <header>...): standard headers are added to the list.
function(portwave_precompile target)
  if(PORTWAVE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      ${ARGN} <algorithm> <cmath> <memory> <span> <string> <string_view> <vector>)
  endif()
endfunction()

# portwave_precompile_like(<target> <owner>): with what is precompiled for another program of the same
# compile options.
function(portwave_precompile_like target owner)
  if(PORTWAVE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

function(portwave_library_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE
    "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/src")
  portwave_target_defaults(${target})
  portwave_unity(${target} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY PORTWAVE_OBJECTS $<TARGET_OBJECTS:${target}>)
  if(PORTWAVE_NATIVE)
    # Public, because the instruction set decides how Eigen aligns its objects.
    target_compile_options(${target} PUBLIC -march=native)
    target_compile_definitions(${target} PRIVATE PORTWAVE_NATIVE)
  endif()
endfunction()

# portwave_add_room(<room>): the room of the calling folder, a static library that tests and the program
# of this build link as portwave::<room>. portwave_gather makes of all rooms the library for users.
# Sources are found by name, so a new file needs no edit here:
#   include/portwave/<room>/**.hpp   headers for the other rooms, and for users unless they are INTERNAL
#   include/portwave/*.hpp           what users include: <portwave/portwave.hpp>, <portwave/extend/…>
#   src/**.cpp, catalogue/**.cpp     sources
# portwave_add_room(<room> [APART <folder>] [LEFT_OUT <pattern>] [OUTSIDE_STEPS <folder>...]
# [INTERNAL <header or folder>...]): the sources of the folder APART are left to another library; those whose
# path without its extension ends in the pattern LEFT_OUT are not compiled. Those OUTSIDE_STEPS, which no step runs, are optimised
# little, as portwave_<room>_outside_steps. Those headers, named from include/portwave/<room>, are for the other
# rooms only; they are not installed, so no header that is may include them (check_installed_headers.cmake).
function(portwave_add_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "APART;LEFT_OUT" "OUTSIDE_STEPS;INTERNAL")
  set(target portwave_${room})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cpp catalogue/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/src/kernels/")
  if(arg_APART)
    list(FILTER sources EXCLUDE REGEX "/${arg_APART}/")
  endif()
  if(arg_LEFT_OUT)
    list(FILTER sources EXCLUDE REGEX "/(${arg_LEFT_OUT})\\.cpp$")
  endif()
  set(outside ${sources})
  list(JOIN arg_OUTSIDE_STEPS "|" folders)
  list(FILTER outside INCLUDE REGEX "${CMAKE_CURRENT_SOURCE_DIR}/(${folders})/")
  if(arg_OUTSIDE_STEPS)
    list(REMOVE_ITEM sources ${outside})
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/portwave/*.hpp)
  if(NOT sources)
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp")
    file(CONFIGURE OUTPUT "${sources}" CONTENT "// A room of headers only.\n")
  endif()

  add_library(${target} STATIC ${sources})
  add_library(portwave::${room} ALIAS ${target})
  # Compiled once per instruction set, never alone.
  list(FILTER headers EXCLUDE REGEX "/kernels/")
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}/include" FILES ${headers})
  portwave_library_defaults(${target} ${sources})
  if(arg_OUTSIDE_STEPS)
    add_library(${target}_outside_steps OBJECT ${outside})
    target_include_directories(${target}_outside_steps PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/include")
    portwave_library_defaults(${target}_outside_steps ${outside})
    portwave_cheap_code(${target}_outside_steps Release RelWithDebInfo)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_outside_steps>)
  endif()
  if(PORTWAVE_LIBFUZZER AND NOT room STREQUAL runtime)
    # What reads is in runtime. The others are checked in the preset asan; with all checks it would take
    # Clang three times as long to build the fuzz targets.
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()

  foreach(header IN LISTS arg_INTERNAL)
    list(FILTER headers EXCLUDE REGEX "/include/portwave/${room}/${header}")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY PORTWAVE_HEADERS ${headers})
  set_property(GLOBAL APPEND PROPERTY PORTWAVE_INCLUDES "${CMAKE_CURRENT_SOURCE_DIR}/include")
endfunction()

# portwave_add_library(<name> <pattern>): a further static library portwave::<name> from a room, whose
# headers are among those of the room.
function(portwave_add_library name pattern)
  set(target portwave_${name})
  file(GLOB sources CONFIGURE_DEPENDS ${pattern})
  add_library(${target} STATIC ${sources})
  add_library(portwave::${name} ALIAS ${target})
  portwave_library_defaults(${target} ${sources})
endfunction()

# portwave_gather(<target> STATIC|SHARED): all rooms as one library, which users link. It compiles
# nothing: objects for both kinds are the same.
function(portwave_gather target kind)
  get_property(objects GLOBAL PROPERTY PORTWAVE_OBJECTS)
  get_property(headers GLOBAL PROPERTY PORTWAVE_HEADERS)
  get_property(includes GLOBAL PROPERTY PORTWAVE_INCLUDES)
  add_library(${target} ${kind} ${objects})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${includes} FILES ${headers})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PUBLIC EIGEN_MPL2_ONLY)
  if(PORTWAVE_NATIVE)
    target_compile_options(${target} PUBLIC -march=native)
  endif()
  # The public headers include those of Eigen and of JSON, and no others.
  target_link_libraries(${target}
    PUBLIC Eigen3::Eigen nlohmann_json::nlohmann_json
    PRIVATE fmt::fmt TBB::tbb Threads::Threads ZLIB::ZLIB METIS::METIS ${CMAKE_DL_LIBS}
      $<$<BOOL:${HDF5Serial_FOUND}>:HDF5Serial::HDF5>
      $<$<BOOL:${PORTWAVE_HAS_FMI}>:LibZip::LibZip> $<$<BOOL:${PORTWAVE_HAS_FMI}>:pugixml::pugixml>)
  # Before 1.0 each minor version may change the interface.
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME portwave EXPORT_NAME portwave LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    VERIFY_INTERFACE_HEADER_SETS OFF)
  if(kind STREQUAL "SHARED")
    # Calls within the library are direct, as they are in a program.
    target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
    if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
  endif()
endfunction()
