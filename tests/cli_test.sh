#!/bin/bash
# The command line from outside: exit codes, one-line errors, what is written and what is not.
# Usage: tests/cli_test.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"

# run_with CODE ARGUMENTS...: output in `out` and `err`.
run_with() {
  local expected=$1 code
  shift
  "$stepcast" "$@" >out 2>err </dev/null
  code=$?
  [ $code -eq "$expected" ] || fail "exit code $code, not $expected: stepcast $*"
}

# refuses CODE TEXT ARGUMENTS...: nothing on stdout, and one line with the text on stderr.
refuses() {
  local code=$1 text=$2
  shift 2
  run_with "$code" "$@"
  [ -s out ] && fail "output in addition to an error: stepcast $*"
  [ "$(wc -l <err)" -eq 1 ] || fail "not one line: stepcast $*"
  grep -qF -- "$text" err || fail "no \"$text\": stepcast $*"
}

# without_path CODE TEXT ARGUMENTS...: the same on a machine where no program can be found.
without_path() {
  local path=$PATH
  mkdir -p only
  for tool in wc grep head cat ls mkdir; do ln -sf "$(command -v $tool)" only/; done
  PATH=$work/only refuses "$@"
  PATH=$path
  rm -r only
}

# prints TEXT ARGUMENTS...: exit code 0 and the text on stdout.
prints() {
  local text=$1
  shift
  run_with 0 "$@"
  grep -qF -- "$text" out || fail "no \"$text\": stepcast $*"
}

scenario() {
  cat <<END
name: tiny
description: one $1
model: small-cnn
trace: small-cnn-b64-cpu
platform: ethernet-cpu
strategy: {kind: synchronous}
noise: {jitter: trace}
simulation: {steps: 3}
uncertainty: none
END
}
{ scenario "small network"; echo 'sweep: {workers: [1, 2]}'; } >tiny.yaml

# Help of the program and of every command.
prints Usage --help
for command in run merge learn "show model" "show trace" "show device" "show platform" "show scenario" "show strategies" show search capture \
  capture-compression calibrate validate derive import import-platform compare plot collectives schema check init completion; do
  prints Usage $command --help
  grep -q Example out || fail "no example: stepcast $command --help"
done
prints "stepcast 0." --version
grep -qE '^compiler: (gcc|clang) ' out && grep -q '^libraries: SimGrid [0-9]' out || fail "--version: no compiler or no libraries"

# Files to start from, errors of all files at once, what is printed.
prints 'written: own-net.yaml' init own-net.yaml --new-model
prints 'fc2' show model own-net.yaml
prints 'written: own.yaml' init own.yaml --new-platform -y
prints '4 nodes' show platform own.yaml
prints 'written: pairs.yaml' init pairs.yaml --new-platform --devices 4 --nvlink-pairs "100 GB/s" --nic "200 GB/s"
prints '48      100 GB/s' show platform pairs.yaml
prints 'pairs.yaml: note: network.bandwidth: 200 GB/s is more than the fastest NICs have (100 GB/s); did you mean 200 Gbit/s?' check pairs.yaml
topology=$source_folder/tests/platforms/discovery/two-sockets.xml
prints 'written: found.yaml' import-platform --lstopo "$topology" --device v100-sxm2-16gb -o found.yaml
prints "note: lstopo lists GPUs in PCI order" import-platform --lstopo "$topology" --device v100-sxm2-16gb -o found.yaml
sed 's/allowed_cpuset="0x00000003"/allowed_cpuset="0x00000600"/' "$topology" >no-core.xml
refuses 2 'no-core.xml:1: expected the XML of a topology' import-platform --lstopo no-core.xml --device v100-sxm2-16gb -o found.yaml
rm found.yaml no-core.xml
prints 'written: l40s.yaml' init l40s.yaml --new-device --peak "91.6 Tflop/s" --tensor-peak "362 Tflop/s" --memory-bandwidth "864 GB/s" --memory "48 GB"
prints '91.6 Tflop/s fp32, 181 Tflop/s TF32, 362 Tflop/s fp16' show device l40s.yaml
prints 'written: l40s-cluster.yaml' init l40s-cluster.yaml --new-platform --device l40s.yaml --nvlink none --nvlink-pairs none
grep -q '^software: {nccl' l40s-cluster.yaml || fail "init: no NCCL on a GPU that a file describes"
prints 'written: other.yaml' init other.yaml --new-device --like v100-sxm2-16gb -y
rm other.yaml
prints 'written: other.yaml' init other.yaml --new-device --like l40s -y
! grep -q efficiency_of other.yaml || fail "init: an efficiency for a device with shares"
rm other.yaml
prints 'written: h100.yaml' init h100.yaml --new-platform --device h100-sxm -y
grep -q 'device_link: {bandwidth: 48 GB/s, .*PCIe 5.0' h100.yaml || fail "init: not the PCIe of an H100"
rm h100.yaml
prints 'written: desktop.yaml' init desktop.yaml --new-platform --device rtx-3090 --nodes 1 --devices 2 --nvlink none --nvlink-pairs none -y
grep -q 'device_link: {bandwidth: 12 GB/s, .*PCIe 4.0 x8' desktop.yaml && grep -q '^  sockets: 1 ' desktop.yaml &&
  ! grep -q inter_socket desktop.yaml || fail "init: two GeForce do not divide the lanes of one processor"
