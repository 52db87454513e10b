#!/bin/bash
# Times whole simulations of stepcast: processor seconds and peak memory, median of REPEATS runs a case.
# Usage: bench/run.sh [BUILD_FOLDER] [OUTPUT_FOLDER]; REPEATS (5) and CASES (all) may be set in the environment.
# Writes OUTPUT_FOLDER/whole.csv, whole.md, scaling.svg and .png, and parts.json where stepcast_bench was built.
# With all cases and no OUTPUT_FOLDER it also fills the table and the plot of docs/explanation/performance.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
out=${2:-$root/bench/results}
repeats=${REPEATS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# NAME WORKERS LIMIT_SECONDS LIMIT_MEGABYTES (- : none) [SETTINGS]
cases() {
  cat <<'TABLE'
s 64 - -
s 1024 0.10 60
s 4096 - -
s 16384 1.0 -
s 131072 8 1500
s 1048576 60 8000 platform.nodes=1048576 platform.max_nodes=1048576
s 1024 - - simulation.fidelity=message simulation.fold=off
r 64 - -
r 1024 0.12 -
r 2048 0.2 -
r 16384 1.5 -
r 131072 12 2000
r 1048576 60 8000 platform.nodes=262144 platform.max_nodes=262144
r 1024 - - simulation.fidelity=message simulation.fold=off
d 16384 3 -
t 16384 3 -
c 1024 0.5 -
h 64 - -
h 16384 5 -
p 16 - -
p 256 - -
p 1024 1 -
p 1024 - - strategy.shards=1
p 1024 - - strategy.shards=64
p 4096 - -
b 16384 - -
g 16384 5 -
g 131072 60 8000 platform.nodes=16384 platform.max_nodes=16384
w 1000 20 -
TABLE
}

# One run of one simulation a point: "seconds megabytes".
measure() {
  local name=$1 workers=$2 setting
  local -a more=(-j1 --set "sweep={workers: [$workers]}")
  for setting in ${3:-}; do more+=(--set "$setting"); done
  [ "$name" = w ] && more=(-j2)
  /usr/bin/time -o "$work/time" -f "%U %S %M" "$build/stepcast" run "$root/bench/cases.yaml#bench-$name" \
    --results-only --draws 1 "${more[@]}" -o "$work/out" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  awk '{printf "%.3f %.0f\n", $1 + $2, $3 * 1024 / 1e6}' "$work/time"
}

echo "case,workers,processor_seconds,lowest,highest,peak_megabytes,limit_seconds,limit_megabytes,setting" >"$work/whole.csv"
while read -r name workers limit memory setting; do
  case " ${CASES:-$name} " in *" $name "*) ;; *) continue ;; esac
  for _ in $(seq "$repeats"); do measure "$name" "$workers" "$setting"; done | sort -n >"$work/runs"
  awk -v c="$name" -v w="$workers" -v l="$limit" -v m="$memory" -v s="$setting" '
    {seconds[NR] = $1; if ($2 > peak) peak = $2}
    END {printf "%s,%d,%.2f,%.2f,%.2f,%d,%s,%s,%s\n", c, w, seconds[int((NR + 1) / 2)], seconds[1], seconds[NR], peak, l, m, s}' \
    "$work/runs" | tee -a "$work/whole.csv"
done < <(cases)
mv "$work/whole.csv" "$out/whole.csv"

echo "$(date -u +%F), commit $(git -C "$root" rev-parse --short HEAD), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)," \
  "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg); median of $repeats runs (lowest and highest: bench/results/whole.csv)." >"$out/machine.txt"

"$root/bench/scale-plot.sh" "$out/whole.csv" "$out" | tee "$out/fit.txt"
if [ -z "${CASES:-}" ] && [ $# -lt 2 ]; then
  "$root/tools/documents.py" simulator
  cp "$out/scaling.png" "$root/docs/img/scale.png"
fi
[ ! -x "$build/bench/stepcast_bench" ] || "$build/bench/stepcast_bench" --benchmark_out="$out/parts.json" --benchmark_out_format=json
