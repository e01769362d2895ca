#!/usr/bin/env bash
# try_debs.sh <folder>: installs the packages of a folder in a new, minimal Debian and uses them there: the
# program, programs in C++ and C, built by pkg-config and by CMake, and Python. mmdebstrap makes the system
# from the archive that apt knows: the essential packages and apt, nothing of the machine it runs on but
# its kernel. It is thrown away.
set -euo pipefail
debs=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$debs"/*.deb "$here/main.cpp" "$here/main_c.c" "$work"
cat >"$work/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(try LANGUAGES C CXX)
find_package(portwave 0.1 REQUIRED COMPONENTS static)
find_package(portwave_c 0.1 REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE portwave::portwave)
add_executable(consumer_c main_c.c)
target_link_libraries(consumer_c PRIVATE portwave::c m)
CMAKE
cat >"$work/use.sh" <<'USE'
set -eu
cd /try
export DEBIAN_FRONTEND=noninteractive
scenario=/usr/share/portwave/examples/two_oscillators.json
install() { apt-get -qq install -y --no-install-recommends "$@" >/dev/null; }
apt-get -qq update
! command -v cc >/dev/null
! command -v python3 >/dev/null
! find /usr -name "*tbb*" -o -name "*portwave*" | grep -q .
echo "clean: $(dpkg-query -W | wc -l) packages"

install ./libportwave0*.deb ./portwave_*.deb
portwave run $scenario --out results >/dev/null
ls results | grep -q .
/usr/libexec/portwave/portwave-fmu-host 2>&1 | grep -q "portwave starts it"
echo "program: ok, $(dpkg-query -W | wc -l) packages"

install ./libportwave-c*.deb ./libportwave-dev*.deb g++ pkg-config
cc -std=c11 main_c.c -o consumer_c $(pkg-config --cflags --libs portwave_c) -lm
./consumer_c $scenario
c++ -std=c++20 main.cpp -o consumer $(pkg-config --cflags --libs portwave)
./consumer
echo "pkg-config: ok"
install cmake make
cmake -S . -B build >/dev/null
cmake --build build >/dev/null
build/consumer
build/consumer_c $scenario
echo "CMake: ok"

if ls ./python3-portwave*.deb >/dev/null 2>&1; then
  install ./python3-portwave*.deb
  python3 -c '
import portwave
stepper = portwave.Stepper("/usr/share/portwave/examples/two_oscillators.json")
stepper.step(100)
print("python: ok, q1 =", stepper["A.q1"], stepper.certificate)'
fi

# A C program goes on without the rest, and then without anything.
apt-get -qq remove -y --purge libportwave-dev portwave "^libportwave[0-9.]+$" >/dev/null
./consumer_c /try/scenario.json
apt-get -qq remove -y --purge "^.*portwave.*" >/dev/null
! test -e /usr/bin/portwave
! find /usr -name "*portwave*" | grep -q .
echo "removed: ok"
USE
cp "$here/../../examples/two_oscillators.json" "$work/scenario.json"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
mmdebstrap --quiet --variant=apt \
  --customize-hook="mkdir -p \"\$1/try\"" \
  --customize-hook="cp \"$work\"/* \"\$1/try/\"" \
  --customize-hook="chroot \"\$1\" sh /try/use.sh" \
  "$suite" /dev/null
