#!/bin/bash
# Kills a sweep at random moments (SIGKILL) and continues it with --resume until it ends; the results are those of a run that
# was not disturbed, byte for byte, and the journal has every simulation once. Not a part of ctest: 100 sweeps take minutes.
# Usage: tests/killed-sweeps.sh STEPCAST [SWEEPS] [SEED]
set -u
stepcast=$(realpath "$1")
sweeps=${2:-100}
RANDOM=${3:-1}
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
arguments=("$STEPCAST_DATA/scenarios/quickstart.yaml" --set 'sweep.workers=[1, 2, 4, 8, 16]' --draws 8 -j 2 --results-only)
seconds() { date +%s.%N; }
begin=$(seconds)
"$stepcast" run "${arguments[@]}" -o whole >/dev/null 2>err || { cat err; exit 1; }
whole=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { print b - a }')
failures=0 kills=0
for ((sweep = 1; sweep <= sweeps; ++sweep)); do
  rm -rf cut
  more=()
  for ((round = 0; round < 50; ++round)); do
    "$stepcast" run "${arguments[@]}" "${more[@]}" -o cut >out 2>err </dev/null &
    pid=$!
    more=(--resume)
    # Of the first five rounds each is killed at a moment of the whole run's time; the later ones are left alone.
    if [ $round -lt $((1 + RANDOM % 5)) ]; then
      sleep "$(awk -v w="$whole" -v r=$RANDOM 'BEGIN { print w * r / 32768 }')"
      kill -KILL $pid 2>/dev/null && kills=$((kills + 1))
    fi
    wait $pid 2>/dev/null
    code=$?
    [ $code -eq 137 ] || break
  done
  [ $code -eq 0 ] || { echo "FAILED: sweep $sweep: exit code $code: $(cat err)"; failures=$((failures + 1)); continue; }
  for file in results.csv results.jsonl; do
    cmp -s whole/$file cut/$file || { echo "FAILED: sweep $sweep: $file differs"; failures=$((failures + 1)); }
  done
  cmp -s <(sort whole/simulations.jsonl) <(sort cut/simulations.jsonl) || { echo "FAILED: sweep $sweep: another journal"; failures=$((failures + 1)); }
  [ -z "$(find cut -name '.*.tmp')" ] || left=$((${left:-0} + 1))
done
echo "$sweeps sweeps, killed $kills times: $failures differ from the run of $whole s that was not killed; ${left:-0} left a hidden temporary file"
[ $failures -eq 0 ]