prints 'written: rtx.yaml' init rtx.yaml --new-platform --device rtx-3090 --nodes 1 --devices 8 --nvlink none --nvlink-pairs none -y
grep -q 'device_link: {bandwidth: 24 GB/s, .*PCIe 4.0 x16' rtx.yaml || fail "init: not x16 in a server"
rm desktop.yaml rtx.yaml
refuses 2 'there is no device "h100-sxm5-80gb"; did you mean "h100-sxm"?' init missing.yaml --new-platform --device h100-sxm5-80gb
refuses 2 'there is no device "l40"' init missing.yaml --new-platform --device l40
refuses 2 'init l40.yaml --new-device writes a file for your device' init missing.yaml --new-platform --device l40
refuses 2 '--tensor-peak: k80 has no rates of tensor cores' init missing.yaml --new-device --like k80 --tensor-peak "1 Tflop/s"
refuses 2 '--memory: expected a quantity such as' init missing.yaml --new-device --memory 48
refuses 2 'nvlink' init other.yaml --new-platform --nvlink-pairs "100 GB/s" --nvlink "240 GB/s"
prints 'written: start.yaml' init start.yaml --model small-cnn --platform own.yaml --batch 64 --workers 8..32 -y
grep -q '^# yaml-language-server: .*/schemas/scenario.json$' start.yaml || fail "init: no line for editors"
grep -q '^trace: derived' start.yaml || fail "init: not the trace"
grep -q '^kernels: {precision: tf32}' start.yaml || fail "init: not the kernels of the rule"
prints 'written: half.yaml' init half.yaml --model resnet50 --platform dgx-a100 --precision bf16 -y
grep -q '^kernels: {precision: bf16}' half.yaml && grep -q '^  precision: mixed' half.yaml || fail "init: not half precision"
prints 'written: large.yaml' init large.yaml --model llama3-8b --platform dgx-h100-pod --strategy zero --workers 8 -y
grep -q '^kernels: {precision: bf16, attention: flash, optimizer: adamw' large.yaml || fail "init: not the kernels that people use"
run_with 0 run large.yaml -o large --draws 1 --results-only -q
grep -q ',true,' large/results.csv || fail "init: does not fit into memory"
rm -r large large.yaml
prints 'written: large.yaml' init large.yaml --model llama3-8b --platform dgx-h100-pod -y
grep -q '^  kind: zero' large.yaml || fail "init: not a strategy that fits into memory"
prints 'written: replicas.yaml' init replicas.yaml --model gpt2-small --platform dgx-a100 -y
grep -q '^kernels:.*autocast: true}' replicas.yaml && grep -q '^  fp32_gradients: true' replicas.yaml || fail "init: not PyTorch's replicas"
prints 'written: fp8.yaml' init fp8.yaml --model gpt2-small --platform dgx-h100-pod --precision fp8 -y
run_with 0 run fp8.yaml --dry-run -q
rm fp8.yaml replicas.yaml
divides() { # PLATFORM MESH [MODEL [WORKERS]]
  local model=${3:-llama3-70b}
  prints 'written: divided.yaml' init divided.yaml --model "$model" --platform "$1" ${4:+--workers "$4"} -y
  if grep -q 'autocast\|fp32_gradients' divided.yaml; then fail "init: autocast in a mesh"; fi
  grep -q "^  mesh: {$2}" divided.yaml || fail "init: not the mesh {$2} on $1"
  "$stepcast" run divided.yaml --dry-run > divided.txt
  if grep -q 'does not fit' divided.txt; then fail "init: $model does not fit on $1"; fi
  rm divided.yaml divided.txt
}
divides aws-p4d "tensor: 8" llama3-70b 32
divides lassen "tensor: 4, context: 4"
divides aurora "tensor: 2" llama3-405b  # not at 6 workers, which groups of 4 do not divide
divides aws-p5 "tensor: 2" deepseek-v3 256
rm large.yaml
refuses 2 'expected one of f32, tf32, f16, bf16, fp8, got "fp16"; did you mean "f16"?' init less.yaml --precision fp16 -y
rm half.yaml
refuses 2 'from 1 to 4' init more.yaml --model small-cnn --platform own.yaml --workers 8..64 -y
[ ! -e more.yaml ] || fail "init wrote a file in spite of an error"
prints 'start.yaml: scenario, no errors' check start.yaml own.yaml
refuses 2 'start.yaml: this file already exists' init start.yaml -y
refuses 2 'did you mean "resnet50"?' init new.yaml --model resnet5 -y
[ ! -e new.yaml ] || fail "init wrote a file in spite of an error"
sed 's/^batch_per_worker: 64/batch_per_worker: 0/; s/^sweep/swep/' start.yaml >wrong.yaml
run_with 2 check wrong.yaml own.yaml
grep -q 'wrong.yaml:[0-9]*:[0-9]*: batch_per_worker: expected an integer from 1' out && grep -q 'swep: unknown key; did you mean "sweep"' out ||
  fail "check: not every error"
grep -qF 'stepcast: 2 errors in 1 of 2 files' err || fail "check: no sum"
sed 's/^model: .*/model: small-cn/' wrong.yaml >wronger.yaml
run_with 2 check wronger.yaml
grep -q 'did you mean "small-cnn"' out || fail "check: no error of a name beside errors of keys"
rm wronger.yaml
run_with 2 check wrong.yaml own.yaml --json
python3 -c 'import json; assert [bool(r.get("error")) for r in json.load(open("out"))["files"]] == [True, True, False]' || fail "check --json: not the errors"
refuses 2 'there is no option "--draw"; did you mean "--draws"?' run start.yaml --draw 3
refuses 2 'cannot be read: No such file or directory; did you mean "start.yaml"?' run stat.yaml
run_with 0 run tiny.yaml --results-only -q -o quiet
[ -s out ] && fail "output in spite of -q"
run_with 0 run tiny.yaml --results-only --json -o quiet
python3 -c 'import json, sys; assert [r["workers"] for r in json.load(open("out"))["results"]] == [1, 2]' || fail "--json: not the results"
"$stepcast" run - --results-only --json -q -o piped <tiny.yaml >out 2>err || fail "run - did not run"
"$stepcast" check - <tiny.yaml >out 2>err && grep -qF -- '-: scenario, no errors' out || fail "check - found errors"
cmp -s quiet/results.csv piped/results.csv || fail "a scenario from standard input has other results"
run_with 4 run tiny.yaml --set global_batch=64 --set 'sweep.workers=[2, 3]' --results-only --json -q -o quiet
python3 -c 'import json; assert ["failed" in r for r in json.load(open("out"))["results"]] == [False, True]' || fail "--json: not the failed point"
run_with 0 collectives dgx-a100 --nccl 2.18 --gpus 16 --json -q
python3 -c 'import json; rows = json.load(open("out"))["collectives"]; assert rows[0]["ranks"] == 16 and rows[-1]["seconds"] > rows[0]["seconds"]' ||
  fail "collectives --json: not the times"
"$stepcast" check - <<<'name: x
workrs: 3' >out 2>err && fail "check - found no error"
grep -qF 'standard input:2:1: workrs: unknown key; did you mean "workers"?' out || fail "check -: not where the error is"
printf 'name: x\nmodel: small-cnn\ntrace: derived\nplatform: ethernet-cpu\nbatch_per_worker: 1\nstrategy: {kind: synchronous}\nsweep: {strategy.bukcet: [1 MiB]}\n' |
  "$stepcast" check - >out 2>err && fail "check - found no error in a sweep without workers"
grep -qF 'strategy.bukcet: unknown key; did you mean "bucket"?' out || fail "check -: does not name the swept key"
"$stepcast" check - <<<'name: x
platform: {name: p, node: {kind: pcie}, network: {kind: switch}}' >out 2>err && fail "check - found no error"
for key in device nodes node.memory node.device_link network.bandwidth messages; do
  grep -qF "platform.$key: missing" out || fail "check -: does not miss platform.$key"
