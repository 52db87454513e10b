#!/usr/bin/env bash
# Validates the forecasts on this machine: with shared memory and, as root, on small clusters of network namespaces. Each
# cluster and number of ranks is one launch, which runs all its points in turn. ONLY='memory-2 memory-2-[st]*', 75 points of two
# ranks with real kernels, took 20 minutes on 2 idle cores.
# Usage: tools/validate-all.sh [--again] [STEPCAST]
# Results stay in results/validate-all, so that a second call skips finished launches (--again repeats all). A launch that fails does
# not stop the others. At the end tools/documents.py takes the points over into validate/data/ and draws the tables.
# Environment: ONLY='memory-2* ...': only launches whose names match; ONLY='ranks-*': rank counts that were never measured, 9 minutes.
# TRANSPORT=mpi: the launches with real kernels once more over MPI, as mpi-*; the others are left out.
# FORECASTS=4: forecasts of each launch with real kernels, each frozen before a round of runs (default 7). REPEATS=3: repeats of each
# point after a forecast (default 1 if kernels compute, 2 if ranks sleep). ACCEPT_DISTURBED=1: also counts disturbed runs.
set -euo pipefail
cd "$(dirname "$0")/.."
again=
if [[ ${1:-} == --again ]]; then
  again=1
  shift
fi
stepcast=$(realpath "${1:-build/release/stepcast}")
work=$PWD/results/validate-all
export STEPCAST_DATA=$PWD
mkdir -p "$work"
computing=${REPEATS:-1} sleeping=${REPEATS:-2} forecasts=${FORECASTS:-7}
more=()
if [[ ${ACCEPT_DISTURBED:-} ]]; then more=(--accept-disturbed); fi
failed=() launches=()
transport=${TRANSPORT:-own} machine=machine prefix=
if [[ $transport != own ]]; then machine=machine-$transport prefix=$transport-; fi

# wanted NAME: whether ONLY allows this launch. Rank counts are made only if ONLY names them.
wanted() {
  local pattern
  if [[ ! ${ONLY:-} && $1 != ranks-* ]]; then return; fi
  for pattern in ${ONLY:-}; do
    if [[ $1 == $pattern ]]; then return; fi
  done
  return 1
}

# run NAME SCENARIO OPTIONS...: runs one validation and prints its table.
run() {
  local name=$1 command repeats=$computing turns=(--forecasts "$forecasts")
  if [[ $prefix ]]; then
    if [[ " $* " == *" --sleep "* ]]; then return; fi
    name=$prefix$name
    set -- "$name" "${@:2}" --transport "$transport"
  fi
  if [[ " $* " == *" --sleep "* ]]; then repeats=$sleeping turns=(); fi
  if ! wanted "$name"; then return; fi
  launches+=("$name")
  command=(validate "scenarios/validate/$2.yaml" --repeats "$repeats" "${turns[@]}" "${more[@]}" "${@:3}")
  echo "== $name: stepcast ${command[*]}"
  if [[ ! $again && -e $work/$name/measured.csv && $(cat "$work/$name.command") == "${command[*]}" ]]; then
    echo "already measured; use --again to measure it again"
    return
  fi
  rm -rf "${work:?}/$name" "$work/$name.command"
  if ! time "$stepcast" "${command[@]}" -o "$work/$name"; then
    failed+=("$name")
    return
  fi
  echo "${command[*]}" >"$work/$name.command"
}

run memory-2 small --ranks 2
run memory-2-spatial-pipeline spatial-pipeline --ranks 2
run memory-2-tensor tensor --ranks 2
run memory-2-tokens tokens --ranks 2
run memory-2-strategies strategies --ranks 2
run memory-2-input input --ranks 2
run memory-2-filters filters --ranks 2
run memory-2-machines machines --ranks 2
run memory-2-experts experts --ranks 2
run memory-2-sharded sharded --ranks 2
# Four ranks have a core each, or share two; then the launch has another name and a table of its own.
if (($(nproc) >= 4)); then
  run memory-4-strategies strategies-4 --ranks 4
  run memory-4-two-workers two-workers --ranks 4
  run memory-4-search search --ranks 4
  run memory-4-mesh mesh-4 --ranks 4
elif (($(nproc) == 2 && EUID == 0)) && [[ -w /sys/fs/cgroup/cpu/cgroup.procs || -w /sys/fs/cgroup/cgroup.subtree_control ]]; then
  run shared-4-strategies strategies-4 --ranks 4 --share-cores
  run shared-4-two-workers two-workers --ranks 4 --share-cores
  run shared-4-search search --ranks 4 --share-cores
  run shared-4-mesh mesh-4 --ranks 4 --share-cores
else
  echo "memory-4-* are left out: 4 ranks that compute need 4 cores, or 2 and the right to make control groups"
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
  # Links and traces are measured at 2 ranks, and 4, 8 and 16 ranks are forecast with them before they run.
  run ranks-2 rank-counts --ranks 2 --cluster netcluster:100mbit,packet=6144 --sleep
  for ranks in 4 8 16; do
    run "ranks-$ranks" rank-counts --ranks "$ranks" --cluster netcluster:100mbit,packet=6144 --sleep --measured-in "$work/ranks-2"
  done
else
  echo "not root: network namespaces need root, so only shared memory was validated"
fi

{
  echo "date: $(date -u +%F)"
  echo "machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg) at the end"
  echo "command: tools/validate-all.sh (forecasts $forecasts, repeats $computing, of ranks that sleep $sleeping${more:+; disturbed runs counted}); each launch:"
  for name in "${launches[@]}"; do
    if [[ -e $work/$name.command ]]; then sed 's/^/stepcast /' "$work/$name.command"; fi
  done
  "$stepcast" --version
} >"validate/data/$machine.txt"
tools/documents.py real-runs "$work"
if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
