#!/usr/bin/env bash
# Validates the forecasts on this machine: with shared memory and, as root, on small clusters of network namespaces. Each
# cluster and number of ranks is one launch, which runs all its points in turn. ONLY='memory-2 memory-2-[st]*', 75 points of two
# ranks with real kernels, took 20 minutes on 2 idle cores.
# Usage: tools/validate-all.sh [--again] [STEPCAST] [FOLDER]
# Writes FOLDER (default validate/data). Measurements stay in results/validate-all, so that a second call skips finished launches
# (--again repeats all). A launch that fails does not stop the others.
# Environment: TRANSPORT=mpi: the launches with real kernels once more over MPI, as FOLDER/mpi-*; the others are left out.
# FORECASTS=4: forecasts of each launch with real kernels, each frozen before a round of runs (default 7). REPEATS=3: repeats of each
# point after a forecast (default 1 if kernels compute, 2 if ranks sleep). ONLY='memory-2* ...': only launches whose names match.
# ACCEPT_DISTURBED=1: also counts disturbed runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
again=
if [[ ${1:-} == --again ]]; then
  again=1
  shift
fi
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
data=${2:-$root/validate/data}
work=$root/results/validate-all
export STEPCAST_DATA=$root
mkdir -p "$data" "$work"
computing=${REPEATS:-1} sleeping=${REPEATS:-2} forecasts=${FORECASTS:-7}
more=()
if [[ ${ACCEPT_DISTURBED:-} ]]; then more=(--accept-disturbed); fi
failed=() launches=()
transport=${TRANSPORT:-own} machine=machine prefix=
if [[ $transport != own ]]; then machine=machine-$transport prefix=$transport-; fi

# wanted NAME: whether ONLY allows this launch.
wanted() {
  local pattern
  if [[ ! ${ONLY:-} ]]; then return; fi
  for pattern in $ONLY; do
    if [[ $1 == $pattern ]]; then return; fi
  done
  return 1
}

# run NAME SCENARIO OPTIONS...: runs one validation, prints its table and copies its data to FOLDER/NAME-*.
run() {
  local name=$1 file command repeats=$computing turns=(--forecasts "$forecasts")
  if [[ $prefix ]]; then
    if [[ " $* " == *" --sleep "* ]]; then return; fi
    name=$prefix$name
    set -- "$name" "${@:2}" --transport "$transport"
  fi
  if [[ " $* " == *" --sleep "* ]]; then repeats=$sleeping turns=(); fi
  launches+=("$name")
  if ! wanted "$name"; then return; fi
  command=(validate "scenarios/validate/$2.yaml" --repeats "$repeats" "${turns[@]}" "${more[@]}" "${@:3}")
  echo "== $name: stepcast ${command[*]}"
  if [[ ! $again && -e $work/$name/measured.csv && $(cat "$work/$name.command") == "${command[*]}" ]]; then
    echo "already measured; use --again to measure it again"
  else
    rm -rf "${work:?}/$name"
    rm -f "$work/$name.command"
    if ! (cd "$root" && time "$stepcast" "${command[@]}" -o "$work/$name"); then
      failed+=("$name")
      return
    fi
    echo "${command[*]}" >"$work/$name.command"
  fi
  for file in {measured,samples,predicted,predicted-all-reduces}.csv predicted.sha256 {scatter,breakdown}.svg; do
    rm -f "$data/$name-$file"
    if [[ -e $work/$name/$file ]]; then cp "$work/$name/$file" "$data/$name-$file"; fi
  done
  rm -rf "${data:?}/$name-forecasts"
  if [[ -e $work/$name/forecast-1 ]]; then  # frozen forecasts; sha256sum --check predicted.sha256
    mkdir "$data/$name-forecasts"
    mv "$data/$name-predicted.sha256" "$data/$name-forecasts/predicted.sha256"
    rm -f "$data/$name-predicted-all-reduces.csv"  # of the last forecast
    (cd "$work/$name" && cp --parents forecast-*/predicted*.csv "$data/$name-forecasts/")
  fi
}

run memory-2 small --ranks 2
run memory-2-spatial-pipeline spatial-pipeline --ranks 2
run memory-2-tensor tensor --ranks 2
run memory-2-strategies strategies --ranks 2
run memory-2-input input --ranks 2
# Four ranks have a core each, or by quota almost a half of one; then the launch has another name and a table of its own.
if (($(nproc) >= 4)); then
  run memory-4-strategies strategies-4 --ranks 4
elif ((EUID == 0)) && [[ -w /sys/fs/cgroup/cpu/cgroup.procs || -w /sys/fs/cgroup/cgroup.subtree_control ]]; then
  run quota-4-strategies strategies-4 --ranks 4 --cpu-quota "$(awk -v cores="$(nproc)" 'BEGIN { print 0.9 * cores / 4 }')"
else
  echo "memory-4-strategies is left out: 4 ranks that compute need 4 cores, or the right to make control groups"
  launches+=("${prefix}memory-4-strategies")  # keeps data of another machine
fi
if ((EUID == 0)); then
  run netcluster-2-1gbit cluster --ranks 2 --cluster netcluster:1gbit --sleep
  run netcluster-4-1gbit cluster --ranks 4 --cluster netcluster:1gbit --sleep
  # Messages of parts have kilobytes: with packets of 64 KiB whole messages would pass at once after each pause.
  run netcluster-4-parts parts --ranks 4 --cluster netcluster:100mbit,packet=6144 --sleep
  run netcluster-4-100mbit network --ranks 4 --cluster netcluster:100mbit --sleep --set simulation.steps=3 \
    --set 'sweep={strategy.all_reduce: [ring, halving_doubling], strategy.overlap: [true, false]}'
  run netcluster-4-racks network --ranks 4 --cluster netcluster:500mbit,racks=2,uplink=500mbit --sleep
  # Eight links of 1 Gbit/s would need both cores for the kernel's network code alone.
  run netcluster-8-250mbit network --ranks 8 --cluster netcluster:250mbit --sleep
else
  echo "not root: network namespaces need root, so only shared memory was validated"
fi

# Removes data of launches that no longer exist, of this transport only.
for file in "$data"/*-measured.csv; do
  name=$(basename "$file" -measured.csv)
  if [[ $name == mpi-* && ! $prefix || $name != mpi-* && $prefix ]]; then continue; fi
  if ((EUID == 0)) && [[ " ${launches[*]} " != *" $name "* ]]; then rm -rf "${data:?}/$name"-{measured,samples,predicted,predicted-all-reduces}.csv "$data/$name"-{predicted.sha256,scatter.svg,breakdown.svg} "$data/$name-forecasts"; fi
done

{
  echo "date: $(date -u +%F)"
  echo "machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg) at the end"
  echo "command: tools/validate-all.sh (forecasts $forecasts, repeats $computing, of ranks that sleep $sleeping${more:+; disturbed runs counted}); each launch:"
  for name in "${launches[@]}"; do
    if [[ -e $work/$name.command ]]; then sed 's/^/stepcast /' "$work/$name.command"; fi
  done
  "$stepcast" --version
} >"$data/$machine.txt"
for kind in memory quota netcluster mpi-memory mpi-quota; do
  if compgen -G "$data/$kind-*-measured.csv" >/dev/null; then
    echo
    echo "$kind:"
    "$root/tools/validation-summary.sh" "$data" "$kind-*"
  fi
done
if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