done
refuses 2 'standard input (-) is not valid with --shard or --slurm' run - --shard 0/2
refuses 2 'standard input (-) is not valid with validate' validate - --ranks 2
run_with 0 derive --model small-cnn --batch 4 --device k80 -q -o -
cp out piped.yaml
prints 'derived: derived trace of small-cnn, batch 4' show trace piped.yaml
printf '# OSU MPI Latency Test v7.3\n# Size  Latency (us)\n8 5.0\n1048576 355.0\n' >osu.txt
run_with 0 calibrate --from osu.txt -o -
cp out piped.yaml
prints '2 x cpu-core' show platform piped.yaml
[ ! -e ./- ] || fail "a file named -"
rm piped.yaml osu.txt
run_with 0 run tiny.yaml --results-only -v -o quiet
grep -q 'CPU s, at most' err || fail "-v: no processor time"
prints '"$schema"' schema trace
refuses 2 'there is no key "nois"; did you mean "noise"?' schema scenario --table nois
rm -r own.yaml own-net.yaml pairs.yaml l40s.yaml l40s-cluster.yaml start.yaml wrong.yaml quiet piped

# A network from Hugging Face, which has no kernels here.
echo '{"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 64}' >config.json
prints 'sequence of 16 tokens' import config.json --sequence 16 -o llama.yaml
prints 'llama: one sample is one sequence of 16 tokens' show model llama.yaml
refuses 2 'layer block0_norm1: kind rms_norm is not supported by the oneDNN backend' capture --model llama.yaml --batch 1
sed 's/rms_norm/layer_norm/; /rotary/d' llama.yaml >grouped.yaml
refuses 2 'layer block0_attention: kind attention with kv_heads is not supported' capture --model grouped.yaml --batch 1
{ scenario "no kernels" | sed '/^model/d; /^trace/d; s/ethernet-cpu/this-machine/'; echo 'model: llama.yaml'; echo 'trace: derived'
  echo 'batch_per_worker: 1'; echo 'sweep: {workers: [2]}'; } >kernels.yaml
refuses 2 'model: there is no kernel for layer block0_norm1 of kind rms_norm' validate kernels.yaml --ranks 2 -o refused
sed s/hidden_size/hiden_size/ config.json >wrong.json
refuses 2 'wrong.json:1:1: hidden_size: missing' import wrong.json -o wrong.yaml
refuses 2 'expected a path ending in .yaml, got "net.json"' import config.json -o net.json
refuses 2 '--sequence' import config.json --sequence 0 -o wrong.yaml
sed 's/"vocab_size"/"mixer_blocks": 2, "vocab_size"/' config.json >wrong.json
prints 'note: without dropout; keys that are not read: mixer_blocks' import wrong.json -o wrong.yaml
rm wrong.yaml
echo '{"dim": 4096, "n_layers": 32}' >wrong.json
refuses 2 'wrong.json: expected a profile, which has "traceEvents", or the configuration of a network' import wrong.json -o wrong.yaml
[ ! -e wrong.yaml ] || fail "a network file was written in spite of an error"
rm -rf config.json wrong.json llama.yaml grouped.yaml kernels.yaml refused

# The user's mistakes.
refuses 2 "--precision and --layout: only valid with --device cuda:NUMBER" capture --model small-cnn --batch 8 --precision bf16
CUDA_VISIBLE_DEVICES='' refuses 2 "--device" capture --model small-cnn --batch 8 --device cuda:0  # no GPU, or no such build
CUDA_VISIBLE_DEVICES='' refuses 2 "--device cuda:0: " validate "$source_folder/scenarios/validate/gpu.yaml" --device cuda:0 -o v
rm -rf v
cp "$stepcast" alone  # without stepcast-gpu beside it
together=$stepcast
stepcast=$work/alone
refuses 2 "--device cuda:0: " capture --model small-cnn --batch 8 --device cuda:0
grep -qE -- "no GPU part|--target stepcast-gpu" err || fail "not said what to build"
stepcast=$together
rm alone
refuses 2 'no command "rnu"; did you mean "run"?' rnu
refuses 2 'no command "mdoel"; did you mean "model"?' show mdoel
refuses 2 'there is no option "-V" (see --help)' -V
refuses 2 'kind: expected one of scenario, platform, model, trace, device, compression, stack, got "scenari"; did you mean "scenario"?' schema scenari
refuses 2 'expected one of bayesian, evolution, random, direct, got "bayes"; did you mean "bayesian"?' search tiny.yaml --minimise step_seconds --over workers --by bayes
refuses 2 'strategy.bucket: expected a value >= 1 with its unit, such as "4 MiB", got "25MiB"; did you mean "25 MiB"?' run tiny.yaml --set strategy.bucket=25MiB
refuses 2 'got "100Gbps"; did you mean "100 Gbit/s"?' run tiny.yaml --set platform.network.bandwidth=100Gbps
refuses 2 'strategy: expected a mapping, such as {kind: zero}, got "zero"' run tiny.yaml --set strategy=zero
refuses 2 'got "ddp"; did you mean "synchronous"?' run tiny.yaml --set strategy.kind=ddp
refuses 2 'A subcommand is required'
refuses 2 'scenario is required' run
refuses 2 '--nothing' run tiny.yaml --nothing
refuses 2 'nowhere.yaml' run nowhere.yaml
refuses 2 'nowhere.yaml' show scenario nowhere.yaml
sed 's/platform:/platfrom:/' tiny.yaml >typo.yaml
refuses 2 'stepcast: typo.yaml:5:1: platfrom: unknown key' run typo.yaml
grep -qF 'did you mean "platform"?' err || fail "no suggestion for platfrom"
refuses 2 '--shard: expected i/N' run tiny.yaml --shard 2/2
refuses 2 '--shard: expected i below 2, the number of points, got 5/6' run tiny.yaml --shard 5/6
refuses 2 '--memory-limit: expected a size' run tiny.yaml --memory-limit 1
refuses 2 'got "8GB"; did you mean "8 GB"?' run tiny.yaml --memory-limit 8GB
refuses 2 'got "2h"; did you mean "2 h"?' run tiny.yaml --time-limit 2h
refuses 2 'got "200Gbps"; did you mean "200 Gbit/s"?' init none.yaml --new-platform --nic 200Gbps -y
refuses 3 'raise --memory-limit or simulate fewer workers' run tiny.yaml --memory-limit "1 MB"
refuses 2 '--time-limit: expected a time' run tiny.yaml --time-limit 1
refuses 3 'use fidelity: automatic, fewer workers or steps, or raise --time-limit' \
  run "$source_folder/scenarios/resnet50-ethernet-cpu.yaml" --set 'sweep={workers: [2048]}' --set platform.nodes=2048 --set platform.max_nodes=2048 \
  --set simulation.fidelity=message --set strategy.all_reduce=ring --time-limit "10 s"
