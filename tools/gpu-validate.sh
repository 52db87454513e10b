#!/usr/bin/env bash
# Runs all checks and measurements that need a GPU, in under 10 minutes on one H100 or H200: builds stepcast-gpu, checks every layer,
# runs the GPU tests, compares ResNet-50's throughput with PyTorch's if python3 has torch and torchvision,
# captures some models, forecasts steps at batch sizes that were not captured, measures and compares them, and trains on two ranks
# (which share a GPU through the host, or have one GPU each and use NCCL). tools/gpu-first-contact.sh comes before it.
#   tools/gpu-validate.sh [OUT]
# OUT: a folder (build/gpu-validate, which git ignores, if it is left out), or the archive OUT.tar.gz of an earlier call, which goes on.
# Each stage has a time limit: captures start with those that are estimated to be quick and stop when the next would end too late.
# A second call continues and skips finished stages. A stage that fails does not stop the others, except for the build; its log is
# OUT/logs/STAGE.log, and the last lines of output list failed and unfinished stages. After each stage, at the end and on TERM all
# results are packed into OUT.tar.gz.
# Exit codes: 0 all stages done, 1 a stage failed, 2 no GPU or bad usage, 3 no stage failed but some are unfinished.
# Environment: SECONDS_IN_ALL (600), MODELS (those of capture-all; "all": every one), BATCHES (16,32,64), NEW_BATCHES (24,48),
# STEPCAST_GPU (an existing program, with its tests in the same folder), CMAKE_PREFIX_PATH, CUBLAS_ROOT, CUDNN_ROOT, NCCL_ROOT
# (libraries in other places, see tools/gpu-packages.sh).
. "$(dirname "$0")/gpu-stages.sh"
begin 600 "$@"
mkdir -p "$out/validation"
batches=${BATCHES:-16,32,64}
new_batches=${NEW_BATCHES:-24,48}
throughput_batch=64

# share UNITS: seconds for a stage that can use any amount of time: its share of the time left without the ranks' stages.
units_left=9
ranks_limit=150
share() {
  echo $(((budget - ranks_limit - SECONDS) * $1 / units_left))
}

# Runs all GPU tests except those of the layers, which the stage `check` covers with errors per layer.
run_tests() {
  local built=${program%/*}
  [[ -e $built/tests/gpu/gpu_device_tests ]] || { echo "the tests were not built; is Catch2 missing?"; return 1; }
  ctest --test-dir "$built" -L gpu -E "every layer computes" --output-on-failure | tee "$out/tests.txt"
  ! grep -q Skipped "$out/tests.txt"
}

# Pairs of PRECISION and LAYOUT: plain fp32 in its usual layout, tensor cores with channels innermost.
pairs=("f32 nchw" "tf32 nhwc" "bf16 nhwc")

# Captures a model at the batch size of the comparison with PyTorch, in all precisions, then at the other batch sizes.
capture_in_all() {  # MODEL
  local pair these one code=0 end=$STAGE_SECONDS
  for these in "$throughput_batch" "$batches"; do
    for pair in "${pairs[@]}"; do
      one=0
      STAGE_SECONDS=$((end - SECONDS))
      capture_all $pair "$1" "$these" || one=$?
      ((one == 0 || code == 1)) || code=$one
    done
  done
  return "$code"
}

validate() {  # PRECISION LAYOUT
  "$program" validate --precision "$1" --layout "$2" --traces "$out/traces" --batches "$new_batches" \
    --seconds "$((STAGE_SECONDS - 8))" -o "$out/validation"
}

# Trains on two ranks. PATH: host (ranks may share a GPU) or nccl (one GPU per rank). With SWEEP only these points of the scenario.
ranks() {  # PATH NAME [SWEEP]
  "$program" run "$root/scenarios/validate/gpu.yaml" --ranks 2 --path "$1" --precision tf32 --layout nhwc --repeats 3 \
    ${3:+--set "sweep=$3"} -o "$out/ranks-$2"
}
# Points in the order of what they need of NCCL, each point in processes of its own, so that one that hangs costs only itself: one
# communicator alone; several collectives; then links, on which messages travel during collectives.
resnet="model: [resnet50], batch_per_worker: [32]"
nccl_synchronous="[{model: [small-cnn], batch_per_worker: [64], strategy: [{kind: synchronous, all_reduce: ring}]}]"
nccl_collectives="[{$resnet, strategy: [{kind: synchronous, all_reduce: ring, bucket: 25 MB}, {kind: synchronous, all_reduce: ring, overlap: false}, \
{kind: zero, stage: 2, bucket: 25 MB}, {kind: model_averaging, mini_batches: 4, aggregation: all_reduce, all_reduce: ring}]}]"
nccl_tensor="[{model: [small-transformer], batch_per_worker: [64], strategy: [{kind: tensor, ways: 2}]}]"
nccl_pipeline="[{$resnet, strategy: [{kind: pipeline, stages: 2, micro_batches: 4}]}]"
nccl_server="[{model: [small-cnn], batch_per_worker: [64], strategy: [{kind: parameter_server, server: own_device}]}]"

compare_with_torch() {
  local missing=0
  torch_comparison "$throughput_batch" || missing=$?
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

run_stage "$@"

build_or_stop 125
for precision in f32 tf32 bf16 f16; do stage "check-$precision" 20 check "$precision"; done
stage tests 60 run_tests
stage resnet50 45 capture_in_all resnet50
if have_torch; then
  stage torch 90 compare_with_torch
else
  echo "torch: skipped: python3 has no torch and torchvision"
fi
for pair in "${pairs[@]}"; do
  stage "capture-${pair% *}" "$(share 2)" capture_all $pair "${MODELS:-}" "$batches"
  stage "validate-${pair% *}" "$(units_left=$((units_left - 2)); share 1)" validate $pair
  units_left=$((units_left - 3))
done
stage ranks-host "$ranks_limit" ranks host host
if (($(nvidia-smi -L 2>/dev/null | wc -l) >= 2)); then
  for points in synchronous collectives tensor pipeline server; do
    sweep=nccl_$points
    stage "ranks-nccl-$points" "$ranks_limit" ranks nccl "nccl-$points" "${!sweep}"
  done
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
finish
