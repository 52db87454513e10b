#!/bin/bash
# Messages a processor second where every message is simulated and shares links with the others: ring all-reduces with one
# program a worker, by the simulator's own max-min sharing and by SimGrid's. Usage: bench/messages.sh [BUILD_FOLDER]
# Processor time is that of whole processes, start and reading included. A ring of P workers has 2 P (P - 1) messages. With two
# streams, two of the 9 all-reduces of case S run at a time, and their messages share every link.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STEPCAST_DATA=$root

# measure NAME WORKERS ALL_REDUCES SHARING [SETTING...]
measure() {
  local name=$1 workers=$2 all_reduces=$3 sharing=$4 setting
  local -a settings=()
  for setting in "${@:5}"; do settings+=(--set "$setting"); done
  /usr/bin/time -f '%U %S %M' -o "$work/time" "$build/stepcast" run "$root/bench/cases/s.yaml" --results-only --draws 1 -j 1 \
    --set "sweep={workers: [$workers]}" --set strategy.bucket=model --set simulation.fidelity=message --set simulation.fold=off \
    --set "simulation.steps=$all_reduces" --set "simulation.sharing=$sharing" "${settings[@]}" -o "$work/out" >"$work/log"
  awk -v n="$name" -v w="$workers" -v n_all="$all_reduces" -v by="$sharing" '{ m = n_all * 2 * w * (w - 1); t = $1 + $2
    printf "| %s | %d | %s | %d | %.2f | %.2f | %d |\n", n, w, by, m, t, m / t / 1e6, $3 / 1024 }' "$work/time"
}

echo "| case | workers | links shared by | messages | processor seconds | million messages a second | memory, MiB |"
echo "|---|---|---|---|---|---|---|"
tree=(platform=lassen platform.nodes=512)
measure "one switch" 256 10 max_min
measure "one switch" 256 10 simgrid
measure "one switch" 1024 10 max_min
measure "one switch, two streams" 1024 9 max_min strategy.bucket='10 MB' strategy.streams=2 simulation.steps=1
measure "2:1 fat tree, packed" 1024 5 max_min "${tree[@]}"
measure "2:1 fat tree, random places" 256 5 max_min "${tree[@]}" placement=random
measure "2:1 fat tree, random places" 256 5 simgrid "${tree[@]}" placement=random
measure "2:1 fat tree, random places" 1024 2 max_min "${tree[@]}" placement=random