refuses 3 'more than 100000 points' run tiny.yaml --set 'sweep.workers={from: 1, to: 200000, step: 1}'
refuses 2 '--jobs' run tiny.yaml -j 0
refuses 2 'there is no point "workers=3"' run tiny.yaml --timeline workers=3 -o none
refuses 2 'expected different points, got "workers=1" twice' run tiny.yaml --set sweep.workers=[1,1]
figure='column: step_second, kind: predicted, value: 1, source: x'
refuses 2 'published: the sweep has no point with workers=7' run tiny.yaml -o none --set "published=[{point: {workers: 7}, $figure}]"
refuses 2 'expected KEY=VALUE' run tiny.yaml --set nothing
refuses 2 'did you mean "resnet50"?' show model resnet5
refuses 2 'expected a trace of model resnet50, got one of small-cnn' run tiny.yaml --set model=resnet50
refuses 2 'source: unknown key' show scenario "$source_folder/platforms/lassen.yaml"
refuses 2 '--route: expected a platform, such as show platform NAME --route 0 1' show platform --route 0 1
prints '<link id="node1.nvlink.0-1" bandwidth="42000000000Bps" latency="4e-07s"/>' show platform dgx1v --nodes 2 --simgrid
refuses 2 'quickstar: expected a path that ends in .yaml or a name in scenarios/; did you mean "quickstart"?' run quickstar
refuses 2 '../scenarios/quickstart: expected a path that ends in .yaml or a name in scenarios/' run ../scenarios/quickstart
prints '6 points' show scenario published/aws-p3#aws-p3-resnet101-fp32
refuses 2 '--nodes: expected a platform' show platform --nodes 2
refuses 2 '--route: expected no --simgrid' show platform dgx1v --simgrid --route 0 1
refuses 2 '--nodes 44 would fit' show platform dgx1v --nodes 100 --simgrid
refuses 2 '--output: expected --simgrid with it' show platform dgx1v -o none.xml
refuses 2 '--simgrid: expected a platform' show platform --simgrid
refuses 2 'command line: nodes: expected an integer from 1 to 128, got "129"' show platform dgx1v --nodes 129
refuses 2 'expected cpu or cuda:NUMBER, got "gpu"' capture --model small-cnn --batch 8 --device gpu
mkdir taken.yaml
refuses 2 'taken.yaml is a folder, not a file' capture --model small-cnn --batch 8 -o taken.yaml
rmdir taken.yaml
refuses 2 'expected a name ending in .yaml, got "x.txt"' capture --model small-cnn --batch 8 -o x.txt
refuses 2 'from 0 to 1023' show platform ethernet-cpu --route 0 1024
refuses 2 'cannot read' plot nowhere
refuses 2 'cannot read' compare nowhere.csv nowhere.csv
printf 'workers,step_seconds\n2,1\n2,3\n' >logs.csv
refuses 2 'logs.csv: expected a column "point"; --by names the columns' compare logs.csv logs.csv
refuses 2 'logs.csv: expected a column "samples_per_second"; --column names the column' compare logs.csv logs.csv --by workers --column samples_per_second
printf 'workers,step_seconds\n2,2.5\n' >forecast.csv
prints 'maximum 25.00 %' compare forecast.csv logs.csv --by workers -o compared
[ -s compared/comparison.csv ] && [ -s compared/scatter.svg ] || fail "compare -o: no table or no picture"
rm -r forecast.csv logs.csv compared
prints 'layers differ by' compare resnet50-b32-v100-dgxs-32gb-pt2021 resnet50-b32-a100-40gb-tf32-pt2024 -o compared
grep -q 'step,step,forward,' compared/traces.csv && [ -s compared/traces.png ] || fail "compare of traces: no table or no picture"
rm -r compared
refuses 2 'expected the same network' compare resnet50-b8-cpu vgg16-b2-cpu
printf '{"traceEvents":[{"ph":"X"' >cut.json
refuses 2 'cut.json: is not complete JSON' import cut.json --model resnet50 -o trace.yaml
refuses 2 'nowhere.json: cannot read' import nowhere.json --model resnet50 -o trace.yaml
refuses 2 '--model: a profile needs either' import cut.json -o trace.yaml
refuses 2 '--model: a profile needs either' import cut.json --model resnet50 --write-model net.yaml -o trace.yaml
refuses 2 '--parameters: only valid with --write-model' import cut.json --model resnet50 --parameters sizes -o trace.yaml
refuses 2 '--write-model: expected a path ending in .yaml, got "net"' import cut.json --write-model net -o trace.yaml
refuses 2 '--write-model: expected a different file from --output' import cut.json --write-model ./net.yaml -o net.yaml
refuses 2 'cut.json: is not complete JSON' import cut.json --write-model net.yaml -o trace.yaml
[ ! -e trace.yaml ] && [ ! -e net.yaml ] || fail "a refused import wrote a file"
rm cut.json

# The network of a profile without shapes, as PyTorch without Kineto writes it.
events=
event() { events+="${events:+,}{\"name\":\"$1\",\"ph\":\"X\",\"ts\":$2,\"dur\":$3,\"tid\":1,\"pid\":\"CPU functions\",\"args\":{}}"; }
for step in 0 1000; do
  event "ProfilerStep#$step" $((step)) 900
  event aten::conv2d $((step + 10)) 90
  event aten::convolution $((step + 20)) 70
  event aten::addmm $((step + 200)) 50
  event aten::nll_loss $((step + 300)) 10
  event NllLossBackward0 $((step + 400)) 20
  event AddmmBackward0 $((step + 450)) 80
  event torch::autograd::AccumulateGrad $((step + 540)) 5
  event ConvolutionBackward0 $((step + 600)) 150
  event torch::autograd::AccumulateGrad $((step + 760)) 5
done
echo "[$events]" >whole.json
echo '27, 80' >sizes
echo 27 x >words
refuses 2 'whole.json holds no shapes (record_shapes=True); give the samples of a step' import whole.json --write-model net.yaml -o trace.yaml
refuses 2 'give a file with the sizes of its 2 parameters' import whole.json --write-model net.yaml --batch 4 -o trace.yaml
refuses 2 'expected integers, one for each parameter, got "x"' import whole.json --write-model net.yaml --parameters words --batch 4 -o trace.yaml
prints 'net: 3 layers (3 of kind measured), 107 parameters' import whole.json --write-model net.yaml --parameters sizes --batch 4 -o trace.yaml
prints '107 trainable' show model net.yaml
measured=(run "$source_folder/scenarios/resnet50-ethernet-cpu.yaml" --set model=net.yaml --set trace=trace.yaml --set batch_per_worker=4
  --set noise.jitter=none --set "sweep.workers=[1, 2]")
