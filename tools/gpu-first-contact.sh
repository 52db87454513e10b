#!/usr/bin/env bash
# The first four minutes on a GPU: they give traces even where parts fail, and say what to do next.
#   tools/gpu-first-contact.sh [OUT]
# OUT: a folder (build/gpu-first-contact, which git ignores, if it is left out), or the archive OUT.tar.gz of an earlier call, which
# goes on. Stages, the most valuable first: the program (STEPCAST_GPU, or one that was carried in build/gpu or build/release, else
# it is built), the check of all layers for each precision, one capture of ResNet-50 with 64 samples for each precision with every
# sample of every layer, PyTorch's step beside it, then compute-sanitizer's memcheck and racecheck on the small cases of the
# check. After each stage, at the end and on TERM all results are in the one file OUT.tar.gz.
# Exit codes: 0 all is well, 1 a stage failed, 2 no GPU or bad usage, 3 nothing failed and something is left: call again.
# Environment: SECONDS_IN_ALL (240), STEPCAST_GPU, and what gpu-validate.sh takes for the build.
. "$(dirname "$0")/gpu-stages.sh"
begin 240 "$@"
pairs=("f32 nchw" "tf32 nhwc" "bf16 nhwc" "f16 nhwc")

capture() {  # PRECISION LAYOUT
  "$program" capture --model resnet50 --batch 64 --precision "$1" --layout "$2" --steps 20 --warm-up 10 \
    -o "$out/traces/resnet50-b64-$1-$2-gpu.yaml"
}

# racecheck looks at the kernels of this project alone: with the libraries' kernels it takes minutes.
sanitize() {  # TOOL
  local only=()
  [[ $1 != racecheck ]] || only=(--kernel-name kns=stepcast)
  compute-sanitizer --tool "$1" "${only[@]}" --error-exitcode 9 --print-limit 20 "$program" check --precisions f32
}

run_stage "$@"

{ date -u +%FT%TZ; uname -srm; timeout 10 nvidia-smi || true; git -C "$root" rev-parse HEAD 2>/dev/null || true; } >"$out/machine.txt" 2>&1
build_or_stop 125
"$program" --version >"$out/version.txt" 2>&1 || { cat "$out/version.txt"; echo "$program does not start here: build it on this machine (STEPCAST_GPU= , rm -r build/gpu)"; failed+=(program); }
for pair in "${pairs[@]}"; do stage "check-${pair% *}" 20 check "${pair% *}"; done
for pair in "${pairs[@]}"; do stage "capture-${pair% *}" 30 capture $pair; done
if have_torch; then stage torch 90 torch_comparison 64; else echo "torch: skipped: python3 has no torch and torchvision"; fi
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do stage $tool 40 sanitize $tool; done
else
  echo "memcheck, racecheck: skipped: compute-sanitizer is not in PATH (it is in the CUDA toolkit's bin)"
fi

# The few numbers that matter, and what to do next.
{
  for pair in "${pairs[@]}"; do
    trace=$out/traces/resnet50-b64-${pair% *}-${pair#* }-gpu.yaml
    [[ -e $trace ]] || { echo "ResNet-50, 64 samples, ${pair% *}: no trace"; continue; }
    awk -v p="${pair% *}" -v s="$(median_step "$trace")" -v f="$(grep -c '^flags:' "$trace" || true)" \
      'BEGIN { printf "ResNet-50, 64 samples, %s: %.2f ms a step, %.0f images/s%s\n", p, 1e3 * s, 64 / s, (f > 0 ? ", with flags" : "") }'
  done
  grep -hE 'arrays within' "$out"/logs/check-*.log 2>/dev/null || echo "check: no result"
  [[ ! -e $out/throughput.csv ]] || awk -F, 'NR > 1 { printf "beside PyTorch, %s: %.2f of its rate\n", $1, $6 }' "$out/throughput.csv"
} | tee "$out/summary.txt"
echo "results: $out.tar.gz"
finish
echo "next: keep the archive, then run tools/gpu-validate.sh for the captures of the other networks and the ranks"
