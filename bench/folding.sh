#!/bin/bash
# Draws steps of cut networks, pipelines, replicas and whole clusters, and compares what the rules pick with a program
# for each worker whose every message is played.
# Usage: bench/folding.sh FIRST LAST [BUILD_FOLDER] [OUTPUT]
# Cases FIRST to LAST are each drawn from their number, of as many workers as one of the words of SIZES says; LIMIT
# seconds of processor time a run. Adds a line a case to OUTPUT (bench/results/folding.csv).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${3:-$root/build/release}
out=${4:-$root/bench/results/folding.csv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
header=case,kind,platform,workers,noise,traffic,all_reduce,folding,form,seconds,processor_seconds,unfolded_seconds,unfolded_processor_seconds,error
[ -s "$out" ] || echo "$header" >"$out"

# One of the words, drawn by the case's number and WHAT.
pick() {
  local what=$1
  shift
  local drawn
  drawn=$(printf '%s %s' "$number" "$what" | sha256sum)
  shift $((0x${drawn:0:8} % $#))
  echo "$1"
}

# Sets strategy, model, and ways: workers come in multiples of it.
draw_strategy() {
  local overlap
  all_reduce=$(pick all_reduce automatic ring halving_doubling hierarchical double_tree)
  overlap=$(pick overlap true true false)
  local more="all_reduce: $all_reduce, overlap: $overlap"
  platform=$(pick platform lassen lassen piz-daint titan dgx-h100-pod)
  settings="{}"
  [ "$platform" != dgx-h100-pod ] || settings="{platform.nodes: 512, platform.max_nodes: 512}"
  batch="batch_per_worker: 1"
  case $kind in
    spatial)
      ways=$(pick ways 2 4 8 16)
      model="$(pick model mesh-1k mesh-2k)"
      strategy="{kind: spatial, split: $ways, bucket: $(pick bucket tensor '10 MB'), $more}" ;;
    filter_parallel)
      ways=$(pick ways 2 4 8)
      model=resnet50
      batch="batch_per_worker: $((8 * ways))"
      strategy="{kind: filter_parallel, ways: $ways, bucket: '10 MB', $more}" ;;
    tensor)
      ways=$(pick ways 2 4 12)
      model=gpt2-small
      batch="batch_per_worker: $(pick batch 1 2 8)"
      strategy="{kind: tensor, ways: $ways, bucket: '25 MB', $more}" ;;
    mixture_of_experts)
      ways=$(pick ways 4 8 16)
      model=gpt2-small
      strategy="{kind: mixture_of_experts, ways: $ways, experts: $ways, top: 2, every: 2, $more}" ;;
    pipeline)
      local stages tensor batches
      stages=$(pick stages 2 4 6)
      tensor=$(pick tensor 1 2 4)
      batches=$(pick batches 4 8)
      ways=$((stages * tensor))
      model=gpt2-small
      batch="batch_per_worker: $batches"
      strategy="{kind: pipeline, stages: $stages, tensor: $tensor, micro_batches: $batches, $more}" ;;
    diloco)
      ways=$(pick ways 4 8 32)
      model=gpt2-small
      strategy="{kind: diloco, workers_per_replica: $ways, mini_batches: $(pick batches 2 5), aggregation: all_reduce, outer_momentum: 0.9,
        outer_learning_rate: 0.7, all_reduce: $all_reduce, bucket: '50 MB'}" ;;
    synchronous)
      ways=1
      model=resnet50
      batch="batch_per_worker: 32"
      strategy="{kind: synchronous, bucket: $(pick bucket '5 MB' '25 MB'), streams: $(pick streams 1 1 2), $more}" ;;
  esac
}

# On other people's traffic and unequal NICs.
draw_traffic() {
  traffic=$(pick traffic none none none slow_nics slow_nic)
  case $traffic in
    none) background="[]" ;;
    slow_nics) background="[{links: 'node *7 NIC 0 up', share: 0.4}, {links: 'node *7 NIC 0 down', share: 0.4}]" ;;
    slow_nic) background="[{links: 'node 3 NIC 0 *', share: 0.5}]" ;;
  esac
}

draw_noise() {
  case $(pick noise none lognormal lognormal layers straggler) in
    none) noise="{jitter: none}" ;;
    lognormal) noise="{jitter: lognormal, sigma: $(pick sigma 0.02 0.05 0.1)}" ;;
    layers) noise="{jitter: layers, sigma: $(pick sigma 0.03 0.1)}" ;;
    straggler) noise="{jitter: none, straggler_share: 0.02, straggler_factor: 1.2}" ;;
  esac
}

draw_case() {
  kind=$(pick kind ${KINDS:-spatial spatial spatial filter_parallel tensor tensor mixture_of_experts pipeline pipeline diloco synchronous})
  draw_strategy
  draw_traffic
  draw_noise
  workers=$(($(pick workers ${SIZES:-64 128 128 256 256 512}) / ways * ways))
  cat >"$work/case.yaml" <<YAML
name: case-$number
model: $model
trace: derived
platform: $platform
set: $settings
$batch
strategy: $strategy
noise: $noise
background: $background
simulation: {steps: 1, seed: $number}
sweep: {workers: [$workers]}
YAML
}

# "step_seconds folding form processor_seconds", words joined by _.
run() {
  (ulimit -t "${LIMIT:-60}"; exec /usr/bin/time -o "$work/time" -f "%U %S" "$build/stepcast" run "$work/case.yaml" --results-only -j1 \
    "$@" -o "$work/out" >"$work/log" 2>&1) || return 1
  python3 - "$work" <<'PY'
import csv, sys
row = next(csv.DictReader(open(sys.argv[1] + "/out/results.csv")))
spent = sum(float(x) for x in open(sys.argv[1] + "/time").read().split()[-2:])
print(row["step_seconds"], row["folding"].replace(" ", "_"), row["fidelity"].replace(" ", "_"), f"{spent:.2f}")
PY
}

for number in $(seq "$1" "$2"); do
  draw_case
  told="$number,$kind,$platform,$workers,${noise//,/},$traffic,$all_reduce"
  if ! picked=$(run); then
    echo "$told: $(grep -a 'stepcast:\|error' "$work/log" | tail -1)" >&2
    continue
  fi
  if [[ $picked == *" unfolded message "* ]]; then
    unfolded=$picked  # nothing else would be run
  else
    unfolded=$(run --set simulation.fold=off) || unfolded="- - - -"
  fi
  awk -v told="$told" -v picked="$picked" -v unfolded="$unfolded" 'BEGIN {
    split(picked, p, " "); split(unfolded, u, " "); gsub(",_", "; ", p[2]); gsub(",_", "; ", p[3]); gsub("_", " ", p[2]); gsub("_", " ", p[3])
    error = u[1] == "-" ? "" : sprintf("%.6f", p[1] / u[1] - 1)
    printf "%s,%s,%s,%s,%s,%s,%s,%s\n", told, p[2], p[3], p[1], p[4], u[1], u[4], error }' >>"$out"
done