run_with 0 "${measured[@]}" -o measured
grep -q ',0.0004' measured/results.csv || fail "the forecast is not the profile's 400 us a step"
refuses 2 'layer conv2d is of kind measured' "${measured[@]}" --set 'strategy={kind: filter_parallel, ways: 2}' --set "sweep.workers=[2]" -o cut
prints 'written: half.yaml' derive --model resnet50 --batch 4 --device a100-40gb --precision bf16 --update fused -o half.yaml
grep -q '^precision: "bf16"' half.yaml || fail "derive: not the precision"
grep -q -- '--precision bf16 --update fused' half.yaml || fail "derive: not the options"
refuses 2 'device k80: has no shares by kind of kernel' derive --model resnet50 --batch 4 --device k80 --precision f16 -o half.yaml
rm half.yaml
refuses 2 'layer conv2d is of kind measured: no rule gives its time' derive --model net.yaml --batch 4 --device k80 -o derived.yaml
rm -r whole.json sizes words net.yaml trace.yaml measured
refuses 2 'is a device, not a file' compare /dev/zero /dev/zero
refuses 2 '--set workers=: expected a value after =, got nothing' run tiny.yaml --set workers=
STEPCAST_DATA=$work/nowhere refuses 2 'nowhere/models' show model

# Real runs: what is not there, and what cannot be.
refuses 2 '--ranks' calibrate --ranks 1 -o links.yaml
refuses 2 'expected memory, loopback or netcluster:RATE' calibrate --cluster cloud -o links.yaml
refuses 2 'expected a name ending in .yaml' calibrate -o links
refuses 2 'nowhere.txt: cannot read' calibrate --from nowhere.txt -o links.yaml
without_path 2 'mpirun not found' calibrate -o links.yaml
refuses 2 'scenario is required' validate
refuses 2 'the number of cores, got 64; with --sleep' validate tiny.yaml --ranks 64
refuses 2 'this command needs batch_per_worker' validate tiny.yaml --ranks 2
refuses 2 'tiny.yaml: name: expected a name that no other scenario has, but tiny.yaml also has the name tiny' run tiny.yaml tiny.yaml -o twice
refuses 2 'more than --ranks 2' validate tiny.yaml --ranks 2 --set 'sweep={workers: [3]}'
real=(validate tiny.yaml --ranks 2 --set batch_per_worker=64 --set noise=null --dry-run -o dry)
prints 'tiny: 2 points, 14 real runs with 42 steps in all on 2 ranks (memory)' "${real[@]}"
grep -qxF 'measured first: links.jsonl, small-cnn-b64.yaml' out || fail "validate --dry-run: not what is measured"
refuses 2 'simulated only' "${real[@]}" --set 'strategy={kind: filter_parallel, ways: 2}' --set sweep.workers=[2]
prints 'tiny: 2 points, 42 real runs with 126 steps in all on 2 ranks (memory)' "${real[@]}" --forecasts 3
learned='{mini_batches: 8, learning_rate: 0.1, data: {kind: images, samples: 640}}'
refuses 2 'expected 1 for a scenario with learning, got 2' "${real[@]}" --forecasts 2 --set "learning=$learned"
without_path 2 'mpirun not found' "${real[@]}"
refuses 2 'dry/links.jsonl is missing' "${real[@]}" --measured-in dry
[ ! -e dry ] || fail "validate --dry-run wrote a folder"

# An output folder that cannot be is found before anything is simulated.
refuses 2 'tiny.yaml/results: cannot write here' run tiny.yaml -o tiny.yaml/results

# Nothing that failed so far, and no dry run, leaves anything behind.
prints '2 points, 4 simulations' run tiny.yaml --dry-run -o dry
prints 'of processor time, ' run tiny.yaml --dry-run -o dry
prints 'does not fit: workers=2: needs ' run tiny.yaml --dry-run -o dry --set 'memory.workspace=1 PB'
prints '1 points' run tiny.yaml --dry-run -o dry --set sweep=null --set workers=2 --set noise=null
grep -qE ', some [0-9.]+ (ms|s) of processor time, [0-9.]+ (ms|s) with 3 processes$' \
  <("$stepcast" run tiny.yaml --dry-run -j 3) || fail "--dry-run says no time"
left=$(ls | grep -vxE 'out|err|tiny.yaml|typo.yaml')
[ -z "$left" ] || fail "left behind: $left"

# Names are text: a shell never sees them.
{ scenario '`touch gotcha1` $(touch gotcha2) "; touch gotcha3'; cat <<'END'; } >shell.yaml
background: [{links: '*`touch gotcha4`$(touch gotcha5)*', share: 0.5}]
workers: 1
END
refuses 2 'expected names of links' run shell.yaml -o shell
sed '/^background/d' shell.yaml >shell-plain.yaml
run_with 0 run shell-plain.yaml -j 1 -o shell
run_with 0 plot shell
prints 'touch gotcha1' show scenario shell-plain.yaml
ls | grep -q gotcha && fail "a shell ran a name"

# What there is to show.
prints '25557032 trainable in 161 tensors' show model resnet50
prints '8.17837 GFLOP forward' show model resnet50
prints 'conv1' show trace small-cnn-b64-cpu
prints '1024 x cpu-core, 1 a node' show platform ethernet-cpu
prints 'bisection' show platform ethernet-cpu
prints 'leaf' show platform ethernet-cpu --route 0 40
prints 'device 0 to device 1023' show platform ethernet-cpu
prints 'fp32' show device cpu-core
prints 'predicted workers=256 step_seconds 0.2558: ' show scenario "$source_folder/scenarios/goyal-imagenet-1h.yaml"
prints 'strategy.step_overhead' show scenario "$source_folder/scenarios/goyal-imagenet-1h.yaml"
prints synchronous show strategies
prints 'algorithm that sums gradients' show strategies zero
refuses 2 'did you mean "zero"?' show strategies zeroo
prints resnet50 show model
prints ethernet-cpu show platform

# A run, its files, its timeline.
prints 'written: full' run tiny.yaml -j 2 -o full --timeline workers=2
for file in results.csv results.jsonl manifest.json timeline.json.gz; do
  [ -s "full/$file" ] || fail "no full/$file"
done
run_with 0 run tiny.yaml --set uncertainty=default --results-only -o uncertain
head -n 1 uncertain/results.csv | grep -q step_seconds_low.*samples_per_second_low || fail "no intervals by default"
head -n 1 full/results.csv | grep -q 'step_seconds_low\|unmodelled_seconds' && fail "intervals with uncertainty: none"
[ "$(wc -l <full/results.csv)" -eq 3 ] || fail "results.csv has not a header and two points"
tr -d '\n ' <full/manifest.json | grep -qF '"run","tiny.yaml","-j","2","-o","full","--timeline","workers=2"' ||
  fail "manifest.json does not say the command"
