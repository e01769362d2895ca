# Plugins: shared libraries with types of parts, and the programs that load them. Installed with the
# package.

# portwave_add_plugin(<target> <source>...): a plugin, which takes the code of portwave from the program
# that loads it. Sources say PORTWAVE_PLUGIN(types) { types.add(...); } once.
function(portwave_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE portwave::plugin)
  # Names of its own stay its own, also where the program has equal ones.
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # As portwave itself is compiled: results do not depend on the compiler's choice.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
endfunction()

# portwave_enable_plugins(<target> [<library>]): a program that shows its plugins all that they may use,
# whether it uses that itself or not. The library is portwave::portwave unless said otherwise.
function(portwave_enable_plugins target)
  set(library portwave::portwave)
  if(ARGC GREATER 1)
    set(library ${ARGV1})
  endif()
  target_link_libraries(${target} PRIVATE ${library})
  get_target_property(kind ${library} TYPE)
  if(kind STREQUAL "SHARED_LIBRARY")
    # It shows all of itself anyway, and is there for the plugins also where the program uses nothing.
    target_link_options(${target} PRIVATE LINKER:--no-as-needed)
    return()
  endif()
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  # An option, because CMake may name a library more than once, and the whole of it may be taken once.
  set(archive "$<TARGET_FILE:${library}>")
  target_link_options(${target} PRIVATE "LINKER:--whole-archive,${archive},--no-whole-archive")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${archive}")
endfunction()
