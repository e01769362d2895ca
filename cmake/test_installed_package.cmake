# Installs a finished build into a scratch prefix, then configures, builds and runs a consumer.
# Needs BUILD_DIR CONSUMER_DIR SCRATCH_DIR CONFIG GENERATOR CXX_COMPILER CXX_FLAGS VERSION.
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
step("configure the consumer" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${build}" -G "${GENERATOR}"
  "-DCMAKE_BUILD_TYPE=${CONFIG}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
  "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DPORTWAVE_VERSION=${VERSION}")
step("build the consumer" "${CMAKE_COMMAND}" --build "${build}" --config "${CONFIG}")
step("run the consumer" "${build}/bin/consumer")
