#!/bin/bash
# The same scenario gives the same bits: twice, with one process and with two, and with a second binary
# (another compiler). The exact simulations (a program a worker; every message) agree with the default to 1 %.
# RUNS=NUMBER simulates so many times more, with both binaries in turn and one process and two in turn.
# Usage: tests/same-bits.sh STEPCAST [OTHER-STEPCAST]
first=$(realpath "$1")
second=$(realpath "${2:-$1}")
. "$(dirname "$0")/setup.sh"

# simulate FOLDER BINARY OPTIONS...
simulate() {
  local folder=$1 binary=$2
  shift 2
  "$binary" run "$source_folder/scenarios/resnet50-ethernet-cpu.yaml" --set "sweep.workers=[1, 8, 64]" -o "$folder" "$@" \
    >"$folder.out" 2>"$folder.err" </dev/null && return
  fail "$binary $*: $(tail -n 1 "$folder.err")"
}

# step_seconds of every point of a folder, in the order of results.csv.
steps_of() {
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "step_seconds") column = i }
           NR > 1 { print $column }' "$1/results.csv"
}

# agrees FOLDER: to 1 % with the default.
agrees() {
  paste <(steps_of one) <(steps_of "$1") >steps
  [ "$(wc -l <steps)" -eq 3 ] || fail "$1: not three points"
  awk '{ error = $2 / $1 - 1; if (!($1 > 0 && error < 0.01 && error > -0.01)) { print; wrong = 1 } }
       END { exit wrong }' steps || fail "$1: step_seconds (default, $1) differ by more than 1 %"
}

simulate one "$first" -j 1
simulate again "$first" -j 1
simulate two "$first" -j 2
simulate other "$second" -j 2
[ "$(wc -l <one/results.csv)" -eq 4 ] || fail "results.csv has not a header and three points"
for folder in again two other; do
  cmp -s one/results.csv $folder/results.csv || fail "$folder: results.csv differs from the first run"
done

differ=0
for ((run = 1; run <= ${RUNS:-0}; ++run)); do
  rm -rf more
  binary=$first
  [ $((run % 4)) -lt 2 ] || binary=$second
  simulate more "$binary" -j $((1 + run % 2))
  cmp -s one/results.csv more/results.csv || differ=$((differ + 1))
done
[ "${RUNS:-0}" -eq 0 ] || echo "$RUNS runs more: $differ differ from the first"
[ $differ -eq 0 ] || fail "runs with other bits"

simulate unfolded "$first" -j 2 --set simulation.fold=off
simulate messages "$first" -j 2 --set simulation.fidelity=message
grep -q ',message,' messages/results.csv || fail "messages: the form is not message"
for folder in unfolded messages; do
  agrees $folder
done

end_test
