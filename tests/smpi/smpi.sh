#!/usr/bin/env bash
# Runs exchanges.cpp under smpirun (SimGrid's SMPI) on platforms that "stepcast show platform --simgrid" wrote, and compares
# the simulated seconds with stepcast's simulation of every message. This checks routes, the sharing of links and latencies
# independently; overheads of messages are left out on both sides.
# Usage: tests/smpi/smpi.sh [--write FILE.csv] [STEPCAST [MESSAGE_TIMES]]
# STRIDE has no common divisor with the number of devices, so that no two ranks share one.
# --write: also writes the cases to FILE.csv (docs/notes/2026-11-smpi.csv); `tools/documents.py simulator` draws the table from it.
# Fails if a case is off by more than the bound that stands beside it, and if the table of
# docs/explanation/simulator-engine.md is another one. 77: there is no smpirun.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
file=
if [[ ${1:-} == --write ]]; then file=$(realpath "$2") && shift 2; fi
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
message_times=$(realpath "${2:-$root/build/release/tests/smpi/message_times}")
command -v smpirun >/dev/null || { echo "smpi: there is no smpirun" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STEPCAST_DATA=$root
figures=$work/figures.csv
smpicxx -O1 "$root/tests/smpi/exchanges.cpp" -o "$work/exchanges"

# Max-min sharing without TCP's corrections, no time for computing and calls, and each message sent when both ranks are ready.
options=(network/model:CM02 network/crosstraffic:0 network/TCP-gamma:1e15 surf/precision:1e-12
  smpi/simulate-computation:no smpi/wtime:0 smpi/send-is-detached-thresh:0 smpi/async-small-thresh:0)

# platform_file PLATFORM NODES LATENCIES: the exported platform, with its latencies (1) or without (0)
platform_file() {
  local file="$work/$1-$2-$3.xml"
  if [[ ! -f $file ]]; then
    "$stepcast" show platform "$1" --nodes "$2" --simgrid -o "$file"
    if [[ $3 == 0 ]]; then sed -i 's/ latency="[^"]*"/ latency="0s"/' "$file"; fi
  fi
  echo "$file"
}

failed=0
echo "platform,nodes,exchange,ranks,stride,bytes,latencies,smpi_seconds,stepcast_seconds,error_percent" >"$figures"
# compare MOST_PERCENT PLATFORM NODES EXCHANGE RANKS STRIDE BYTES [LATENCIES]
compare() {
  local most=$1 platform=$2 nodes=$3 exchange=$4 ranks=$5 stride=$6 bytes=$7 latencies=${8:-1} smpi ours error
  local -a case=("$nodes" "$exchange" "$ranks" "$stride" "$bytes" "$latencies")
  "$message_times" "$root/platforms/$platform.yaml" "${case[@]}" >"$work/ours"
  ours=$(head -n 1 "$work/ours")
  tail -n +2 "$work/ours" >"$work/hosts"
  smpirun -platform "$(platform_file "$platform" "$nodes" "$latencies")" -hostfile "$work/hosts" -np "$ranks" \
    "${options[@]/#/--cfg=}" --log=root.thresh:warning "$work/exchanges" "$exchange" "$bytes" >"$work/smpi" 2>&1 ||
    { cat "$work/smpi" >&2; exit 1; }
  smpi=$(sed -n 's/^seconds //p' "$work/smpi" | sort -g | tail -n 1)
  error=$(awk -v a="$smpi" -v b="$ours" 'BEGIN { printf "%.7f", (b / a - 1) * 100 }')
  (IFS=, && echo "$platform,${case[*]},$smpi,$ours,$error") >>"$figures"
  if awk -v e="$error" -v m="$most" 'BEGIN { exit !(e > m || e < -m) }'; then
    echo "smpi: $platform ${case[*]}: SMPI $smpi s, stepcast $ours s, off by $error %, at most $most %" >&2
    failed=1
  fi
}

for exchange in ring recursive_doubling halo; do
  for bytes in 4096 16777216; do
    compare 1e-7 leonardo 4 $exchange 2 1 $bytes
    compare 1e-7 dgx1v 2 $exchange 8 1 $bytes
    compare 1e-7 dgx1v 2 $exchange 16 3 $bytes
    compare 1e-7 summit 4 $exchange 16 5 $bytes
    compare 1e-7 frontier 4 $exchange 16 3 $bytes
    compare 1e-7 piz-daint 16 $exchange 16 1 $bytes
    compare 1e-7 titan 16 $exchange 16 1 $bytes
  done
done
# Where messages of different latency share a link, CM02 gives the one of smaller latency more, as TCP would; stepcast shares
# evenly. Without latencies both are equal.
for case in "titan 16 ring 16 7" "minsky 4 recursive_doubling 16 1" "seide-k20x-pairs 2 halo 4 1" "aurora 2 halo 8 1"; do
  read -ra words <<<"$case"
  compare 12 "${words[@]}" 1048576
  compare 1e-7 "${words[@]}" 1048576 0
done
if [[ $file ]]; then cp "$figures" "$file" && exit $failed; fi
sed -n '/^<!-- table: smpi -->$/,/^<!-- \/table -->$/p' "$root/docs/explanation/simulator-engine.md" | grep '^|' >"$work/shown"
PYTHONPATH=$root/tools python3 -c 'import sys; from tables import simulator; print(simulator.smpi_table(sys.argv[1]), end="")' "$figures" | diff "$work/shown" - >&2 || { echo "smpi: another table; see --write" >&2; failed=1; }
exit $failed
