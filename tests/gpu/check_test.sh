#!/bin/bash
# stepcast-gpu check on a fake GPU: it prints a row for each layer at once, so that the rows before a layer that hangs are kept.
# capture-all without a list takes a few networks, and what cannot fit is left out whatever the time.
# Usage: tests/gpu/check_test.sh STEPCAST_GPU_PRETENDED
program=$(realpath "$1")
. "$(dirname "$0")/../setup.sh"
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

# No capture is estimated to end within a second.
models_of() { sed -nE 's/^([a-z0-9-]+) with batch [0-9]+: not started.*/\1/p; s/^(.*)-b[0-9]+-[a-z0-9]+-n[chw]+-gpu: left out: .*/\1/p' out | sort -u | wc -l; }
PRETENDED_GPU="NVIDIA H200" "$program" capture-all --seconds 1 -o traces >out 2>&1
[ $? -eq 3 ] || fail "capture-all: exit code"
few=$(models_of)
PRETENDED_GPU="NVIDIA H200" "$program" capture-all --models all --seconds 1 -o traces >out 2>&1
all=$(models_of)
[ "$few" -ge 5 ] && [ "$few" -le 10 ] && [ "$all" -gt $((2 * few)) ] || fail "capture-all: $few networks by default, $all in all"
grep -q '^mesh-1k-b32-f32-nchw-gpu: left out: ' out || fail "capture-all: mesh-1k with 32 samples is not left out"
end_test