gzip -dc full/timeline.json.gz >timeline.json
grep -q '"traceEvents"' timeline.json || fail "timeline.json has no traceEvents"
for pair in '{}' '[]'; do  # no text in it holds a bracket, so a file cut short is out of balance
  opened=$(tr -cd "${pair:0:1}" <timeline.json | wc -c)
  closed=$(tr -cd "${pair:1:1}" <timeline.json | wc -c)
  [ "$opened" -gt 0 ] && [ "$opened" -eq "$closed" ] || fail "timeline.json: $opened of $pair open, $closed close"
done
for work_of in forward backward update; do
  [ "$(grep -o "\"name\":\"conv1 $work_of\"" timeline.json | wc -l)" -eq 6 ] ||
    fail "timeline.json: conv1 $work_of is not there in 3 steps of 2 workers"
done
prints 'maximum 0.00 %' compare full/results.csv full/results.csv
prints 'drawn: full' plot full
cp -r full stale
run_with 0 run tiny.yaml --set simulation.steps=2 --results-only -o stale
for file in timeline.json.gz scaling.gp scaling.svg breakdown.png; do
  [ ! -e stale/$file ] || fail "stale/$file belongs to other results"
done

# A trace that is flagged says so in every result that used it, whichever points that are.
sed 's/^layers:/flags: ["the neighbours were loud"]\nlayers:/' "$source_folder/models/traces/resnet50-b1-cpu.yaml" >loud.yaml
{ sed '/^model/d;/^trace/d' tiny.yaml; echo 'model: resnet50'; echo 'trace: [loud.yaml, resnet50-b8-cpu]'; } >flagged.yaml
prints 'note on the trace: the neighbours were loud' run flagged.yaml --results-only -o flagged \
  --set 'sweep={workers: [1, 2], batch_per_worker: [1, 8]}'
[ "$(head -n 1 flagged/results.csv | grep -c trace_flags)" -eq 1 ] || fail "results.csv has no trace_flags"
[ "$(grep -c 'batch_per_worker=1.*neighbours were loud' flagged/results.csv)" -eq 2 ] || fail "a flag is missing in results.csv"
grep 'batch_per_worker=8' flagged/results.csv | grep -q 'neighbours were loud' && fail "a flag of another trace in results.csv"


# A key that has no effect is said to have none: where no point that gives it makes use of it, not at one of a sweep over it.
prints 'note: noise.jitter: has no effect as trace: the trace has one sample a pass' run tiny.yaml --set trace=derived --results-only -o idle
prints 'note: noise.sigma: has no effect without jitter: lognormal or layers' run tiny.yaml --set noise.sigma=0.1 --results-only -o idle
prints 'note: noise.straggler_factor: has no effect with straggler_share: 0' run tiny.yaml --set noise.straggler_share=0 --set noise.straggler_factor=2 --results-only -o idle
run_with 0 run tiny.yaml --set 'sweep={noise.sigma: [0, 0.1]}' --set workers=2 --set noise.jitter=lognormal --results-only -o idle
grep -q '^note' out && fail "a note on a sweep that is right"
run_with 0 run tiny.yaml --results-only -o idle
grep -q '^note' out && fail "a note on a scenario that is right"
grep -q without_effect idle/results.csv && fail "a column without_effect of nothing"
prints 'note: strategy.channels: has no effect with all_reduce: double_tree' run tiny.yaml --set strategy.all_reduce=double_tree --set strategy.channels=2 --results-only -o idle
[ "$(grep -c 'strategy.channels: has no effect with all_reduce: double_tree' idle/results.csv)" -eq 1 ] ||
  fail "without_effect is not in results.csv at the point of two workers alone"
prints 'note: strategy.channels: has no effect' run tiny.yaml --set strategy.all_reduce=double_tree --set strategy.channels=2 --dry-run -o idle

# A figure is fitted where something is fed in.
{ cat tiny.yaml; echo 'published: [{point: {workers: 2}, column: step_seconds, kind: fitted, value: 1, source: x}]'; } >fitted.yaml
refuses 2 'fitted.yaml:11:63: published[0].kind: fitted needs a calibrate entry in this scenario; add one or use predicted' run fitted.yaml -o none

# A wrong column of a published figure is found with the first simulation of its point, with its place.
{ cat tiny.yaml; echo "published: [{point: {workers: 2}, $figure}]"; } >column.yaml
refuses 2 'column.yaml:11:31: published: results of this point have no number in a column "step_second"' run column.yaml -o column -j 1
[ "$(wc -l <column/simulations.jsonl)" -eq 2 ] || fail "not found as early as can be"

{ cat tiny.yaml; echo "measured: [{point: {workers: 2}, column: step_second, value: 1}]"; } >measured-column.yaml
refuses 2 'measured-column.yaml:11:30: measured: results of this point have no number in a column "step_second"; did you mean "step_seconds"' \
  run measured-column.yaml -o measured-column -j 1

# A search: the same bits on any number of processes, nothing simulated twice after --resume.
search=(search tiny.yaml --maximise samples_per_second --over 'strategy.bucket=64 KiB..4096 KiB:log,strategy.all_reduce=ring|automatic'
  --set 'sweep={workers: [4]}' --evaluations 8)
prints 'at most 9 settings, some ' "${search[@]}" --dry-run -o dry
[ ! -e dry ] || fail "a dry run wrote a folder"
prints 'best: strategy.bucket=' "${search[@]}" -j 1 -o one
prints 'tiny at workers=4: 8 evaluations (bayesian)' "${search[@]}" -j 2 -o two
cmp -s one/search.csv two/search.csv || fail "search.csv differs between -j 1 and -j 2"
[ "$(wc -l <one/search.csv)" -eq 9 ] || fail "search.csv has not a header and eight evaluations"
prints 'best: ' "${search[@]}" -o one --resume
cmp -s one/search.csv two/search.csv || fail "search.csv differs after --resume"
limited=(search tiny.yaml --maximise samples_per_second --over 'strategy.bucket=64 KiB..4096 KiB:log' --set 'sweep={workers: [4]}' --evaluations 3)
"$stepcast" "${limited[@]}" --memory-limit "1 MB" -o limited >out 2>err </dev/null
prints 'best: strategy.bucket=' "${limited[@]}" -o limited --resume
prints '(evolution)' "${search[@]}" --by evolution -o three
prints ' of 12 evaluations: the method proposes no new settings' search tiny.yaml --minimise step_seconds --over 'workers=1..64' \
  --set sweep=null --set workers=8 --by evolution --evaluations 12 --population 4 -o settled
