#!/bin/bash
# SimGrid carries at least 200 points of the shipped scenarios by default, some of them beside NCCL's closed form.
# Usage: tests/link-sharing.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
for scenario in "$STEPCAST_DATA"/scenarios/*.yaml; do
  "$stepcast" run "$scenario" --draws 1 --results-only --quiet -o "$(basename "$scenario" .yaml)" >out 2>err </dev/null ||
    { echo "FAILED: $scenario: $(tail -n 1 err)"; exit 1; }
done
carried=$(cat ./*/results.csv | grep -cE ',("SimGrid, closed form"|SimGrid)(,|$)')
points=$(tail -qn +2 ./*/results.csv | wc -l)
echo "SimGrid carries $carried of $points points"
[ "$carried" -ge 200 ]
