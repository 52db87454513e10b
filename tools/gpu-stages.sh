# Sourced by gpu-first-contact.sh, gpu-validate.sh and gpu-captures.sh: stages with time limits whose results are packed into one archive, because
# a rented machine is lost with its disks. The script calls begin, defines its commands, calls run_stage, build_or_stop and stage, and finish.
# shellcheck shell=bash
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=${script:-$(realpath "$0")}

# The first comment of the script is its help.
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"
  exit
fi

complain() {
  echo "$(basename "$script" .sh): $1" >&2
  exit 2
}

# Answers within a second: beside a broken driver nvidia-smi can hang, and a signal may not end it, so it is not waited for.
require_gpu() {
  local first=
  compgen -G '/dev/nvidia[0-9]*' >/dev/null && return
  read -r -t 0.8 first < <(exec nvidia-smi -L 2>/dev/null) || true
  kill -9 $! 2>/dev/null || true
  [[ $first == GPU* ]] || complain "there is no GPU here: no /dev/nvidia0, and nvidia-smi lists none"
}

# open_results ARGUMENT: sets $out to a folder. The archive of an earlier call is unpacked, and the work goes on from it.
open_results() {
  out=${1:-$root/build/$(basename "$script" .sh)}
  if [[ $out == *.tar.gz ]]; then
    local archive=$out
    out=${archive%.tar.gz}
    if [[ -e $archive && ! -d $out ]]; then
      mkdir -p "$out"
      tar xzf "$archive" -C "$out" --strip-components=1 || complain "$archive: cannot be unpacked"
    fi
  fi
  mkdir -p "$out"/{logs,done,traces}
  out=$(cd "$out" && pwd)
}

