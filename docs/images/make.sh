#!/usr/bin/env bash
# Redraws the README's picture from a fresh study. Needs gnuplot and a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."
table=$(mktemp)
trap 'rm -f "$table"' EXIT
build/release/bin/portwave study budget examples/two_oscillators.json \
  --budgets "$(seq -s, 0 50)" >"$table"
gnuplot -e "data='$table'" docs/images/budget.gp >docs/images/budget.svg
