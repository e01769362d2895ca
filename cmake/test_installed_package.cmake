# Installs a finished build into a scratch prefix, then configures, builds and runs a consumer; then the
# example of a plugin, with the installed program, and with programs that load it; then a consumer in C. At
# last it configures, as far as that goes without compiling all again, projects that build portwave along.
# Needs BUILD_DIR CONSUMER_DIR PLUGIN_DIR SCRATCH_DIR CONFIG GENERATOR C_COMPILER CXX_COMPILER CXX_FLAGS
# VERSION SOURCE_DIR SCENARIO, and for the Python package PYTHON PYTHON_DIR.
cmake_minimum_required(VERSION 3.25)

set(prefix "${SCRATCH_DIR}/prefix")
set(build "${SCRATCH_DIR}/build")
file(REMOVE_RECURSE "${SCRATCH_DIR}")

function(step name)
  message(STATUS "installed_package: ${name}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "installed_package: ${name} failed (${result})")
  endif()
endfunction()

step("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${prefix}")
set(options -G "${GENERATOR}" "-DCMAKE_BUILD_TYPE=${CONFIG}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
  "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_PREFIX_PATH=${prefix}")
step("configure the consumer" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${build}" ${options}
  "-DPORTWAVE_VERSION=${VERSION}")
step("build the consumer" "${CMAKE_COMMAND}" --build "${build}" --config "${CONFIG}")
step("run the consumer" "${build}/bin/consumer")

# As the page of the example says, beside the scenario.
file(COPY "${PLUGIN_DIR}/" DESTINATION "${SCRATCH_DIR}/plugin")
set(plugin_build "${SCRATCH_DIR}/plugin/build")
set(scenario "${SCRATCH_DIR}/plugin/solenoid.json")
step("configure the plugin" "${CMAKE_COMMAND}" -S "${SCRATCH_DIR}/plugin" -B "${plugin_build}" ${options})
step("build the plugin" "${CMAKE_COMMAND}" --build "${plugin_build}" --config "${CONFIG}")
set(plugin "${plugin_build}/libsolenoid.so")
if(EXISTS "${prefix}/bin/portwave")
  step("test the plugin" "${CMAKE_CTEST_COMMAND}" --test-dir "${plugin_build}" -C "${CONFIG}"
    --output-on-failure)
  step("run its scenario" "${prefix}/bin/portwave" run "${scenario}" --allow-plugins --steps 100)
endif()
step("load it from a program" "${build}/bin/plugin_host" "${plugin}" "${scenario}")

message(STATUS "installed_package: a program that does not offer portwave to plugins")
execute_process(COMMAND "${build}/bin/poor_plugin_host" "${plugin}" "${scenario}"
  RESULT_VARIABLE result OUTPUT_VARIABLE said)
if(result EQUAL 0 OR NOT said MATCHES "portwave_enable_plugins")
  message(FATAL_ERROR "installed_package: it should have said what it lacks (${result}): ${said}")
endif()

if(PYTHON)
  step("load it from Python" "${CMAKE_COMMAND}" -E env "PYTHONPATH=${prefix}/${PYTHON_DIR}" "${PYTHON}"
    "${CONSUMER_DIR}/plugin_host.py" "${prefix}" "${plugin}" "${scenario}")
endif()

file(GLOB_RECURSE c_package "${prefix}/portwave_cConfig.cmake")
if(c_package)
  set(c_build "${SCRATCH_DIR}/c_build")
  step("configure the consumer in C" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}/c" -B "${c_build}" ${options}
    "-DPORTWAVE_VERSION=${VERSION}" "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${c_build}/bin")
  step("build the consumer in C" "${CMAKE_COMMAND}" --build "${c_build}" --config "${CONFIG}")
  step("run the consumer in C" "${c_build}/bin/consumer_c" "${SCENARIO}")
endif()

foreach(fetch IN ITEMS OFF ON)
  step("configure a project that builds it along, FetchContent ${fetch}"
    "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}/subdirectory" -B "${SCRATCH_DIR}/along_${fetch}" ${options}
    "-DPORTWAVE_SOURCE=${SOURCE_DIR}" "-DFETCH=${fetch}")
endforeach()
