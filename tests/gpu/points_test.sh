#!/bin/bash
# stepcast-gpu run on a pretended GPU: a rank that dies or hangs in one point costs that point alone.
# Usage: tests/gpu/points_test.sh STEPCAST_GPU_PRETENDED
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
  cat out
  failures=$((failures + 1))
}

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
for fault in die hang; do
  PRETENDED_FAULT=$fault:832 run --heartbeat 10
  [ $? -eq 4 ] || fail "$fault: exit code"
  [ "$(grep -c 'ms a step, median of 2 runs' out)" -eq 2 ] || fail "$fault: not two points"
  grep -q '1 of 3 points failed: .*wide' out || fail "$fault: the point is not named"
  [ "$(wc -l <results/samples.jsonl)" -eq 4 ] || fail "$fault: not four rows"
done
[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
