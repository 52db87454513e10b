#!/usr/bin/env bash
# Runs all checks and measurements that need a GPU, in under 9 minutes on one H100 or H200: builds stepcast-gpu, checks every layer,
# runs the GPU tests, measures the device, compares ResNet-50's throughput with PyTorch's if python3 has torch and torchvision,
# captures all models, forecasts steps at batch sizes that were not captured, measures and compares them, and trains on two ranks
# (which share a GPU through the host, or have one GPU each and use NCCL).
#   tools/gpu-validate.sh OUT_DIR
# Each stage has a time limit: captures start with those that are estimated to be quick and stop when the next would end too late.
# A second call continues and skips finished stages. A stage that fails does not stop the others; its log is
# OUT_DIR/logs/STAGE.log, and the last lines of output list failed and unfinished stages.
# Exit codes: 0 all stages done, 1 a stage failed, 2 no GPU or bad usage, 3 no stage failed but some are unfinished.
# Environment: SECONDS_IN_ALL (540), BATCHES (16,32,64), NEW_BATCHES (24,48), STEPCAST_GPU (an existing program, with
# its tests in the same folder), CMAKE_PREFIX_PATH, CUBLAS_ROOT, CUDNN_ROOT, NCCL_ROOT (libraries in other places, see tools/gpu-packages.sh).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

complain() {
  echo "gpu-validate: $1" >&2
  exit 2
}

