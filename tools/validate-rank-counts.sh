#!/usr/bin/env bash
# Errors at rank counts that were never measured: links and traces are measured at 2 ranks, and 4, 8 and 16 ranks are forecast with them before they run.
# The ranks sleep, in network namespaces (root). Takes about 9 minutes on two quiet cores.
# Usage: tools/validate-rank-counts.sh [STEPCAST] [FOLDER]
# Writes FOLDER/ranks-N-{measured,samples,predicted}.csv and .sha256 (default FOLDER: validate/data/rank-counts) and a table by rank count and
# strategy to FOLDER/table.md. Environment: RANKS='4 8': only these; REPEATS (default 2); CLUSTER (default netcluster:100mbit,packet=6144).
# ACCEPT_DISTURBED=1: also counts disturbed steps and runs, on a machine that other programs use.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
data=${2:-$root/validate/data/rank-counts}
work=$root/results/validate-rank-counts
export STEPCAST_DATA=$root
if ((EUID != 0)); then
  echo "validate-rank-counts: network namespaces need root" >&2
  exit 2
fi
rm -rf "$work"
mkdir -p "$data" "$work"
more=()
if [[ ${ACCEPT_DISTURBED:-} ]]; then more=(--accept-disturbed); fi
for ranks in 2 ${RANKS:-4 8 16}; do
  earlier=()
  if ((ranks > 2)); then earlier=(--measured-in "$work/ranks-2"); fi
  echo "== $ranks ranks"
  (cd "$root" && "$stepcast" validate scenarios/validate/rank-counts.yaml --ranks "$ranks" --cluster "${CLUSTER:-netcluster:100mbit,packet=6144}" --sleep \
    --repeats "${REPEATS:-2}" "${more[@]}" "${earlier[@]}" -o "$work/ranks-$ranks")
  for file in measured.csv samples.csv predicted.csv predicted.sha256; do
    cp "$work/ranks-$ranks/$file" "$data/ranks-$ranks-$file"
  done
done
"$root/tools/rank-counts-table.sh" "$data" | tee "$data/table.md"
