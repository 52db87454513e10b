#!/bin/bash
# stepcast-gpu check on a pretended GPU: it prints a row for each layer at once, so that the rows before a layer that hangs are kept.
# Usage: tests/gpu/check_test.sh STEPCAST_GPU_PRETENDED
set -u
program=$(realpath "$1")
STEPCAST_DATA=$(realpath "$(dirname "$0")/../..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failures=0
fail() {
  echo "FAILED: $1"
  tail -n 5 out
  failures=$((failures + 1))
}
rows() { grep -c 'f32 nchw: .* arrays, largest deviation ' out; }

"$program" check --precisions f32 >out 2>&1 || fail "exit code $?"
[ "$(grep -c ' arrays within ' out)" -eq 2 ] || fail "not one summary for each layout"
all=$(rows)
[ "$all" -gt 20 ] || fail "only $all rows for the layers"

# The dense layer hangs whose output has 3 x 6 x 33 numbers.
PRETENDED_FAULT=hang:2376 timeout -k 1 5 "$program" check --precisions f32 >out 2>&1
[ $? -eq 124 ] || fail "hang: exit code"
left=$(rows)
[ "$left" -gt 0 ] && [ "$left" -lt "$all" ] || fail "hang: $left of $all rows"
[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
