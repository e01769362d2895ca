# A library that loads plugins shows them all that portwave::subsystems has, and no variables, which the system might
# share with other libraries of the process.
# Usage: cmake -DLIBRARY=<library> -DARCHIVE=<libportwave_subsystems.a> -P check_plugin_symbols.cmake
find_program(READELF readelf REQUIRED)
execute_process(COMMAND "${READELF}" --dyn-syms -W "${LIBRARY}" OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${READELF}" -sW "${ARCHIVE}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)

# Of the form: number: value size type binding visibility section name.
string(REGEX MATCHALL "(FUNC|OBJECT|NOTYPE)[ ]+GLOBAL[ ]+DEFAULT[ ]+[0-9]+ [^ \n]+" lines "${text}")
list(REMOVE_DUPLICATES lines)
set(missing "")
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".* " "" name "${line}")
  math(EXPR count "${count} + 1")
  string(FIND "${shown}" " ${name}\n" place)
  if(place EQUAL -1)
    list(APPEND missing "${name}")
  endif()
endforeach()
if(count LESS 100)
  message(FATAL_ERROR "only ${count} functions were found in ${ARCHIVE}")
endif()
string(REGEX MATCHALL "OBJECT[ ]+UNIQUE[ ]+DEFAULT[ ]+[0-9]+ [^ \n]+" variables "${shown}")
if(missing OR variables)
  list(LENGTH missing many)
  message(FATAL_ERROR "plugins miss ${many} symbols: ${missing}; variables that are shown: ${variables}")
endif()
message(STATUS "${count} functions for plugins, all shown")