# begin BUDGET [ARGUMENTS...]: sets $program (STEPCAST_GPU, or one that was carried in build/gpu or build/release, else it is built), $budget
# (SECONDS_IN_ALL, or these seconds) and $out. With more arguments than OUT, the script is a stage of its own call.
begin() {
  local place
  program=${STEPCAST_GPU:-}
  for place in gpu release; do
    [[ -n $program ]] || [[ ! -x $root/build/$place/stepcast-gpu ]] || program=$root/build/$place/stepcast-gpu
  done
  program=${program:-$root/build/gpu/stepcast-gpu}
  budget=${SECONDS_IN_ALL:-$1}
  shift
  export STEPCAST_DATA=$root
  SECONDS=0
  if (($# > 1)); then
    trap - EXIT TERM INT
    out=$1
  else
    require_gpu
    open_results "${1:-}"
  fi
}

# run_stage ARGUMENTS...: with more arguments than OUT, runs them as one stage, in a process of its own that `timeout` can end.
run_stage() {
  if (($# > 1)); then
    set -x
    "${@:2}"
    exit
  fi
}

# What several scripts run. One process for each check, because a process whose GPU became unusable cannot go on.
check() {  # PRECISION
  "$program" check --precisions "$1"
}

# Stops some seconds before the stage's limit. A capture that makes the GPU unusable (exit code 4) is skipped in the next round.
capture_all() {  # PRECISION LAYOUT MODELS BATCHES; MODELS may be empty
  local code end=$((SECONDS + STAGE_SECONDS - 8))
  while ((SECONDS < end)); do
    code=0
    "$program" capture-all --precision "$1" --layout "$2" ${3:+--models "$3"} --batches "$4" --seconds $((end - SECONDS)) -o "$out/traces" || code=$?
    ((code == 4)) || return "$code"
  done
  return 3
}

# The last lines: what failed and what is left. Ends the script with 1, 3 or 0.
finish() {
  if ((${#unfinished[@]} > 0)); then echo "${#unfinished[@]} stages are unfinished, run the command again to continue: ${unfinished[*]}"; fi
  if ((${#failed[@]} > 0)); then
    echo "${#failed[@]} stages failed: ${failed[*]}. Read $out/logs/${failed[0]}.log first; mend it, then call again: what is done stays done"
    exit 1
  fi
  ((${#unfinished[@]} == 0)) || exit 3
}

# Packs the results into OUT.tar.gz. A reader sees the old archive or the new one, never a part.
pack() {
  [[ -n ${out:-} && -d $out ]] || return 0
  tar czf "$out.tar.gz.part" -C "$(dirname "$out")" "$(basename "$out")" 2>/dev/null && mv "$out.tar.gz.part" "$out.tar.gz"
}

# last_words LOG: the last line of a log that is no traced command.
last_words() {
  grep -v '^+' "$1" | tail -n 1
}

failed=()
unfinished=()

# stage NAME LIMIT COMMAND...: runs a stage for at most LIMIT seconds and the time that is left. If the command exits with 3, or
# its time ended while it captured or measured, the next call of the script continues it.
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
  STAGE_SECONDS=$limit timeout --kill-after=5 "$limit" bash "$script" "$out" "$@" >"$out/logs/$name.log" 2>&1 &
  running=$!
  wait "$running" || code=$?
  running=
  if [[ $code =~ ^(124|137)$ && $name =~ ^(resnet50|capture|validate|torch|memcheck|racecheck) ]]; then
    echo "its limit of $limit s ended it" >>"$out/logs/$name.log"
    code=3
  fi
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
  pack
}

# On TERM, INT and at the end: what is there is packed.
running=
trap 'pack' EXIT
stop() {
  [[ -z $running ]] || kill "$running" 2>/dev/null
  pack
  exit 143
}
trap stop TERM INT  # a function: bash has failed to parse commands here when the signal came amid a $(...)

# Builds unless a program was named or carried. Without a program nothing else can run, so a failed build ends the script.
build() {
  local more=() place
  for place in CUDNN_ROOT NCCL_ROOT CUBLAS_ROOT; do
    [[ -z ${!place:-} ]] || more+=("-D$place=${!place}")
  done
  cd "$root"
  cmake --preset gpu -DSTEPCAST_CUDA_ARCHITECTURES=native "${more[@]}" &&
    cmake --build --preset gpu --target stepcast-gpu || return 1
  cmake --build --preset gpu --target gpu_device_tests || echo "the tests could not be built; going on without them"
}
build_or_stop() {  # LIMIT
  if [[ -x $program ]]; then
    echo "build: $program is there"
    return
  fi
  rm -f "$out/done/build"
  stage build "$1" build
  [[ -x $program ]] && return
  grep -E -A4 'CMake Error|Could not find|error:|FAILED:' "$out/logs/build.log" 2>/dev/null | head -n 12 || true
  echo "there is no program to go on with. It is built from a C++20 compiler, CMake 3.25, Ninja, the CUDA toolkit and cuDNN, and from"
  echo "libfmt-dev, libyaml-cpp-dev, libcli11-dev, nlohmann-json3-dev, rapidjson-dev, librandom123-dev and zlib1g-dev (catch2 for the tests); where"
  echo "nothing can be installed, tools/gpu-packages.sh FOLDER elsewhere makes a folder to carry: CMAKE_PREFIX_PATH=FOLDER/usr"
  exit 1
}

# have_torch: false also if the import takes longer than 30 s.
have_torch() {
  timeout 30 python3 -c 'import torch, torchvision' >/dev/null 2>&1
}

# median_step TRACE: median of the trace's steps without events inside.
median_step() {
  sed -n 's/^step_seconds: \[\(.*\)\]$/\1/p' "$1" | tr -d ' ' | tr ',' '\n' | sort -g | awk '{ v[NR] = $1 } END {
    if (NR == 0) exit 1; print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# torch_comparison BATCH: writes and prints throughput.csv; 3 while a trace is missing. PyTorch is timed only once.
torch_comparison() {
  local missing=0 trace
  if [[ ! -e $out/torch.csv ]]; then
    python3 "$root/tools/gpu-resnet50.py" --batch "$1" >"$out/torch.part"
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
  return "$missing"
}
