#!/bin/bash
# Compares the memory that --dry-run announces with the peak of the largest process (VmHWM, by wait4), over the shipped scenarios
# that take less than a minute. It prints every run and the number of those that are further off than 30 %. Not a part of ctest.
# Usage: tests/memory-estimate.sh STEPCAST [SCENARIO...]
set -u
stepcast=$(realpath "$1")
shift
root=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA=$root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- "$root"/scenarios/*.yaml
runs=0 off=0
for scenario in "$@"; do
  said=$("$stepcast" run "$scenario" --dry-run -j 1 2>/dev/null | head -n 1)
  announced=$(sed -nE 's/.*[ ,]([0-9.]+) ([KMG])iB.*/\1 \2/p' <<<"$said" | awk '{ print $1 * ($2 == "K" ? 1 : $2 == "M" ? 1024 : 1048576) }')
  [ -n "$announced" ] || { echo "$(basename "$scenario"): no estimate: $said"; continue; }
  peak=$(python3 - "$stepcast" "$scenario" "$work/out" <<'END'
import resource, subprocess, sys
program, scenario, folder = sys.argv[1:]
try:
    subprocess.run([program, "run", scenario, "-j", "1", "--results-only", "--draws", "1", "-o", folder], timeout=60,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
    print("")
END
)
  [ -n "$peak" ] || { echo "$(basename "$scenario"): not run within a minute"; continue; }
  runs=$((runs + 1))
  line=$(awk -v a="$announced" -v p="$peak" 'BEGIN { printf "announced %.0f MiB, peak %.0f MiB, ratio %.2f", a / 1024, p / 1024, a / p; exit !(a / p > 1.3 || a / p < 0.7) }') && { off=$((off + 1)); line+="  OFF"; }
  echo "$(basename "$scenario"): $line"
done
echo "$runs runs, $off of them further off than 30 %"
