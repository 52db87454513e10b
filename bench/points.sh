#!/bin/bash
# Times a sweep of small points on two processes: 5,000, those of cases/points.yaml with one of its 20 latencies, or all 100,000.
# Each point is simulated once, without draws of its assumptions. Elapsed and
# processor time hold everything: reading, simulating, tables, plots and the report. Usage: bench/points.sh [BUILD_FOLDER] [all]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
latencies=(--set 'sweep.platform.network.latency=[5 us]')
[ "${2:-}" != all ] || latencies=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STEPCAST_DATA=$root
/usr/bin/time -f '%e %U %S %M' -o "$work/time" "$build/stepcast" run "$root/bench/cases/points.yaml" \
  "${latencies[@]}" --draws 1 -j 2 -o "$work/results" >"$work/log"
points=$(($(wc -l <"$work/results/results.csv") - 1))
read -r elapsed user system memory <"$work/time"
awk -v n="$points" -v e="$elapsed" -v c="$(awk "BEGIN {print $user + $system}")" -v m="$memory" 'BEGIN {
  printf "%d points on 2 processes: %.1f s elapsed, %.1f s of processor time (%.2f ms a point), %d MiB the largest process\n", n, e, c, 1000 * c / n, m / 1024
  printf "scaled to 100,000 points: %.1f min elapsed, %.1f min of processor time\n", e * 1e5 / n / 60, c * 1e5 / n / 60 }'
