#!/usr/bin/env bash
# try_debs.sh <folder>: installs the packages of a folder in a new, minimal Debian and uses them there: the
# program, a C++ and a C program, and Python. The system is made by mmdebstrap and thrown away.
set -euo pipefail
debs=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$debs"/*.deb "$here/main.cpp" "$here/main_c.c" "$work"
cat >"$work/use.sh" <<'USE'
set -eu
cd /try
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends ./libportwave0*.deb ./portwave_*.deb >/dev/null
portwave run /usr/share/portwave/examples/two_oscillators.json --out results >/dev/null
ls results | grep -q .
! command -v cc >/dev/null
echo "program: ok"
apt-get -qq install -y --no-install-recommends ./libportwave-dev*.deb g++ pkg-config >/dev/null
cc -std=c11 main_c.c -o consumer_c $(pkg-config --cflags --libs portwave_c) -lm
./consumer_c /usr/share/portwave/examples/two_oscillators.json
c++ -std=c++20 main.cpp -o consumer $(pkg-config --cflags --libs portwave)
./consumer
if ls ./python3-portwave*.deb >/dev/null 2>&1; then
  apt-get -qq install -y --no-install-recommends ./python3-portwave*.deb >/dev/null
  python3 -c '
import portwave
stepper = portwave.Stepper("/usr/share/portwave/examples/two_oscillators.json")
stepper.advance(100)
print("python: ok, q1 =", stepper["A.q1"], stepper.certificate)'
fi
apt-get -qq remove -y --purge "^.*portwave.*" >/dev/null
! test -e /usr/bin/portwave
! find /usr -name "*portwave*" | grep -q .
echo "removed: ok"
USE
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
mmdebstrap --quiet --variant=apt \
  --customize-hook="mkdir -p \"\$1/try\"" \
  --customize-hook="cp \"$work\"/* \"\$1/try/\"" \
  --customize-hook="chroot \"\$1\" sh /try/use.sh" \
  "$suite" /dev/null
