# Checks that the rooms include one another in one direction only:
#   subsystems <- coupling <- runtime
# and inside each of them the folders that are its inner rooms, in the order of the lists below.
# Usage: cmake -DROOT=<source folder> -P check_include_arrows.cmake
cmake_minimum_required(VERSION 3.25)

set(no_threads_no_files "thread|future|fstream|filesystem")
set(only_in_runtime "tbb/|oneapi/|nlohmann/")
set(forbidden_in_subsystems
  "portwave/coupling|portwave/runtime|${only_in_runtime}|(${no_threads_no_files})[>\"]")
set(forbidden_in_coupling
  "portwave/runtime|${only_in_runtime}|(${no_threads_no_files})[>\"]")

set(inner_subsystems
  base matrices core linear descriptor nonlinear stages idle catalogue conformance)
set(inner_coupling method system waves energy impedance network reference)
set(inner_runtime signals parallel ranks step ensemble output report adapters scenario export study generate cli)

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

# check_order(<where> <prefix> <folder>...): a folder includes itself and those before it. `prefix`: of
# their names in includes, a regular expression. The folders lie in FOLDERS_IN.
function(check_order where prefix)
  set(later ${ARGN})
  foreach(folder IN LISTS ARGN)
    list(POP_FRONT later)
    if(NOT later)
      break()
    endif()
    list(JOIN later "|" names)
    set(pattern "^[ \t]*#[ \t]*include[ \t]*[<\"]${prefix}(${names})/")
    set(globs "")
    foreach(place IN LISTS FOLDERS_IN)
      list(APPEND globs "${ROOT}/${place}/${folder}/*.hpp" "${ROOT}/${place}/${folder}/*.cpp")
    endforeach()
    file(GLOB_RECURSE files RELATIVE "${ROOT}" ${globs})
    foreach(file IN LISTS files)
      math(EXPR files_checked "${files_checked} + 1")
      file(STRINGS "${ROOT}/${file}" hits REGEX "${pattern}")
      foreach(line IN LISTS hits)
        math(EXPR violations "${violations} + 1")
        message(NOTICE "${file}: forbidden in ${where}/${folder}: ${line}")
      endforeach()
    endforeach()
  endforeach()
  set(files_checked "${files_checked}" PARENT_SCOPE)
  set(violations "${violations}" PARENT_SCOPE)
endfunction()

# Every folder of a room is in its list.
foreach(room IN ITEMS subsystems coupling runtime)
  foreach(place IN ITEMS "${room}/include/portwave/${room}" "${room}/src")
    file(GLOB folders RELATIVE "${ROOT}/${place}" LIST_DIRECTORIES true "${ROOT}/${place}/*")
    foreach(folder IN LISTS folders)
      if(IS_DIRECTORY "${ROOT}/${place}/${folder}" AND NOT folder IN_LIST inner_${room}
         AND NOT folder STREQUAL "kernels")
        math(EXPR violations "${violations} + 1")
        message(NOTICE "${place}/${folder}: not in the list of folders of ${room}")
      endif()
    endforeach()
  endforeach()
endforeach()

foreach(room IN ITEMS subsystems coupling runtime)
  set(FOLDERS_IN "${room}/include/portwave/${room}" "${room}/src" "${room}")
  check_order(${room} "(portwave/${room}/)?" ${inner_${room}})
endforeach()
set(FOLDERS_IN runtime/src/scenario)
check_order(scenario "scenario/" reader files templates parts settings)
set(FOLDERS_IN runtime/src/output)
check_order(output "output/" files summary recording)
set(FOLDERS_IN runtime/cli)
check_order(cli "" live line verbs study)

if(files_checked EQUAL 0)
  message(FATAL_ERROR "include arrows: no files found under ${ROOT}")
elseif(violations GREATER 0)
  message(FATAL_ERROR "include arrows: ${violations} violations")
endif()
message(STATUS "include arrows: ${files_checked} files, all in order")