(($# >= 1)) || complain "expected one argument, the folder to write to"
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null && ! nvidia-smi -L >/dev/null 2>&1; then
  complain "there is no GPU here: no /dev/nvidia0, and nvidia-smi lists none"
fi

out=$1
mkdir -p "$out"/{logs,done,traces,validation}
out=$(cd "$out" && pwd)
export STEPCAST_DATA=$root
budget=${SECONDS_IN_ALL:-540}
batches=${BATCHES:-16,32,64}
new_batches=${NEW_BATCHES:-24,48}
program=${STEPCAST_GPU:-$root/build/gpu/stepcast-gpu}
throughput_batch=64
failed=()
unfinished=()
SECONDS=0

# last_words LOG: the last line of a log that is no traced command.
last_words() {
  grep -v '^+' "$1" | tail -n 1
}

# stage NAME LIMIT COMMAND...: runs a stage for at most LIMIT seconds and the time that is left. If the command exits with 3 or
# there is no time left, the next call of this script continues it.
stage() {
  local name=$1 limit=$2 left=$((budget - SECONDS)) code=0
  shift 2
  [[ -e $out/done/$name ]] && { echo "$name: done by an earlier call"; return; }
  ((limit < left)) || limit=$left
  if ((limit < 10)); then
    echo "$name: not started: no time left"
    unfinished+=("$name")
    return
  fi
  local begin=$SECONDS
  STAGE_SECONDS=$limit timeout --kill-after=5 "$limit" bash "$root/tools/gpu-validate.sh" "$out" "$@" >"$out/logs/$name.log" 2>&1 || code=$?
  if ((code == 0)); then
    touch "$out/done/$name"
    echo "$name: done in $((SECONDS - begin)) s"
  elif ((code == 3)); then
    unfinished+=("$name")
    echo "$name: unfinished after $((SECONDS - begin)) s: $(last_words "$out/logs/$name.log")"
  else
    failed+=("$name")
    echo "$name: FAILED with $code after $((SECONDS - begin)) s: $(last_words "$out/logs/$name.log")"
  fi
}

# share UNITS: seconds for a stage that can use any amount of time: its share of the time left without the ranks' stages.
units_left=9
ranks_limit=80
share() {
  echo $(((budget - ranks_limit - SECONDS) * $1 / units_left))
}

build() {
  [[ -n ${STEPCAST_GPU:-} ]] && return
  local more=()
  [[ -n ${CUDNN_ROOT:-} ]] && more+=("-DCUDNN_ROOT=$CUDNN_ROOT")
  [[ -n ${NCCL_ROOT:-} ]] && more+=("-DNCCL_ROOT=$NCCL_ROOT")
  [[ -n ${CUBLAS_ROOT:-} ]] && more+=("-DCUBLAS_ROOT=$CUBLAS_ROOT")
  cd "$root"
  cmake --preset gpu -DSTEPCAST_CUDA_ARCHITECTURES=native "${more[@]}"
  cmake --build --preset gpu --target stepcast-gpu
  cmake --build --preset gpu --target gpu_device_tests || echo "the tests could not be built; going on without them"
}

# Runs all GPU tests except those of the layers, which the stage `check` covers with errors per layer.
run_tests() {
  local built=${program%/*}
  [[ -e $built/tests/gpu/gpu_device_tests ]] || { echo "the tests were not built; is Catch2 missing?"; return 1; }
  ctest --test-dir "$built" -L gpu -E "every layer computes" --output-on-failure | tee "$out/tests.txt"
  ! grep -q Skipped "$out/tests.txt"
}

# One process per precision, because a process whose GPU became unusable cannot go on.
check() {
  local precision code=0
  for precision in f32 tf32 bf16 f16; do "$program" check --precisions "$precision" || code=$?; done
  return "$code"
}

# Pairs of PRECISION and LAYOUT: plain fp32 in its usual layout, tensor cores with channels innermost.
pairs=("f32 nchw" "tf32 nhwc" "bf16 nhwc")

# Like validate, stops some seconds before the stage's limit. A capture that makes the GPU unusable (exit code 4) is skipped in the
# next round.
capture() {  # PRECISION LAYOUT [MODEL BATCHES]
  local code end=$((SECONDS + STAGE_SECONDS - 8))
  while ((SECONDS < end)); do
    code=0
    "$program" capture-all --precision "$1" --layout "$2" --batches "${4:-$batches}" --seconds $((end - SECONDS)) ${3:+--models "$3"} \
      -o "$out/traces" || code=$?
    ((code == 4)) || return "$code"
  done
  return 3
}

# Captures a model at the batch size of the comparison with PyTorch, in all precisions, then at the other batch sizes.
capture_in_all() {  # MODEL
  local pair these one code=0 end=$STAGE_SECONDS
  for these in "$throughput_batch" "$batches"; do
    for pair in "${pairs[@]}"; do
      one=0
      STAGE_SECONDS=$((end - SECONDS))
      capture $pair "$1" "$these" || one=$?
      ((one == 0 || code == 1)) || code=$one
    done
  done
  return "$code"
}

validate() {  # PRECISION LAYOUT
  "$program" validate --precision "$1" --layout "$2" --traces "$out/traces" --batches "$new_batches" \
    --seconds "$((STAGE_SECONDS - 8))" -o "$out/validation"
}

# Trains on two ranks. PATH: host (ranks may share a GPU) or nccl (one GPU per rank).
ranks() {
  "$program" run "$root/scenarios/validate/gpu.yaml" --ranks 2 --path "$1" --precision tf32 --layout nhwc --repeats 3 \
    -o "$out/ranks-$1"
}

# median_step TRACE: median of the trace's steps without events inside.
median_step() {
  sed -n 's/^step_seconds: \[\(.*\)\]$/\1/p' "$1" | tr -d ' ' | tr ',' '\n' | sort -g | awk '{ v[NR] = $1 } END {
    if (NR == 0) exit 1; print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# Unfinished (3) while a trace is missing; PyTorch is timed only once.
compare_with_torch() {
  local missing=0
  if [[ ! -e $out/torch.csv ]]; then
    python3 "$root/tools/gpu-resnet50.py" --batch "$throughput_batch" >"$out/torch.part"
    mv "$out/torch.part" "$out/torch.csv"
  fi
  {
    echo "precision,layout,batch,stepcast_images_per_second,torch_images_per_second,ratio"
    while IFS=, read -r precision layout batch _ rate; do
      trace=$out/traces/resnet50-b$batch-$precision-$layout-gpu.yaml
      [[ -e $trace ]] || { missing=3; continue; }
      awk -v p="$precision" -v l="$layout" -v b="$batch" -v s="$(median_step "$trace")" -v r="$rate" \
        'BEGIN { printf "%s,%s,%d,%.1f,%.1f,%.3f\n", p, l, b, b / s, r, b / s / r }'
    done < <(tail -n +2 "$out/torch.csv")
  } >"$out/throughput.csv"
  cat "$out/throughput.csv"
  awk -F, 'NR > 1 && $6 < 0.9 { print "below 0.9 of PyTorch: " $0; bad = 1 } END { exit bad }' "$out/throughput.csv"
  return "$missing"
}

plot() {
  cat "$out"/validation/measured-*.csv | awk -F, '$1 != "model"' >"$out/validation/points.csv"
  gnuplot <<END
set terminal svg size 640,640
set output "$out/validation/scatter.svg"
set datafile separator ","
set logscale xy
set xlabel "measured step [ms]"
set ylabel "predicted step [ms]"
set key left
plot x title "equal", "$out/validation/points.csv" using (1e3*\$6):(1e3*\$5) with points pt 7 title "model and batch"
END
}

summarize() {
  {
    date -u +%F
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    echo "traces: $(find "$out/traces" -name '*.yaml' | wc -l), of them with flags: $(grep -l '^flags:' "$out"/traces/*.yaml 2>/dev/null | wc -l)"
    awk -F, 'FNR > 1 { e = $7 < 0 ? -$7 : $7; n++; if (e > 0.03) far++; if (e > worst) worst = e }
      END { printf "points: %d, outside 3 %%: %d, worst: %.1f %%\n", n, far, 100 * worst }' "$out"/validation/measured-*.csv 2>/dev/null || echo "points: none"
    cat "$out/throughput.csv" 2>/dev/null || echo "no comparison with PyTorch"
  } | tee "$out/summary.txt"
}

# With more arguments: runs one stage, in a process of its own that `timeout` can end.
if (($# > 1)); then
  set -x
  "${@:2}"
  exit
fi

stage build 125 build
stage check 60 check
stage tests 60 run_tests
stage probe 25 "$program" probe --precision tf32 --layout nhwc -o "$out/gpu-probes.yaml"
stage resnet50 45 capture_in_all resnet50
if python3 -c 'import torch, torchvision' 2>/dev/null; then
  stage torch 45 compare_with_torch
else
  echo "torch: skipped: python3 has no torch and torchvision"
fi
for pair in "${pairs[@]}"; do
  stage "capture-${pair% *}" "$(share 2)" capture $pair
  stage "validate-${pair% *}" "$(units_left=$((units_left - 2)); share 1)" validate $pair
  units_left=$((units_left - 3))
done
stage ranks-host "$ranks_limit" ranks host
if (($(nvidia-smi -L 2>/dev/null | wc -l) >= 2)); then
  stage ranks-nccl "$ranks_limit" ranks nccl
else
  echo "ranks-nccl: skipped: NCCL needs one GPU per rank, and there is only one"
fi
if ! compgen -G "$out/validation/measured-*.csv" >/dev/null; then
  echo "plot: skipped: nothing was measured"
elif ! command -v gnuplot >/dev/null; then
  echo "plot: skipped: gnuplot is not installed"
else
  plot >"$out/logs/plot.log" 2>&1 || failed+=(plot)
fi
summarize
((${#unfinished[@]} == 0)) || echo "${#unfinished[@]} stages are unfinished, run the command again to continue: ${unfinished[*]}"
if ((${#failed[@]} > 0)); then
  echo "${#failed[@]} stages failed: ${failed[*]}"
  exit 1
fi
((${#unfinished[@]} == 0)) || exit 3
