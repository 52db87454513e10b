#!/bin/bash
# stepcast-gpu run and stepcast validate --device on a fake GPU: a rank that dies or hangs in one point costs that point alone,
# and all points use the links and traces that were measured once.
# Usage: tests/gpu/points_test.sh STEPCAST_GPU_PRETENDED STEPCAST
program=$(realpath "$1")
stepcast=$(realpath "$2")
. "$(dirname "$0")/../setup.sh"

network() {  # NAME UNITS
  cat >"$1.yaml" <<END
name: $1
source: test
input: [8]
layers:
  - {name: a, kind: dense, units: $2}
  - {name: r, kind: relu}
  - {name: b, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
END
}
network narrow 12
network wide 13  # its gradients have 832 bytes: each array begins at a multiple of 64
cat >three.yaml <<END
name: three
description: a point between two others
trace: small-cnn-b64-cpu
platform: this-machine
batch_per_worker: 2
model: narrow.yaml
strategy: {kind: synchronous, all_reduce: ring, overlap: false}
noise: {jitter: trace}
simulation: {steps: 3, seed: 1}
sweep:
  - {model: [$work/narrow.yaml]}
  - {model: [$work/wide.yaml]}
  - {model: [$work/narrow.yaml], strategy: [{kind: zero, stage: 2}]}
END

run() {  # [OPTIONS]
  "$program" run three.yaml --ranks 2 --path host --repeats 2 "$@" -o results >out 2>&1
}

run || fail "without a fault: exit code $?"
[ "$(grep -c 'ms a step, median of 2 runs' out)" -eq 3 ] || fail "without a fault: not three points"
[ results/platform.yaml -ot results/point-2.log ] || fail "the links were measured again for a later point"
for fault in die hang; do
  PRETENDED_FAULT=$fault:832 run --heartbeat 10
  [ $? -eq 4 ] || fail "$fault: exit code"
  [ "$(grep -c 'ms a step, median of 2 runs' out)" -eq 2 ] || fail "$fault: not two points"
  grep -q '1 of 3 points failed: .*wide' out || fail "$fault: the point is not named"
  [ "$(wc -l <results/samples.jsonl)" -eq 4 ] || fail "$fault: not four rows"
done

# TERM ends all processes, and keeps the runs so far.
PRETENDED_FAULT=hang:832 "$program" run three.yaml --ranks 2 --path host --repeats 2 --heartbeat 100 -o results >out 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do [ -e results/point-2.log ] && [ "$(cat results/samples.jsonl 2>/dev/null | wc -l)" -eq 2 ] && break; sleep 0.1; done
kill -TERM $pid
wait $pid
[ $? -eq 4 ] || fail "TERM: exit code"
grep -q 'interrupted; the runs so far are in .*/results/samples.jsonl' out || fail "TERM: not said"
[ "$(wc -l <results/samples.jsonl)" -eq 2 ] || fail "TERM: not two rows"
[ -e /dev/shm/stepcast-$pid ] && fail "TERM: shared memory was left behind"

# stepcast starts the stepcast-gpu beside it.
mkdir bin
cp "$stepcast" bin/stepcast
cp "$program" bin/stepcast-gpu
validate() {  # [OPTIONS]
  bin/stepcast validate three.yaml --device cuda:0 --ranks 2 --path host --repeats 2 "$@" -o validated >out 2>&1
}
rows() {  # FILE
  tail -n +2 "validated/$1" | wc -l
}

validate || fail "validate: exit code $?"
[ "$(rows predicted.csv)" -eq 3 ] || fail "validate: not three forecasts"
[ "$(rows measured.csv)" -eq 3 ] || fail "validate: not three measured points"
for file in platform.yaml narrow-b2.yaml wide-b2.yaml; do
  [ validated/$file -ot validated/predicted.sha256 ] || fail "validate: $file was measured again after the forecast"
done
PRETENDED_FAULT=die:832 validate
[ $? -eq 4 ] || fail "validate, die: exit code"
grep -q '1 of 3 points failed: .*wide' out || fail "validate, die: the point is not named"
[ "$(rows predicted.csv)" -eq 3 ] || fail "validate, die: not three forecasts"
[ "$(rows measured.csv)" -eq 2 ] || fail "validate, die: not two measured points"
end_test
