#!/usr/bin/env bash
# Validates the forecasts on this machine: shared memory and, as root, small clusters of network namespaces. At most 15
# minutes on 2 quiet cores. Usage: tools/validate-all.sh [STEPCAST] [FOLDER]; writes FOLDER (default validate/data).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
data=${2:-$root/validate/data}
export STEPCAST_DATA=$root
mkdir -p "$data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
repeats=${REPEATS:-5}
more=()
if [[ ${ACCEPT_DISTURBED:-} ]]; then more=(--accept-disturbed); fi

# run NAME SCENARIO OPTIONS...: one launch; its table goes to the terminal, its data to FOLDER/NAME-*.
run() {
  local name=$1 scenario=$2
  shift 2
  echo "== $name: $scenario $*"
  "$stepcast" validate "$root/scenarios/validate/$scenario.yaml" -o "$work/$name" --repeats "$repeats" "${more[@]}" "$@"
  for file in measured.csv samples.csv predicted.csv predicted.sha256 scatter.svg breakdown.svg; do
    if [[ -e $work/$name/$file ]]; then cp "$work/$name/$file" "$data/$name-$file"; fi
  done
}

run memory-2 small --ranks 2
if ((EUID == 0)); then
  run netcluster-4-1gbit cluster --ranks 4 --cluster netcluster:1gbit --sleep
  run netcluster-2-1gbit cluster --ranks 2 --cluster netcluster:1gbit --sleep
  run netcluster-8-1gbit cluster --ranks 8 --cluster netcluster:1gbit --sleep
  run netcluster-4-100mbit network --ranks 4 --cluster netcluster:100mbit --sleep --set 'simulation.steps=3'
  run netcluster-8-racks network --ranks 8 --cluster netcluster:1gbit,racks=2,uplink=1gbit --sleep
else
  echo "not root: no network namespaces, only shared memory was validated"
fi

{
  echo "date: $(date -u +%F)"
  echo "machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg) at the end"
  echo "command: tools/validate-all.sh (repeats $repeats${more:+, disturbed runs counted})"
} >"$data/machine.txt"
"$stepcast" --version >>"$data/machine.txt"
