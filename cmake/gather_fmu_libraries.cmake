# Copies the shared libraries that a library needs, but for those of the system, and the licences of all of them:
#   cmake -DLIBRARY=<file> -DFOLDER=<folder> -DLICENCE=<of portwave> -P gather_fmu_libraries.cmake
cmake_minimum_required(VERSION 3.25)
file(GLOB old "${FOLDER}/*.so.*")
file(REMOVE_RECURSE ${old} "${FOLDER}/licenses")
file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${LIBRARY}"
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  # Every Linux has these.
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|atomic)\\.so")
if(missing)
  message(FATAL_ERROR "not found, and exported FMUs need them: ${missing}")
endif()
configure_file("${LICENCE}" "${FOLDER}/licenses/portwave.txt" COPYONLY)
foreach(library IN LISTS found)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH "${library}" real)
  file(COPY_FILE "${real}" "${FOLDER}/${name}")
  # Debian keeps the licences of a package with its documents. It may list files below / that lie below /usr.
  string(REGEX REPLACE "^/usr/" "/" short "${real}")
  foreach(path IN ITEMS "${real}" "${short}")
    execute_process(COMMAND dpkg-query --search "${path}"
      OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      break()
    endif()
  endforeach()
  if(NOT failed AND owner MATCHES "^([^:, \n]+)")
    set(package "${CMAKE_MATCH_1}")
    file(GLOB notice "/usr/share/doc/${package}/copyright")
    if(notice)
      configure_file("${notice}" "${FOLDER}/licenses/${package}.txt" COPYONLY)
      continue()
    endif()
  endif()
  message(WARNING "no licence was found of ${real}: add it to ${FOLDER}/licenses before you give FMUs away")
endforeach()
# Of what is compiled into it.
foreach(package IN ITEMS libeigen3-dev nlohmann-json3-dev)
  file(GLOB notice "/usr/share/doc/${package}/copyright")
  if(notice)
    configure_file("${notice}" "${FOLDER}/licenses/${package}.txt" COPYONLY)
  endif()
endforeach()
