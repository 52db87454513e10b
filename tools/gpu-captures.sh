#!/usr/bin/env bash
# Captures the networks of the four documents of the scorecard on a GPU, in under 12 minutes, in the order of the documents: mesh-1k and
# mesh-2k (Dryden et al.); the 3DGAN, and its generator and discriminator alone (Vlimant et al.); the DNN and the DBLSTM of Chen and
# Huo; Seide's DNN; NNLO's GRU; AlexNet; DistBelief's speech network. Each at three batch sizes, those of the scenarios among them. By the
# estimates for an H200, f32 takes six minutes, most of it for the meshes, and bf16 one and a half.
# A trace has the times of passes, of whole steps, and of steps as one CUDA graph, whose difference is what the GPU waits for the host.
#   tools/gpu-captures.sh [OUT]
# OUT: a folder (build/gpu-captures, which git ignores, if it is left out), or the archive OUT.tar.gz of an earlier call, which goes on.
# After each network, at the end and on TERM all traces are packed into OUT.tar.gz. A second call continues and skips what is there.
# Exit codes: 0 all is captured, 1 a capture failed, 2 no GPU or bad usage, 3 nothing failed and something is left: call again.
# Environment: SECONDS_IN_ALL (700), PAIRS ("f32 nchw,bf16 nhwc": precisions and layouts, in this order), STEPCAST_GPU (an existing
# program), and what gpu-validate.sh takes for the build.
. "$(dirname "$0")/gpu-stages.sh"
begin 700 "$@"
run_stage "$@"

networks=("mesh-1k 1,2,4" "mesh-2k 1,2,4" "3dgan 16,32,64" "gan-generator 16,32,64" "gan-discriminator 16,32,64" "chen-huo-dnn 256,512,1024"
  "chen-huo-dblstm 16,32,64" "seide-dnn 720,1440,2880" "nnlo-gru 50,100,200" "alexnet 64,128,256" "distbelief-speech 100,500,1000")
build_or_stop 125
IFS=, read -ra pairs <<<"${PAIRS:-f32 nchw,bf16 nhwc}"
for pair in "${pairs[@]}"; do
  # shellcheck disable=SC2086  # both are lists of words
  for network in "${networks[@]}"; do stage "capture-${network% *}-${pair% *}" "$budget" capture_all $pair $network; done
done
echo "traces: $(find "$out/traces" -name '*.yaml' | wc -l) of $((3 * ${#networks[@]} * ${#pairs[@]})) in $out.tar.gz"
finish
