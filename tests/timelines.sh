#!/bin/bash
# Timelines as Perfetto and Holistic Trace Analysis read them; their sums agree with results.csv.
# Usage: tests/timelines.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
set -e
tests=$source_folder/tests
export PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || exit 77

cat >tiny.yaml <<'END'
name: tiny
description: timelines of small trainings
platform: dgx1v
model: resnet50
trace: resnet50-b32-v100-sxm2-16gb
batch_per_worker: 32
strategy: {kind: synchronous, bucket: 25 MiB, overlap: true}
simulation: {steps: 4}
uncertainty: none
noise: {device_spread: 0}
set: {platform.nodes: 2}
sweep: {workers: [16]}
END
"$stepcast" run tiny.yaml --results-only -o all --timeline workers=16 --timeline-ranks all >/dev/null
"$stepcast" run tiny.yaml --results-only -o ranks --timeline workers=16 --timeline-ranks 0,5,8-9 --timeline-per-rank >/dev/null
"$stepcast" run tiny.yaml --results-only -o few --timeline workers=16 >/dev/null
"$stepcast" run "$tests/../scenarios/gpt-3d.yaml" --results-only --draws 1 -o stages --timeline-ranks all \
  --set 'sweep={strategy.stages: [4], strategy.tensor: [2], strategy.micro_batches: [16]}' \
  --timeline 'strategy.stages=4, strategy.tensor=2, strategy.micro_batches=16' >/dev/null
"$stepcast" run "$tests/../scenarios/asgd-4gpu.yaml" --results-only --draws 1 -o servers --timeline-ranks all \
  --set 'sweep={strategy.server: [colocated], strategy.overlap: [true], workers: [4]}' --set published=null \
  --set simulation.steps=8 --timeline 'strategy.server=colocated, strategy.overlap=true, workers=4' >/dev/null
"$stepcast" run tiny.yaml --results-only -o refused --timeline workers=16 --timeline-ranks 3,16 2>err && exit 1
grep -qF -- '--timeline-ranks: expected ranks below 16, such as 0,8-15, or all; got "3,16"' err
"$stepcast" run tiny.yaml --results-only -o refused --timeline-per-rank 2>err && exit 1
grep -qF -- 'need --timeline POINT' err
PYTHONPATH=$tests python3 "$tests/timelines_test.py" "$work"
