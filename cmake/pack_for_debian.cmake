# Runs in cpack before the packages are made: what is right in a tree that may be moved, and not in a
# package of Debian.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

# The library lies where the system looks for it.
set(root "${CPACK_TEMPORARY_DIRECTORY}")
file(GLOB programs "${root}/program/usr/bin/*" "${root}/python/usr/lib/python3/dist-packages/portwave/*.so")
foreach(program IN LISTS programs)
  file(RPATH_REMOVE FILE "${program}")
endforeach()

# Follows SOURCE_DATE_EPOCH, if it is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
find_program(gzip gzip REQUIRED)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(changelog "${root}/${component}/usr/share/doc/${package}/changelog")
  file(WRITE "${changelog}"
"portwave (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  execute_process(COMMAND "${gzip}" -9nf "${changelog}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
