# Toolchain file: portwave for AArch64 from a Debian of another architecture, with g++-aarch64-linux-gnu,
# and its tests with qemu-user. Used by the preset aarch64.
#
# Libraries come from packages of arm64 that are unpacked in a folder, PORTWAVE_AARCH64_PACKAGES: nothing of
# another architecture is installed. `./dev test aarch64` fills it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
if(NOT DEFINED CMAKE_CXX_COMPILER)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
endif()

set(PORTWAVE_AARCH64_PACKAGES "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-packages" CACHE PATH
  "Folder in which packages of arm64 are unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PORTWAVE_AARCH64_PACKAGES)
cmake_path(NORMAL_PATH PORTWAVE_AARCH64_PACKAGES OUTPUT_VARIABLE packages)
set(CMAKE_FIND_ROOT_PATH "${packages}" /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Libraries that those need in turn.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${packages}/usr/lib/${triplet}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

find_program(PORTWAVE_QEMU_AARCH64 qemu-aarch64)
if(PORTWAVE_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${PORTWAVE_QEMU_AARCH64};-L;/usr/${triplet}")
endif()
