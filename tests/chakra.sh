#!/bin/bash
# Chakra traces, read and played by a reader of its own (chakra_reader.py): all nodes end by ASTRA-sim's rules, and on a network that
# takes no time they end when stepcast's own simulation does.
# Usage: tests/chakra.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
set -e
tests=$source_folder/tests
export PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || exit 77

cat >fast.yaml <<'END2'
name: fast
source: "a network that takes no time"
device: h100-sxm
nodes: 32
max_nodes: 32
node:
  kind: single
  device_link: {bandwidth: 1e9 GB/s, latency: 0 us}
  memory: {bandwidth: 1e9 GB/s, latency: 0 us}
network: {kind: switch, bandwidth: 1e9 GB/s, latency: 0 us}
messages:
  between_nodes: [{overhead: 0 us, bandwidth_factor: 1}]
  inside_node: [{overhead: 0 us, bandwidth_factor: 1}]
END2

# export_and_play NAME STRATEGY [OPTION...]: fails unless the last node ends within 0.1 % of the simulated run
export_and_play() {
  local name=$1 strategy=$2 seconds last
  shift 2
  cat >"$name.yaml" <<END2
name: $name
platform: fast.yaml
trace: derived
workers: 8
batch_per_worker: 16
strategy: $strategy
simulation: {steps: 3}
uncertainty: none
END2
  "$stepcast" export --chakra "$name.yaml" "$@" -o "$name" >"$name.txt.export"
  seconds=$(sed -n "s/.* take \(.*\) s here/\1/p" "$name.txt.export")
  python3 "$tests/chakra_reader.py" "$name/$name" >played.txt
  test "$(wc -l <played.txt)" -eq "$(ls "$name"/*.et | wc -l)"
  last=$(sed 's/.*, \(.*\) us/\1/' played.txt | sort -n | tail -1)
  awk -v a="$last" -v b="$seconds" 'BEGIN { exit !(a > 0.999e6 * b && a < 1.001e6 * b) }' ||
    { echo "$name: $last us played, $seconds s simulated"; return 1; }
}

gpt='{name: gpt-small, source: "own", sample: sequence, transformer_stack: {layers: 8, width: 512, heads: 8, sequence: 256, vocabulary: 1000}}'
export_and_play synchronous '{kind: synchronous, bucket: 4 MiB}' --set model=resnet50
export_and_play sum '{kind: synchronous, bucket: 4 MiB, overlap: false, accumulation: 2}' --set model=resnet50
export_and_play zero '{kind: zero, stage: 3}' --set "model=$gpt"
export_and_play pipeline '{kind: pipeline, stages: 4, tensor: 2, micro_batches: 8, schedule: interleaved, chunks: 2}' --set "model=$gpt"
export_and_play experts '{kind: mixture_of_experts, ways: 8, experts: 8}' --set "model=$gpt"
export_and_play spatial '{kind: spatial, split: 4}' --set model=resnet50
export_and_play averaging '{kind: model_averaging, mini_batches: 2}' --set model=resnet50
export_and_play servers '{kind: parameter_server, server: colocated, mode: synchronous}' --set model=resnet50
grep -q '"1": \[' pipeline/comm_group.json

"$stepcast" export --chakra "$tests/../scenarios/asgd-4gpu.yaml" --set published=null --set simulation.steps=4 -o servers2 \
  --point "$("$stepcast" export --chakra "$tests/../scenarios/asgd-4gpu.yaml" 2>&1 | sed -n 's/.*such as "\(.*\)"$/\1/p')" >text
grep -q 'another network would change it' text
python3 "$tests/chakra_reader.py" servers2/asgd-4gpu >/dev/null
"$stepcast" export synchronous.yaml 2>err && exit 1
grep -qF 'expected a format: --chakra' err

# Replays. seconds_of FOLDER [OPTION...]: the step of the traces in a folder, on the network that takes no time
seconds_of() {
  local folder=$1
  shift
  "$stepcast" import "$folder" -o "$folder.yaml" >"$folder.txt"
  "$stepcast" run "$folder.yaml" --set platform=fast.yaml --set noise.device_spread=0 --results-only -q -o replayed "$@"
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "step_seconds") column = i } NR == 2 { print $column }' replayed/results.csv
}
about() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.999 * b && a < 1.001 * b) }' || { echo "$1 s, expected $2 s"; return 1; }; }

for name in synchronous zero pipeline experts spatial averaging; do
  about "$(seconds_of "$name")" "$(sed -n 's/.* take \(.*\) s here/\1/p' "$name.txt.export")"
done
python3 "$tests/chakra_examples.py" .
about "$(seconds_of generator)" 10e-6
about "$(seconds_of pytorch)" 130e-6  # 20 us of the host, then 100 and 10 us of the device
grep -q '4 ranks, 3 process groups' pytorch.txt
# refuses FOLDER TEXT
refuses() {
  "$stepcast" import "bad-$1" -o bad.yaml 2>err && exit 1
  grep -qF -- "$2" err || { cat err; exit 1; }
}
refuses order 'node 1 ("node"): comes after itself, by way of other nodes'
refuses parent 'node 1 ("node"): comes after node 9, which is not there'
refuses kind 'collectives of type 3 cannot be replayed'
refuses type 'nodes of type 8 cannot be replayed'
refuses peer 'expected another rank below 1 at the other end, got 5'
refuses ranks 'got none for rank 1'
refuses unnamed 'has no comm_type, which says the collective'
refuses size 'expected a comm_size from 0 to 1000000000000000, got none'
refuses dimension 'its involved_dim leaves out dimensions of a network'
refuses work 'has 1000 operations and no duration'
refuses sent 'rank 0 sends 1 messages of tag 0 that rank 1 does not receive'
refuses received 'rank 0 sends no message of tag 0 and 9 bytes for it'
refuses nothing 'its traces hold no nodes'
"$stepcast" import generator/two_nodes.0.et -o bad.yaml 2>err && exit 1
grep -qF 'expected the folder of the traces of all ranks' err
"$stepcast" import bad-group -o bad.yaml >/dev/null
"$stepcast" run bad.yaml 2>err && exit 1
grep -qF 'expected a group of comm_group.json, got "4"' err
"$stepcast" import bad-calls -o bad.yaml >/dev/null
"$stepcast" run bad.yaml 2>err && exit 1
grep -qF 'expected the same 1 collectives of the group of ranks 0 1' err
"$stepcast" run generator.yaml --set workers=3 2>err && exit 1
grep -qF 'has the traces of 4 ranks; give workers: 4' err
