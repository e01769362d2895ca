# Checks that the rooms include one another in one direction only:
#   subsystems <- coupling <- runtime
# Usage: cmake -DROOT=<source folder> -P check_include_arrows.cmake
cmake_minimum_required(VERSION 3.25)

set(no_threads_no_files "thread|future|fstream|filesystem")
set(only_in_runtime "tbb/|oneapi/|nlohmann/")
set(forbidden_in_subsystems
  "portwave/coupling|portwave/runtime|${only_in_runtime}|(${no_threads_no_files})[>\"]")
set(forbidden_in_coupling
  "portwave/runtime|${only_in_runtime}|(${no_threads_no_files})[>\"]")

set(files_checked 0)
set(violations 0)

foreach(room IN ITEMS subsystems coupling)
  set(pattern "^[ \t]*#[ \t]*include[ \t]*[<\"](${forbidden_in_${room}})")
  file(GLOB_RECURSE files RELATIVE "${ROOT}"
    "${ROOT}/${room}/*.hpp" "${ROOT}/${room}/*.h" "${ROOT}/${room}/*.cpp" "${ROOT}/${room}/*.ipp")
  foreach(file IN LISTS files)
    math(EXPR files_checked "${files_checked} + 1")
    file(STRINGS "${ROOT}/${file}" hits REGEX "${pattern}")
    if(NOT hits)
      continue()
    endif()
    # Only now the line numbers. Characters that CMake lists treat specially are blanked.
    file(READ "${ROOT}/${file}" text)
    string(REGEX REPLACE "[][;\\]" " " text "${text}")
    string(REPLACE "\n" ";" lines "${text}")
    set(number 0)
    foreach(line IN LISTS lines)
      math(EXPR number "${number} + 1")
      if(line MATCHES "${pattern}")
        math(EXPR violations "${violations} + 1")
        message(NOTICE "${file}:${number}: forbidden in ${room}: ${line}")
      endif()
    endforeach()
  endforeach()
endforeach()

if(files_checked EQUAL 0)
  message(FATAL_ERROR "include arrows: no files found under ${ROOT}")
elseif(violations GREATER 0)
  message(FATAL_ERROR "include arrows: ${violations} forbidden includes")
endif()
message(STATUS "include arrows: ${files_checked} files, all in order")
