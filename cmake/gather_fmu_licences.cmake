# Copies the licences of a library and of the shared libraries that it needs, but for those of the system, to the folder
# licenses beside it:
#   cmake -DLIBRARY=<file> -DFOLDER=<folder> -DLICENCE=<of portwave> -P gather_fmu_licences.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}/licenses")
configure_file("${LICENCE}" "${FOLDER}/licenses/portwave.txt" COPYONLY)
file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${LIBRARY}"
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  # One name may be found at several places, such as in a build folder and in the system.
  CONFLICTING_DEPENDENCIES_PREFIX conflicts
  # Every Linux has these.
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|atomic|asan|tsan|ubsan)\\.so")

# Debian keeps the licences of a package with its documents.
function(copy_notice package)
  file(GLOB notice "/usr/share/doc/${package}/copyright")
  if(notice)
    configure_file("${notice}" "${FOLDER}/licenses/${package}.txt" COPYONLY)
  endif()
endfunction()

foreach(library IN LISTS conflicts_FILENAMES)
  list(GET conflicts_${library} 0 first)
  list(APPEND found "${first}")
endforeach()
foreach(library IN LISTS found)
  file(REAL_PATH "${library}" real)
  # It may list files below / that lie below /usr.
  string(REGEX REPLACE "^/usr/" "/" short "${real}")
  foreach(path IN ITEMS "${real}" "${short}")
    execute_process(COMMAND dpkg-query --search "${path}"
      OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      break()
    endif()
  endforeach()
  set(package "")
  if(NOT failed AND owner MATCHES "^([^:, \n]+)")
    set(package "${CMAKE_MATCH_1}")
  endif()
  if(package AND EXISTS "/usr/share/doc/${package}/copyright")
    copy_notice(${package})
  else()
    message(WARNING "no licence was found of ${real}: add it to ${FOLDER}/licenses before you give FMUs away")
  endif()
endforeach()
foreach(library IN LISTS missing)
  message(WARNING "${library} was not found: add its licence to ${FOLDER}/licenses before you give FMUs away")
endforeach()
# Of what is compiled into it.
foreach(package IN ITEMS libeigen3-dev nlohmann-json3-dev)
  copy_notice(${package})
endforeach()
