#!/usr/bin/env bash
# Redraws the README's picture from fresh studies. Needs gnuplot and a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
study() {
  local name=$1
  shift
  build/release/bin/portwave study budget examples/lossless_pair.json --budgets "$(seq -s, 0 50)" \
    --out "$out/$name" "$@" >/dev/null
}
study published --guard off
study guarded --guard on
study auto --methods auto --guard on
gnuplot -e "published='$out/published/budget.csv'; guarded='$out/guarded/budget.csv'; automatic='$out/auto/budget.csv'" \
  docs/images/safety.gp >docs/images/safety.svg
