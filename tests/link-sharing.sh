#!/bin/bash
# SimGrid carries at least 200 points of the shipped scenarios by default, some of them beside NCCL's closed form.
# Usage: tests/link-sharing.sh STEPCAST
set -u
stepcast=$(realpath "$1")
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
for scenario in "$STEPCAST_DATA"/scenarios/*.yaml; do
  "$stepcast" run "$scenario" --draws 1 --results-only --quiet -o "$(basename "$scenario" .yaml)" >out 2>err </dev/null ||
    { echo "FAILED: $scenario: $(tail -n 1 err)"; exit 1; }
done
carried=$(cat ./*/results.csv | grep -cE ',("SimGrid, closed form"|SimGrid)(,|$)')
points=$(tail -qn +2 ./*/results.csv | wc -l)
echo "SimGrid carries $carried of $points points"
[ "$carried" -ge 200 ]
