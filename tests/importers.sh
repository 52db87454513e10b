#!/bin/bash
# What an importer writes passes its own reader: every kind of input that import, import-platform, calibrate --from and init turn into a file,
# then `stepcast check` of the file.
# Usage: tests/importers.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
files=0

# passes FILES ARGUMENTS...: stepcast ARGUMENTS writes the FILES (separated by commas), and each of them is right.
passes() {
  local written=$1 file
  shift
  "$stepcast" "$@" >out 2>&1 </dev/null || { fail "stepcast $*"; return; }
  for file in ${written//,/ }; do
    files=$((files + 1))
    "$stepcast" check "$file" >out 2>&1 || fail "check of $file: stepcast $*"
  done
}

inputs=$source_folder/tests/platforms/discovery
gpu=(--device v100-sxm2-16gb -o found.yaml)
passes found.yaml import-platform --nvidia-smi "$inputs/dgx1.txt" "${gpu[@]}"
passes found.yaml import-platform --nvidia-smi "$inputs/nvswitch.txt" --nodes 4 "${gpu[@]}"
passes found.yaml import-platform --lstopo "$inputs/two-sockets.xml" "${gpu[@]}"
passes found.yaml import-platform --lstopo "$inputs/two-sockets.xml" --fabric "$inputs/four-leaves.txt" "${gpu[@]}"
printf 'SwitchName=s0 Nodes=tux[0-15]\nSwitchName=s1 Nodes=tux[16-31]\nSwitchName=top Switches=s[0-1]\n' >topology.conf
passes found.yaml import-platform --fabric topology.conf "${gpu[@]}"
printf '# nThread 1 nGpus 8 minBytes 8\n# Collective test starting: all_reduce_perf\n' >nccl.txt
for i in 0 1 2 3 4 5 6 7; do printf '#  Rank  %s Group  0 Pid 1 on host device  %s [0x18] NVIDIA H100\n' $i $i >>nccl.txt; done
printf '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n' >>nccl.txt
for row in "1048576 262144 float sum -1 40.0 26.21 45.87 0 40.0 26.21 45.87 0" "67108864 16777216 float sum -1 400.0 167.77 293.6 0 400.0 167.77 293.6 0"; do
  echo "$row" >>nccl.txt
done
passes measured.yaml calibrate --from nccl.txt -o measured.yaml

for file in own.yaml,--new-model own.yaml,--new-platform; do passes "${file%,*}" init "${file%,*}" "${file#*,}" -y; rm own.yaml; done

# A configuration of each form of block.
tiny='"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 128'
for family in llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 olmo2 starcoder2 falcon gpt_neox \
  'bert", "type_vocab_size": 2, "x": "' 'electra", "embedding_size": 32, "type_vocab_size": 2, "x": "' 'opt", "ffn_dim": 128, "x": "' \
  'bloom", "n_layer": 2, "n_head": 4, "x": "' 'mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "x": "' \
  'qwen2_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64, "x": "' \
  'deepseek_v3", "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "x": "'; do
  echo "{\"model_type\": \"$family\", $tiny}" >config.json
  passes net.yaml import config.json --sequence 16 -o net.yaml
done

two='"d_model": 64, "vocab_size": 100, "is_encoder_decoder": true'
images='"image_size": 32, "patch_size": 4, "num_channels": 3, "num_labels": 10'
for config in "\"model_type\": \"olmo\", $tiny" \
  "\"model_type\": \"mamba2\", $tiny, \"num_heads\": 4, \"head_dim\": 32, \"n_groups\": 2, \"state_size\": 8" \
  "\"model_type\": \"t5\", $two, \"d_kv\": 16, \"d_ff\": 128, \"num_layers\": 2, \"num_heads\": 4, \"feed_forward_proj\": \"gated-gelu\", \"dropout_rate\": 0.1" \
  "\"model_type\": \"whisper\", $two, \"encoder_layers\": 2, \"decoder_layers\": 2, \"encoder_attention_heads\": 4, \"decoder_attention_heads\": 4, \"encoder_ffn_dim\": 128, \"decoder_ffn_dim\": 128, \"num_mel_bins\": 8, \"max_source_positions\": 20, \"max_target_positions\": 16"; do
  echo "{$config}" >config.json
  passes net.yaml import config.json --sequence 16 -o net.yaml
done
for config in "\"model_type\": \"dinov2\", $tiny, $images, \"use_swiglu_ffn\": true" \
  "\"model_type\": \"swin\", $images, \"embed_dim\": 16, \"depths\": [2, 2], \"num_heads\": [2, 4], \"window_size\": 4, \"hidden_dropout_prob\": 0.1" \
  "\"model_type\": \"convnext\", $images, \"hidden_sizes\": [16, 32], \"depths\": [1, 2]"; do
  echo "{$config}" >config.json
  passes net.yaml import config.json -o net.yaml
done

# A profile of a GPU with shapes, where an addition reads two layers.
events=
event() { # CATEGORY NAME START LENGTH THREAD ARGUMENTS
  events+="${events:+,}{\"ph\":\"X\",\"cat\":\"$1\",\"name\":\"$2\",\"ts\":$3,\"dur\":$4,\"pid\":1,\"tid\":$5,\"args\":{$6}}"
}
id=0
operator() { # NAME START SEQUENCE FORWARD_THREAD SHAPES
  id=$((id + 1))
  event cpu_op "$1" "$2" 8 1 "\"External id\":$id,\"Sequence number\":$3,\"Fwd thread id\":$4,\"Input Dims\":$5"
  event cuda_runtime cudaLaunchKernel $(($2 + 1)) 1 1 "\"correlation\":$id"
  event kernel sgemm $(($2 + 5000)) 10 7 "\"correlation\":$id,\"External id\":$id,\"device\":0"
}
for step in 1000 2000; do
  event user_annotation "ProfilerStep#$step" $step 500 1 ''
  operator aten::linear $((step + 10)) $((step + 1)) 0 '[[2,4],[4,4],[4]]'
  operator aten::relu $((step + 30)) $((step + 2)) 0 '[[2,4]]'
  operator CompiledFunction $((step + 50)) $((step + 3)) 0 '[[4],[2,4]]'
  operator aten::add $((step + 70)) $((step + 4)) 0 '[[2,4],[2,4],[]]'
  operator aten::mse_loss $((step + 90)) $((step + 5)) 0 '[[2,4],[2,4],[]]'
  operator MseLossBackward0 $((step + 110)) $((step + 5)) 1 '[[]]'
  operator AddBackward0 $((step + 130)) $((step + 4)) 1 '[[2,4]]'
  operator CompiledFunctionBackward $((step + 150)) $((step + 3)) 1 '[[2,4]]'
  event cpu_op torch::autograd::AccumulateGrad $((step + 160)) 5 1 '"Input Dims":[[4]]'
  operator ReluBackward0 $((step + 170)) $((step + 2)) 1 '[[2,4]]'
  operator AddmmBackward0 $((step + 190)) $((step + 1)) 1 '[[2,4]]'
  event cpu_op torch::autograd::AccumulateGrad $((step + 200)) 5 1 '"Input Dims":[[4]]'
  event cpu_op torch::autograd::AccumulateGrad $((step + 210)) 5 1 '"Input Dims":[[4,4]]'
done
echo "{\"traceEvents\":[$events]}" >profile.json
passes net.yaml,trace.yaml import profile.json --batch 2 --write-model net.yaml -o trace.yaml
grep -q 'host:' trace.yaml && fail "the host's times of a profiled step are in the trace"
passes net.yaml,trace.yaml import profile.json --batch 2 --step "0.4 ms" --write-model net.yaml -o trace.yaml
grep -q 'host:' trace.yaml || fail "--step: no host's times"
"$stepcast" import profile.json --batch 2 --step "0.6 ms" --write-model net.yaml -o trace.yaml 2>&1 | grep -qF 'up to the 0.5 ms of a profiled step' ||
  fail "--step above the profiled step"
"$stepcast" import profile.json --batch 2 --model net.yaml -o trace.yaml 2>&1 | grep -qF 'CompiledFunction is several layers in one' ||
  fail "--model with a compiled region"

onnx='
from onnx import TensorProto, helper
weights = [helper.make_tensor("w", TensorProto.FLOAT, [4, 8], [0.1] * 32), helper.make_tensor("b", TensorProto.FLOAT, [8], [0.0] * 8)]
nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Add", ["y", "b"], ["z"]), helper.make_node("Relu", ["z"], ["out"])]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name, size in (("x", 4), ("out", 8))]
open("net.onnx", "wb").write(helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)).SerializeToString())'
if python3 -c "$onnx" 2>/dev/null || /usr/bin/python3 -c "$onnx" 2>/dev/null; then
  passes onnx.yaml import net.onnx -o onnx.yaml
fi

echo "$files files written by importers, $failures failures"
exit $((failures > 0))
