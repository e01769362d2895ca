# Plugins: shared libraries with types of parts, and the programs that load them. Installed with the
# package.

# portwave_add_plugin(<target> <source>...): a plugin, which takes the code of portwave from the program
# that loads it. Sources say PORTWAVE_PLUGIN(types) { types.add(...); } once.
function(portwave_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE portwave::plugin)
  # As portwave itself is compiled: results do not depend on the compiler's choice.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
endfunction()

# portwave_enable_plugins(<target>): a program that shows its plugins all that they may use.
function(portwave_enable_plugins target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  if(TARGET portwave_subsystems)
    set(library portwave_subsystems)
  else()
    set(library portwave::subsystems)
  endif()
  target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${library}>")
  set_property(TARGET ${target} APPEND PROPERTY
    LINK_LIBRARY_OVERRIDE_${library} WHOLE_ARCHIVE)
endfunction()