assumed='assumed=[{key: platform.network.bandwidth, range: [9 GB/s, 12 GB/s], why: "made up"}]'
prints 'best: strategy.bucket=' "${search[@]}" --set "$assumed" --draws 5 -j 1 -o draws-1
prints 'best: strategy.bucket=' "${search[@]}" --set "$assumed" --draws 5 -j 2 -o draws-2
cmp -s draws-1/search.csv draws-2/search.csv || fail "search.csv with draws differs between -j 1 and -j 2"
refuses 2 'raise --memory-limit or simulate fewer workers' "${search[@]}" -o limited --memory-limit "1 MB"
refuses 2 '--time-limit: expected a time' "${search[@]}" -o limited --time-limit 1
refuses 2 '--maximise: expected a column with numbers, got "sample_per_second"; did you mean "samples_per_second"?' search tiny.yaml \
  --maximise sample_per_second --over strategy.overlap -o four
refuses 2 'got "sample_per_second"; did you mean "samples_per_second"?' search tiny.yaml --maximise sample_per_second --over 'strategy.bucket=1 MiB..2 MiB' -o five
[ ! -e five/search.csv ] || fail "a search for a column that does not exist was run"
refuses 2 '--over model: give its values, such as model=1..8' search tiny.yaml --minimise step_seconds --over model
refuses 2 'strategy.bucekt: unknown key' search tiny.yaml --minimise step_seconds --over 'strategy.bucekt=1 MiB..2 MiB'
refuses 2 '--point: expected a point of the sweep, such as "workers=2", got "workers=3"' search tiny.yaml --minimise step_seconds --over strategy.bucket --point workers=3
prints 'best: strategy.overlap=' search tiny.yaml --maximize samples_per_second --over strategy.overlap -o american
refuses 2 '--maximise excludes --minimise' search tiny.yaml --minimize step_seconds --maximize samples_per_second --over strategy.overlap
layouts=(search gpt.yaml --layouts --gpus 8)
cat >gpt.yaml <<'YAML'
name: gpt
model: {name: gpt, source: made up, transformer_stack: {layers: 4, width: 512, heads: 8, sequence: 128, vocabulary: 1000}}
trace: derived
platform: dgx-a100
workers: 4
global_batch: 16
strategy: {kind: synchronous}
YAML
prints 'gpt: 219 layouts' "${layouts[@]}" --dry-run -o lay
[ ! -e lay ] || fail "a dry run of layouts wrote a folder"
prints 'best: pipeline' "${layouts[@]}" -j 1 -o lay-1
prints 'written: lay-2/layouts.csv' "${layouts[@]}" -j 2 -o lay-2
cmp -s lay-1/layouts.csv lay-2/layouts.csv || fail "layouts.csv differs between -j 1 and -j 2"
refuses 2 '--layouts excludes --over' "${layouts[@]}" --over strategy.bucket
refuses 2 '--gpus needs --layouts' search gpt.yaml --gpus 8 --minimise step_seconds --over strategy.bucket
refuses 2 '--maximise COLUMN or --minimise COLUMN is required' search tiny.yaml --over strategy.bucket

# A search for a loss trains its settings; a call of learn uses the trainings that an earlier one has finished.
cat >learns.yaml <<'END'
name: learns
model: tiny-dnn
trace: derived
platform: ethernet-cpu
workers: 2
batch_per_worker: 8
strategy: {kind: synchronous}
learning: {mini_batches: 40, learning_rate: 0.02, data: {kind: sequences, samples: 256, test_samples: 32}}
END
run_with 0 learn learns.yaml -o learned
cp learned/learning.csv once.csv
run_with 0 learn learns.yaml -o learned --resume
cmp -s once.csv learned/learning.csv || fail "learning.csv differs after --resume"
# Without target_loss, no table says how soon it is reached.
if grep -q 'time to' out || [ -e learned/time-to-loss.svg ]; then fail "a time to a loss that nobody asked for"; fi
prints 'time to' learn learns.yaml -o to-target --set learning.target_loss=2.2
head -1 to-target/learning-per-second.csv | grep -q 'learning_per_record,records_per_second,learning_per_second' || fail "columns of learning-per-second.csv"
refuses 3 'use fewer mini-batches, seeds or points, or raise --time-limit' learn learns.yaml --time-limit "1 ms" -o limited
refuses 2 '--time-limit: expected a time' learn learns.yaml --time-limit 1 -o limited
prints 'of processor time, ' learn learns.yaml --dry-run -o dry
refuses 3 'raise --memory-limit or simulate fewer workers' learn learns.yaml --memory-limit "1 MB" -o limited
losses=(search learns.yaml --minimise loss --over 'learning.learning_rate=0.001..0.1:log' --evaluations 5)
prints 'at most 6 settings, some ' "${losses[@]}" --dry-run -o dry
prints 'best: learning.learning_rate=' "${losses[@]}" -o losses -j 2
cp losses/search.csv once.csv
prints 'best: learning.learning_rate=' "${losses[@]}" -o losses -j 1 --resume
cmp -s once.csv losses/search.csv || fail "search.csv of losses differs after --resume"
prints 'best: learning.learning_rate=' "${losses[@]}" --set learning.data.test_samples=null -o removed
refuses 2 'use fewer mini-batches' "${losses[@]}" --time-limit "1 ms" -o limited
# Each kind of strategy is searched with its own options; those of the scenario's strategy go with it.
prints 'best: strategy.kind=' search learns.yaml --minimise loss --by random --evaluations 6 -o kinds --set strategy.bucket="64 KiB" \
  --over 'strategy.kind=synchronous|model_averaging|elastic_averaging,strategy.mini_batches=2..8,strategy.period=2..8,strategy.elastic_force=0.1..0.3'
if grep -q failed kinds/search.csv; then fail "a setting of a search across kinds of strategy was refused"; fi
refuses 2 'learning: searching for the column loss needs this key' search tiny.yaml --minimise loss --over strategy.overlap
refuses 2 'searching for the column seconds_to_target needs target_loss' search learns.yaml --minimise seconds_to_target --over strategy.overlap

# A part of the points has simulations, and no results of its own; tests/shards.sh has more.
run_with 0 run tiny.yaml -j 1 -o part --shard 1/2
[ -s part/simulations.jsonl ] && [ ! -e part/results.csv ] || fail "a part of the points has results of its own"

# Another network on more workers is other work: nothing scales from it.
run_with 0 run "$source_folder/scenarios/megatron-tensor.yaml" --draws 1 --results-only -o networks
[ "$(grep -c ',predicted,.*,0.1,,' networks/published.csv)" -eq 3 ] || fail "ideal scaling from another network"

