#!/usr/bin/env bash
# Redraws the pictures from fresh runs. Needs gnuplot and a release build.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
study() {
  local name=$1
  shift
  build/release/bin/portwave study budget examples/lossless_pair.json --budgets "$(seq -s, 0 50)" \
    --out "$out/$name" "$@" >/dev/null 2>&1
}
docs/images/waves.py >docs/images/waves.svg
study published --guard off
study guarded --guard on
study auto --methods auto --guard on
gnuplot -e "published='$out/published/budget.csv'; guarded='$out/guarded/budget.csv'; automatic='$out/auto/budget.csv'" \
  docs/images/safety.gp >docs/images/safety.svg

# Positions of the Duffing pair at 10 s, by two integrators at a tolerance of 1e-13.
exact_1=-0.2774531015
exact_2=0.0905967774
for stages in 1 2 3; do
  for steps in 125 250 500 1000 2000 4000; do
    build/release/bin/portwave run examples/two_oscillators.json --out "$out/order" \
      --set "/time={\"step_s\": $(awk "BEGIN {print 10 / $steps}"), \"steps\": $steps}" \
      --set "/method={\"kind\": \"auto\", \"tolerance\": 1e-13, \"stages\": $stages}" >/dev/null 2>&1 || true
    tail -n 1 "$out/order/trajectory.csv" | awk -F, -v h="$(awk "BEGIN {print 10 / $steps}")" \
      -v q1=$exact_1 -v q2=$exact_2 \
      '{ printf "%g %.4e\n", h, sqrt(($2 - q1) ^ 2 + ($3 - q2) ^ 2) }'
  done >"$out/order_$stages.txt"
done
gnuplot -e "folder='$out'" docs/images/order.gp >docs/images/order.svg

# A capacitor on a diode, by three integrators and by short steps.
discharge() {
  local name=$1
  shift
  build/release/bin/portwave run docs/images/stiffness.json --out "$out/$name" "$@" >/dev/null 2>&1 || true
}
discharge conserving --set '/method/integrator="gauss"'
discharge one --set '/method/integrator="damped"'
# Where `auto` chooses the method such a step is taken in pieces.
discharge two --set '/method={"kind": "interface", "tolerance": 1e-12, "iterations": 100, "integrator": "damped", "stages": 2}'
discharge exact --set '/method/integrator="damped"' --set /time/step_s=1e-6
gnuplot -e "conserving='$out/conserving/trajectory.csv'; one='$out/one/trajectory.csv'; two='$out/two/trajectory.csv'; exact='$out/exact/trajectory.csv'" \
  docs/images/stiffness.gp >docs/images/stiffness.svg

# The flagship examples.
for name in crane robot_arm power_line quarter_car full_car; do
  build/release/bin/portwave run "examples/$name.json" --out "$out/$name" --quiet
done
build/release/bin/portwave run examples/battery.json --out "$out/battery" --quiet
build/release/bin/portwave run examples/battery.json --out "$out/soon" --quiet --set /parameters/on_above_V=11.3
gnuplot -e "run='$out/battery/trajectory.csv'; soon='$out/soon/trajectory.csv'" \
  docs/images/battery.gp >docs/images/battery.svg
for name in crane robot_arm power_line; do
  gnuplot -e "run='$out/$name/trajectory.csv'" "docs/images/$name.gp" >"docs/images/$name.svg"
done
build/release/bin/portwave run examples/walking_robot.json --out "$out/walking" --quiet --compare none \
  --set /time/end_s=9
docs/images/walking_robot.py examples/walking_robot.json "$out/walking/trajectory.csv" >docs/images/walking_robot.svg
gnuplot -e "run='$out/quarter_car/trajectory.csv'; body='body.position'; wheel='wheel.position'" \
  docs/images/cars.gp >docs/images/quarter_car.svg
gnuplot -e "run='$out/full_car/trajectory.csv'; body='body.heave'; wheel='wheel_front_left.position'" \
  docs/images/cars.gp >docs/images/full_car.svg

# Work against precision on the chain of 1024 blocks, from the rows that the benchmark printed last:
#   ./dev bench work_precision    leaves them in build/release/bench.json, one object per row
# Without it the numbers in precision.csv are drawn again.
rows=${1:-}
if [[ -n $rows ]]; then
  {
    echo "exponent,explicit_us,waves_us,chosen_us,peer_us,peer_as_installed_us"
    for exponent in 3 4 5 6 7 8 9 10; do
      awk -v name="work_precision/chain_equal/1e-$exponent/" -v exponent="$exponent" '
        function value(key,   found) {
          found = $0
          sub(".*\"" key "\": ", "", found)
          sub("[,}].*", "", found)
          return found
        }
        index($0, name "by_explicit_steps\"") { series = value("ours_us") }
        index($0, name "by_waves\"") { waves = value("ours_us") }
        index($0, name "by_chosen_steps\"") { chosen = value("ours_us") }
        index($0, name "best\"") { peer = value("reference_us") }
        index($0, name "best_as_installed\"") { installed = value("reference_us") }
        END { if (peer != "") print exponent "," series "," waves "," chosen "," peer "," installed }
      ' "$rows"
    done
  } >docs/images/precision.csv
fi
docs/images/precision.py >docs/images/precision.svg

# A report, as a browser shows it.
build/release/bin/portwave run examples/robot_arm.json --out "$out/results" --report \
  --set /outputs/energies=true --quiet
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=4000 \
  --window-size=1100,1500 --screenshot=docs/images/report.png "file://$out/results/report.html"

# A scaling study, on an idle machine.
build/release/bin/portwave study scaling --generate chain --sizes 2500,5000,10000,20000 --threads 1,2,4,8 \
  --executors async --set /method/guard=false --plot docs/images/scaling.svg >/dev/null
