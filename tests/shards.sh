#!/bin/bash
# Shards that are merged are the whole run, byte for byte: with draws of assumptions and without, with calibrations, trends,
# published figures, points that fail, and any number of processes. A missing shard is an error that names its points.
# Usage: tests/shards.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"

# same CODE SHARDS SCENARIO OPTIONS...: the run and its merged shards exit with CODE and write the same files.
same() {
  local code=$1 shards=$2 scenario=$3 i folders=() got
  shift 3
  rm -rf whole part* merged
  "$stepcast" run "$scenario" "$@" -j 2 -o whole >out 2>err
  got=$?
  [ $got -eq "$code" ] || fail "exit code $got, not $code: run $scenario $*"
  for ((i = shards - 1; i >= 0; --i)); do
    "$stepcast" run "$scenario" "$@" -j $((1 + i % 3)) --shard "$i/$shards" -o "part$i" >out 2>err
    folders+=("part$i")
    [ ! -e "part$i/results.csv" ] || fail "shard $i of $scenario has results of its own"
  done
  "$stepcast" merge "${folders[@]}" -o merged >out 2>err
  got=$?
  [ $got -eq "$code" ] || fail "exit code $got, not $code: merge $scenario $*"
  rm -f whole/simulations.* whole/manifest.json merged/manifest.json  # the date, the command line, and the order of endings
  diff -r whole merged >err || fail "merged shards differ from the whole run: $scenario $*"
}

cat >tiny.yaml <<'END'
name: tiny
description: a small network
model: small-cnn
trace: small-cnn-b64-cpu
platform: ethernet-cpu
strategy: {kind: synchronous}
noise: {jitter: trace}
simulation: {steps: 3}
global_batch: 64
END
{ cat tiny.yaml; echo 'sweep: {workers: [1, 2, 3, 4, 8, 16], strategy.all_reduce: [ring, halving_doubling]}'; } >some-fail.yaml
same 4 5 some-fail.yaml
grep -q '^tiny,"workers=3, strategy.all_reduce=ring",ring,,3,.*64 samples cannot be shared evenly by 3 workers' merged/results.csv ||
  fail "no row with the reason of a failed point"
{ cat tiny.yaml; echo 'sweep: {workers: [1, 2, 4]}'
  echo 'assumed: [{key: platform.network.latency, range: [1 us, 100 us], law: log-uniform, why: unknown}]'; } >drawn.yaml
same 0 2 drawn.yaml --draws 9 --results-only
same 0 3 "$source_folder/scenarios/quickstart.yaml"
same 0 2 "$source_folder/scenarios/goyal-imagenet-1h.yaml" --draws 8 --results-only
same 0 2 "$source_folder/scenarios/megatron-tensor.yaml" --draws 2

# Errors of merge.
rm -rf part1
refuses() {
  local text=$1
  shift
  "$stepcast" merge "$@" -o refused >out 2>err
  [ $? -eq 2 ] || fail "exit code is not 2: merge $*"
  grep -qF -- "$text" err || fail "no \"$text\": merge $*"
  [ ! -e refused/results.csv ] || fail "results in spite of an error: merge $*"
}
for i in 0 2 3; do "$stepcast" run some-fail.yaml --shard $i/4 -o part$i >out 2>err; done
refuses '2 of 12 points have no results in these shards: workers=1, strategy.all_reduce=halving_doubling; workers=8' part0 part2 part3
"$stepcast" run drawn.yaml --draws 9 --shard 1/4 -o part1 >out 2>err
refuses 'part1: expected a shard of the same run as part0, but the scenario differs' part0 part1 part2 part3
"$stepcast" run some-fail.yaml --set simulation.steps=4 --shard 1/4 -o part1 >out 2>err
refuses 'but --set differs' part0 part1 part2 part3
"$stepcast" run some-fail.yaml --shard 1/4 -o part1 >out 2>err
for folder in part1 ./part1/ "$work/part1"; do
  "$stepcast" merge part0 part1 part2 part3 -o "$folder" >out 2>err
  [ $? -eq 2 ] && [ -e part1/shard.json ] || fail "results may overwrite the shard $folder"
  grep -q ': expected another folder for the results than those of the shards' err || fail "-o $folder: no reason"
done
cp "$stepcast" other-build
printf x >>other-build
./other-build run some-fail.yaml --shard 2/4 -o part2 >out 2>err
refuses 'part2: another build of stepcast ran this shard' part0 part1 part2 part3
"$stepcast" run some-fail.yaml --shard 2/4 -o part2 --resume >out 2>err
cp -r part1 altered
sed -i '2s/"step_seconds":[0-9]/"step_seconds":7/' altered/simulations.jsonl
refuses 'altered/simulations.jsonl:2:1: damaged or altered' part0 altered part2 part3
"$stepcast" merge part0 part1 part2 part3 -o merged >out 2>err
[ $? -eq 4 ] || fail "the shards of this build are not merged"
sed -i 's/steps: 3/steps: 4/' some-fail.yaml
refuses 'part0: the scenario some-fail.yaml has changed since this shard was run' part0 part1 part2 part3
refuses 'shard.json' whole

# Without its sweep's points, a published figure is left out with a note.
"$stepcast" run "$source_folder/scenarios/goyal-imagenet-1h.yaml" --draws 2 --results-only --set sweep.workers=[8,16] -o few >out 2>err ||
  fail "a smaller sweep is refused"
grep -q '^not compared: .*--set has removed this point' out || fail "no note on the figures that are not compared"

[ $failures -eq 0 ] && echo "merged shards are the whole run"
exit $((failures > 0))