# Somebody else's benchmark becomes a platform that can be used.
printf '# OSU MPI Latency Test v7.3\n# Size  Latency (us)\n8 5.0\n1048576 355.0\n' >osu.txt
prints 'written: osu.yaml' calibrate --from osu.txt -o osu.yaml
prints '2 x cpu-core' show platform osu.yaml
run_with 0 run tiny.yaml -j 2 --set platform=osu.yaml -o osu

# What cannot be printed ends every command with 3, also if it fits into the buffer until the last moment.
cannot_print() {
  "$stepcast" "$@" >/dev/full 2>err </dev/null
  local code=$?
  : >out
  [ $code -eq 3 ] && [ "$(grep -c '^stepcast: standard output: ' err)" -eq 1 ] || fail "exit code $code, not 3: $* >/dev/full"
}
for command in --help --version 'run --help' 'run tiny.yaml -o full' 'run tiny.yaml --dry-run' 'run tiny.yaml --json -o full' 'plot full' \
  'show model small-cnn' 'show platform ethernet-cpu' 'schema scenario' 'check tiny.yaml' 'completion bash' 'collectives --measured-tables' \
  'calibrate --from osu.txt -o -' 'compare small-cnn-b64-cpu small-cnn-b64-cpu' 'init full.yaml'; do
  cannot_print $command
done
(ulimit -n 6; "$stepcast" run tiny.yaml -o few >out 2>err)
[ $? -eq 3 ] && grep -qx 'stepcast: .*: Too many open files.*' err || fail "ulimit -n 6: the cause is not named"
(ulimit -n 32; "$stepcast" validate "$source_folder/tests/two-strategies.yaml" --ranks 2 --sleep --set noise.jitter=none -o few >out 2>err)
[ $? -eq 3 ] && grep -qx 'stepcast: 2 ranks: expected at least 64 file descriptors, got 32; raise the limit (ulimit -n)' err ||
  fail "ulimit -n 32: the cause is not named"

# An interrupted run says 4, leaves no results, and goes on to the same bits.
{ scenario "longer run"; echo 'sweep: {workers: {from: 1, to: 96, step: 1}}'; } >long.yaml
run_with 0 run long.yaml -j 2 -o whole
"$stepcast" run long.yaml -j 1 -o cut >out 2>err </dev/null &
pid=$!
for ((try = 0; try < 1200; ++try)); do
  [ "$(cat cut/simulations.jsonl 2>/dev/null | wc -l)" -ge 3 ] && break
  sleep 0.05
done
kill -INT $pid
wait $pid
code=$?
[ $code -eq 4 ] || fail "interrupted: exit code $code, not 4"
grep -q 'interrupted; continue with --resume (finished simulations are kept in cut/simulations.jsonl)' err ||
  fail "interrupted: no word of --resume"
[ -e cut/results.csv ] && fail "interrupted: results.csv is there"
before=$(wc -l <cut/simulations.jsonl)
first=$(head -n 1 cut/simulations.jsonl)
[ "$before" -lt "$(wc -l <whole/simulations.jsonl)" ] || fail "interrupted too late to see anything"
run_with 0 run long.yaml -j 2 -o cut --resume
cmp -s cut/results.csv whole/results.csv || fail "resumed: results.csv differs"
[ "$(head -n 1 cut/simulations.jsonl)" = "$first" ] || fail "resumed: the journal was started from scratch"
[ "$(wc -l <cut/simulations.jsonl)" -eq "$(wc -l <whole/simulations.jsonl)" ] || fail "resumed: the journal has not every simulation once"
run_with 0 run long.yaml -j 2 -o cut --resume --set simulation.steps=2
cmp -s cut/results.csv whole/results.csv && fail "--resume took over simulations of other inputs"
scratch='the inputs, the settings or the build of stepcast differ from those of cut; starting from scratch'
grep -q "$scratch" err || fail "--resume: no word of starting from scratch"

# Damaged lines in the middle are simulated again, and a second time there are none; another build starts from scratch.
rm -r cut && cp -r whole cut
sed -i -e '3s/.*/garbage/' -e '5s/"step_seconds":[^,]*/"step_seconds":-5/' cut/simulations.jsonl
run_with 0 run long.yaml -j 2 -o cut --resume
cmp -s cut/results.csv whole/results.csv || fail "damaged journal: results.csv differs"
grep -qx 'cut/simulations.jsonl:3: damaged; 2 lines from there on are simulated again' err || fail "damaged journal: it is not said"
cmp -s <(sort cut/simulations.jsonl) <(sort whole/simulations.jsonl) || fail "damaged journal: it differs afterwards"
run_with 0 run long.yaml -j 2 -o cut --resume
grep -q damaged err && fail "damaged journal: it still is"
cp "$stepcast" other-build
printf x >>other-build
./other-build run long.yaml -j 2 -o cut --resume >out 2>err || fail "another build: exit code $?"
grep -q "$scratch" err || fail "another build: no word of starting from scratch"

# Interrupted while plots are drawn: the same word and exit code.
mkdir -p slow
printf '#!/bin/bash\ntouch drawing-began\nsleep 1\n' >slow/gnuplot
chmod +x slow/gnuplot
PATH=$work/slow:$PATH "$stepcast" run tiny.yaml -o drawn >out 2>err </dev/null &
pid=$!
for ((try = 0; try < 1200; ++try)); do
  [ -n "$(find drawn -name drawing-began 2>/dev/null)" ] && break
  sleep 0.05
done
kill -INT $pid
wait $pid
code=$?
[ $code -eq 4 ] || fail "interrupted while drawing: exit code $code, not 4"
grep -q 'interrupted; continue with --resume' err || fail "interrupted while drawing: no word of --resume"
run_with 0 run tiny.yaml -o drawn --resume
[ -s drawn/scaling.png ] || [ -z "$(command -v gnuplot)" ] || fail "not drawn after --resume"

# An interrupted validation has no --resume, and does not promise it.
"$stepcast" validate "$source_folder/scenarios/validate/small.yaml" --ranks 2 --sleep --set noise.jitter=none -o stopped >out 2>err </dev/null &
pid=$!
for ((try = 0; try < 1200; ++try)); do
  [ -e stopped/ranks.log ] && break
  sleep 0.05
done
kill -INT $pid
wait $pid
code=$?
[ $code -eq 4 ] || fail "validate interrupted: exit code $code, not 4"
grep -qE 'interrupted; (no run was measured yet|[0-9]+ runs measured so far: .*); a new validation in that folder starts from scratch' err ||
  fail "validate interrupted: not said what is kept"
grep -q -- --resume err && fail "validate interrupted: a word of --resume"

end_test
