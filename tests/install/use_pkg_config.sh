#!/usr/bin/env bash
# use_pkg_config.sh <prefix> <scenario>: compiles the C++ and the C program by what pkg-config says of the
# shared and the static library installed there, and runs them.
set -euo pipefail
prefix=$1 scenario=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=$(find "$prefix" -name portwave.pc)
export PKG_CONFIG_PATH=${files%/*}
libraries=$(pkg-config --variable=libdir portwave)
read -ra shared < <(pkg-config --cflags --libs portwave)
read -ra static < <(pkg-config --static --cflags --libs portwave | sed 's/-lportwave\b/-l:libportwave.a/')
read -ra c < <(pkg-config --cflags --libs portwave_c)

"${CXX:-c++}" -std=c++20 "$here/main.cpp" -o "$work/shared" "${shared[@]}"
LD_LIBRARY_PATH=$libraries "$work/shared"
"${CXX:-c++}" -std=c++20 "$here/main.cpp" -o "$work/static" "${static[@]}"
"$work/static" # finds no shared library of portwave, so needs none
"${CC:-cc}" -std=c11 "$here/main_c.c" -o "$work/c" "${c[@]}" -lm
LD_LIBRARY_PATH=$libraries "$work/c" "$scenario"
