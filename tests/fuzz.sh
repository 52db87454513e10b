#!/usr/bin/env bash
# Feeds damaged input to every reader, under the address and undefined-behaviour sanitizers. Without SECONDS every program
# gets a fixed number of inputs, drawn with a fixed seed, so that a change of the code alone changes the outcome; with
# SECONDS it runs for that long and draws other inputs each time.
# The first inputs are the repository's own files. An input that crashes a program, hangs it or takes memory without
# limit ends this script with the path of that input; give it to the program to see the fault again.
# INPUTS=NUMBER gives that many inputs in all, in the proportions of the fixed numbers.
# Usage: tests/fuzz.sh [SECONDS] [scenario|files|readers|stored|topology|onnx]...
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=
case ${1:-} in [0-9]*) seconds=$1 && shift ;; esac
programs=("$@")
declare -A runs=([scenario]=6000 [files]=25000 [readers]=100000 [stored]=40000 [topology]=500 [onnx]=20000)  # about 15 s each
cmake --preset sanitize >/dev/null
if [ ${#programs[@]} -eq 0 ]; then
  programs=(scenario files readers stored topology)
  ! grep -q '^ONNX_INCLUDE:PATH=/' build/sanitize/CMakeCache.txt || programs+=(onnx)
fi
if [ -n "${INPUTS:-}" ]; then
  all=0
  for program in "${programs[@]}"; do all=$((all + runs[$program])); done
  for program in "${programs[@]}"; do runs[$program]=$((INPUTS * runs[$program] / all + 1)); done
fi
cmake --build --preset sanitize --target "${programs[@]/#/fuzz_}"

export STEPCAST_DATA=$PWD
export ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=0  # yaml-cpp is built without sanitizers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=build/sanitize/found
mkdir -p "$found" "$work"/{scenario,files,readers,stored,topology,onnx}

# numbered FOLDER FILES...: copies, as files of several folders have one name.
numbered() {
  local folder=$1 count=0
  shift
  for file in "$@"; do cp "$file" "$folder/$((count += 1))-$(basename "$file")"; done
}
# seed NAME BYTES [PROGRAM]: for the programs `readers` and `stored`, whose first byte names the reader.
seed() { printf '%b' "$2" >"$work/${3:-readers}/$1"; }

mapfile -t scenarios < <(find scenarios -name '*.yaml' | sort)
numbered "$work/scenario" "${scenarios[@]}"
{ cat scenarios/resnet50-ethernet-cpu.yaml; printf '%s\n' '#set sweep.workers=[1, 8]' '#set strategy.bucket="25 MiB"' '#set noise.sigma=0.1' \
  '#over strategy.bucket=1 MiB..100 MiB:log,strategy.all_reduce=ring|automatic,workers=2..64' '#over placement'; } >"$work/scenario/words"
mapfile -t files < <(find platforms models -name '*.yaml' -size -16k | sort)
numbered "$work/files" "${files[@]}"
# A short trace, as the captured ones hold hundreds of samples.
printf '%s\n' 'name: t' 'kind: captured' 'model: m' 'batch: 4' 'precision: f32' 'device: cpu-core' 'source: s' 'flags: [disturbed]' \
  'notes: ["24 C"]' 'step_seconds: [1e-3, 2e-3]' 'layers:' '  - {name: a, forward: {seconds: [1e-4, 2e-4], cpu_seconds: [1e-4, 1e-4]}}' \
  >"$work/files/trace"
seed osu 'b# OSU MPI Latency Test v7.3\n# Size  Latency (us)\n8 5.0\n1048576 355.0\n'
seed osu-bandwidth 'b# OSU MPI Bandwidth Test v7.3\n# Size  Bandwidth (MB/s)\n8 5.0\n1048576 3550.0\n'
seed nccl 'b#  Rank  0 Group  0 Pid 7 on host device  0\n#  Rank  1 Group  0 Pid 8 on host device  1\n# Collective test starting: all_reduce_perf\n8 2 float sum -1 10.1 0.0 0.0 0 9.9 0.0 0.0 0\n16 4 float sum -1 11.1 0.0 0.0 0 9.9 0.0 0.0 0\n'
seed nccl-old 'b#       size         count    type   redop     time   algbw   busbw  error\n8 2 float sum 10.1 0.0 0.0 0\n16 4 float sum 11.1 0.0 0.0 0\n'
seed nccl-json 'b{"args":["all_reduce_perf"],"config":{"devices":[{},{}]},"results":[{"size":8,"out_of_place":{"time":1.5}},{"size":16,"out_of_place":null,"in_place":{"time":2}}]}'
seed csv 'cscenario,point,step_seconds,why\ns,"a ""b"", c",0.5,\ns,w=2,-0,"true"\n'
seed json 'j{"scenario":"s","point":"a","step_seconds":0.5,"count":3,"fits":true,"none":null}\n'
seed gpt2 'h{"model_type":"gpt2","n_layer":2,"n_embd":8,"n_head":2,"n_positions":16,"n_inner":null,"activation_function":"gelu_new","vocab_size":50}'
seed llama 'h{"model_type":"mixtral","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":20,"num_local_experts":4,"num_experts_per_tok":2,"hidden_act":"silu","tie_word_embeddings":true,"max_position_embeddings":16,"sliding_window":8,"vocab_size":50}'
seed bert 'h{"model_type":"bert","architectures":["BertForMaskedLM"],"_name_or_path":"a \\"b\\"","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":2,"intermediate_size":20,"type_vocab_size":2,"hidden_act":"gelu","max_position_embeddings":16,"vocab_size":50}'
seed vit 'h{"model_type":"vit","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":2,"intermediate_size":20,"image_size":9,"patch_size":4,"num_channels":3,"qkv_bias":false,"id2label":{"0":"a","1":"b"}}'
seed profile 'p{"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":90},{"ph":"X","cat":"cpu_op","name":"aten::conv2d","pid":1,"tid":1,"ts":1,"dur":9,"args":{"External id":1,"Sequence number":1,"Fwd thread id":0,"Input Dims":[[2,1,4,4],[1,1,1,1]]}},{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":7}},{"ph":"X","cat":"kernel","name":"sgemm","pid":0,"tid":7,"ts":50,"dur":5,"args":{"External id":1,"correlation":7,"device":0}},{"ph":"X","cat":"cpu_op","name":"ConvolutionBackward0","pid":1,"tid":1,"ts":40,"dur":9,"args":{"External id":2,"Sequence number":1,"Fwd thread id":1}}]}'
events=
event() { events+="${events:+,}{\"name\":\"$1\",\"ph\":\"X\",\"ts\":$2,\"dur\":$3,\"tid\":1,\"pid\":\"CPU functions\",\"args\":{}}"; }
event ProfilerStep#1 0 99; event aten::conv2d 1 9; event aten::convolution 2 7; event aten::relu 12 3; event aten::addmm 16 4
event aten::nll_loss 21 4; event NllLossBackward0 30 4; event AddmmBackward0 35 9; event aten::mm 36 2; event aten::mm 39 2
event ReluBackward0 45 4; event ConvolutionBackward0 50 9; event Optimizer.step#SGD.step 70 9; event aten::add_ 71 3
seed profile-cpu "p[$events]"
for file in dgx1 nvswitch four-leaves; do sed '1s/^/t/' "tests/platforms/discovery/$file.txt" >"$work/readers/$file"; done
cp tests/platforms/discovery/two-sockets.xml "$work/topology"
seed slurm 'tSwitchName=s0 Nodes=tux[0-3,7]\nSwitchName=s1 Nodes=tux[4-6]\nSwitchName=top Switches=s[0-1]\n'
seed idx 'i\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03abcdefghijkl\x00\x00\x08\x01\x00\x00\x00\x02\x01\x09'
seed raw 'r\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x00\x40'
head -c 3074 /dev/zero | sed '1s/^/r/' >"$work/readers/cifar"

row() { printf '{"scenario":"s","simulation":"workers=%s | draw 0 | as it is","step_seconds":0.5,"workers":%s,"fits":true}\\n' "$1" "$1"; }
seed journal "j$(row 2)$(row 4)" stored
seed failed "j$(row 2)$(row 4 | sed 's/"step_seconds":0.5/"failed":"too large"/')$(row 4)" stored
{ printf 'cstepcast parameters fuzzed 10\n' && head -c 40 /dev/zero; } >"$work/stored/checkpoint"
seed manifest 'm{"version":"0.1.0","scenario":"s","date":"2026-01-02T03:04:05Z","command":["stepcast","run"],"settings":["a=1"],"seed":18446744073709551615,"sweep":["workers"],"fidelities":["coupled"],"inputs":[{"role":"model","path":"m.yaml","sha256":"0"}]}' stored
seed shard 's{"build":"0","scenario":"s.yaml","settings":[],"draws":0,"shard":1,"shards":2,"inputs":[{"role":"model","path":"m.yaml","sha256":"0"}],"results_only":false}' stored
seed algorithms 'apoint,collective,bytes,algorithm,inside_node,between_nodes\np,0,100,hierarchical,leader,binomial_tree\np,1,8,ring,,\n' stored
seed hosts 'h# two hosts\nnode-1 slots=4 address=10.0.0.1\nnode_2.cluster slots=1\n' stored

# ONNX graphs as protobuf's text. dims NAME SIZES..., weight NAME SIZES..., node OPERATOR "INPUTS" "OUTPUTS" [ATTRIBUTES],
# numbers NAME VALUES..., list NAME VALUES... (an attribute), value NAME VALUE (an attribute), graph FILE INPUT_SIZES.
dims() { printf 'dims: %s\n' "$@"; }
weight() { parts+=$'initializer {\n'"name: \"$1\""$'\ndata_type: 1\n'"$([ $# -eq 1 ] || dims "${@:2}")"$'\n}\n'; }
numbers() { parts+=$'initializer {\n'"name: \"$1\""$'\ndata_type: 7\n'"dims: $(($# - 1))"$'\n'"$(printf 'int64_data: %s\n' "${@:2}")"$'\n}\n'; }
list() { printf 'attribute {\nname: "%s"\ntype: INTS\n' "$1" && printf 'ints: %s\n' "${@:2}" && echo '}'; }
value() { printf 'attribute {\nname: "%s"\ntype: INT\ni: %s\n}\n' "$1" "$2"; }
node() {
  parts+=$'node {\n'"op_type: \"$1\""$'\n'"$(printf 'input: "%s"\n' $2)"$'\n'"$(printf 'output: "%s"\n' $3)"$'\n'"${4:-}"$'\n}\n'
}
graph() {
  printf 'ir_version: 8\nopset_import {\nversion: 16\n}\ngraph {\n%sinput {\nname: "x"\ntype {\ntensor_type {\nelem_type: 1\nshape {\n' \
    "$parts" >"$work/onnx/$1"
  { printf 'dim {\ndim_param: "N"\n}\n' && printf 'dim {\ndim_value: %s\n}\n' $2; } >>"$work/onnx/$1"
  printf '}\n}\n}\n}\noutput {\nname: "y"\ntype {\ntensor_type {\nelem_type: 1\n}\n}\n}\n}\n' >>"$work/onnx/$1"
  parts=
}
parts=
weight w 4 1 3 3 && weight b 4 && weight v 4 3
node Conv 'x w b' c "$(value group 4)$(list pads 1 1 1 1)" && node Sigmoid c s && node Mul 'c s' m && node Clip m r
node ReduceMean r a "$(list axes 2 3)$(value keepdims 0)" && node Gemm 'a v' y && graph convolution '4 6 6'
weight w1 2 15 3 && weight r1 2 15 5 && weight b1 2 30 && weight w2 1 16 10 && weight r2 1 16 4 && numbers sizes 0 0 -1 && numbers one 1
node Transpose x t "$(list perm 1 0 2)"
node GRU 't w1 r1 b1' g "$(value hidden_size 5)"$'\nattribute {\nname: "direction"\ntype: STRING\ns: "bidirectional"\n}'
node Transpose g u "$(list perm 0 2 1 3)" && node Reshape 'u sizes' h && node LSTM 'h w2 r2' l "$(value hidden_size 4)"
node Squeeze 'l one' q && node Transpose q y "$(list perm 1 0 2)" && graph recurrent '6 3'
weight w 6 18 && weight scale && numbers split 0 4 2 3 && numbers join 0 4 6 && weight gain 6 && weight shift 6
node LayerNormalization 'x gain shift' n "$(value axis -1)" && node MatMul 'n w' qkv && node Split qkv 'q k v' "$(value axis -1)"
for part in q k v; do
  node Reshape "$part split" "${part}s"
  node Transpose "${part}s" "${part}h" "$([ $part = k ] && list perm 0 2 3 1 || list perm 0 2 1 3)"
done
node MatMul 'qh kh' s && node Div 's scale' d && node Softmax d p && node MatMul 'p vh' o && node Transpose o ot "$(list perm 0 2 1 3)"
node Reshape 'ot join' j && node Erf j e && node Add 'e scale' f && node Mul 'j f' i && node Add 'i x' y && graph attention '4 6'

grep -ohE '\b[a-z_]+:' "${scenarios[@]}" "${files[@]}" | sort -u | sed 's/.*/"&"/' >"$work/keys.dict"
for program in "${programs[@]}"; do
  limit=("-seed=1" "-runs=${runs[$program]}")
  [ -z "$seconds" ] || limit=("-max_total_time=$seconds")
  echo "fuzz_$program: $(ls "$work/$program" | wc -l) files, ${limit[*]}"
  log=$work/$program.log
  if ! build/sanitize/tests/fuzz/fuzz_"$program" "${limit[@]}" -max_len=16384 -timeout=10 -rss_limit_mb=2048 \
    -dict="$work/keys.dict" -artifact_prefix="$found/$program-" -print_final_stats=1 "$work/$program" >"$log" 2>&1; then
    grep -vE '^#[0-9]+' "$log" | tail -n 60
    echo "fuzz_$program failed: $(grep -oE "$found/[^ ]+" "$log" | tail -n 1)"
    exit 1
  fi
  grep -E 'number_of_executed_units|peak_rss' "$log"
done
