#!/bin/bash
# Compares the memory that --dry-run announces with the peak of the largest process (VmHWM, by wait4), over the shipped scenarios
# that take less than a minute, and over runs with thousands of workers. It prints every run and the number of those that are further off than 30 %. Not a part of ctest.
# Usage: tests/memory-estimate.sh STEPCAST [SCENARIO...]
set -u
stepcast=$(realpath "$1")
shift
root=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA=$root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=0 off=0
# measure NAME ARGUMENTS OF RUN...
measure() {
  local name=$1 said announced peak line
  shift
  said=$("$stepcast" run "$@" --dry-run -j 1 2>/dev/null)
  said=${said%%$'\n'*}
  announced=$(sed -nE 's/.*[ ,]([0-9.]+) ([KMG])iB.*/\1 \2/p' <<<"$said" | awk '{ print $1 * ($2 == "K" ? 1 : $2 == "M" ? 1024 : 1048576) }')
  [ -n "$announced" ] || { echo "$name: no estimate: $said"; return; }
  peak=$(python3 - "$stepcast" run "$@" -j 1 --results-only --draws 1 -o "$work/out" <<'END'
import resource, subprocess, sys
try:
    subprocess.run(sys.argv[1:], timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
    print("")
END
)
  [ -n "$peak" ] || { echo "$name: not run within a minute"; return; }
  runs=$((runs + 1))
  line=$(awk -v a="$announced" -v p="$peak" 'BEGIN { printf "announced %.0f MiB, peak %.0f MiB, ratio %.2f", a / 1024, p / 1024, a / p; exit !(a / p > 1.3 || a / p < 0.7) }') && { off=$((off + 1)); line+="  OFF"; }
  echo "$name: $line"
}
if [ $# -gt 0 ]; then
  for scenario in "$@"; do measure "$(basename "$scenario")" "$scenario"; done
else
  for scenario in "$root"/scenarios/*.yaml; do measure "$(basename "$scenario")" "$scenario"; done
  ethernet=("$root/scenarios/resnet50-ethernet-cpu.yaml" --set platform.nodes=16384)
  for workers in 4096 8192 16384; do
    for fold in automatic off; do
      measure "$workers workers, fold: $fold" "${ethernet[@]}" --set "sweep=[{workers: [$workers]}]" --set "simulation.fold=$fold"
    done
  done
fi
echo "$runs runs, $off of them further off than 30 %"
[ $off -eq 0 ]
