# Fails unless the README shows the embedding example as it is compiled.
#   cmake -DROOT=<source dir> [-DEXAMPLE=<file>] -P check_readme_example.cmake
if(NOT EXAMPLE)
  set(EXAMPLE "${ROOT}/examples/embedding/two_oscillators.cpp")
endif()
file(READ "${ROOT}/README.md" readme)
file(READ "${EXAMPLE}" example)
string(FIND "${readme}" "${example}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "README.md does not show ${EXAMPLE} as it is")
endif()

if(readme MATCHES "@@")
  message(FATAL_ERROR "README.md has an unfilled placeholder")
endif()
