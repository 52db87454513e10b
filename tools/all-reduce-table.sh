#!/usr/bin/env bash
# The project's own all-reduces against those of the MPI library and of gloo, by size and number of ranks, in shared memory and over the loopback: a Markdown table.
# Takes about a minute for each number of ranks; ranks beyond the cores take turns on them, so read those rows with care.
# Usage: tools/all-reduce-table.sh [STEPCAST] [FOLDER]; writes FOLDER/CLUSTER-N.csv (default results/all-reduce) and FOLDER/table.md.
# Environment: RANKS='2 4' (default: 2 and 4).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
folder=${2:-$root/results/all-reduce}
export STEPCAST_DATA=$root
mkdir -p "$folder"
for cluster in memory loopback; do
  for ranks in ${RANKS:-2 4}; do
    "$stepcast" calibrate --ranks "$ranks" --cluster "$cluster" -o "$folder/$cluster-$ranks.yaml" >"$folder/$cluster-$ranks.txt"
  done
done
# shellcheck disable=SC2016  # $ is awk's
for cluster in memory loopback; do
  for ranks in ${RANKS:-2 4}; do
    awk -F, -v cluster="$cluster" -v ranks="$ranks" '
      /^#/ { next }
      !heading { for (i = 1; i <= NF; ++i) at[$i] = i; heading = 1; next }
      $at["what"] == "all_reduce" {
        bytes = $at["bytes"] + 0; name = $at["algorithm"]; seconds = $at["seconds"]
        if (!(bytes in seen)) { seen[bytes] = 1; sizes[++n] = bytes }
        if (name == "mpi") mpi[bytes] = seconds
        else if (name == "gloo") gloo[bytes] = sprintf("%.4g ms", 1e3 * seconds)
        else if (!(bytes in own) || seconds < own[bytes]) { own[bytes] = seconds; by[bytes] = name }
      }
      END {
        for (i = 2; i <= n; ++i) for (j = i; j > 1 && sizes[j - 1] > sizes[j]; --j) { t = sizes[j]; sizes[j] = sizes[j - 1]; sizes[j - 1] = t }
        for (i = 1; i <= n; ++i) {
          b = sizes[i]
          if ((b in mpi) && (b in own) && i % 2 == 1)
            printf "| %s | %d | %d | %.4g ms (`%s`) | %.4g ms | %s | %.0f %% |\n", cluster, ranks, b, 1e3 * own[b], by[b], 1e3 * mpi[b],
              b in gloo ? gloo[b] : "not measured", 100 * own[b] / mpi[b]
        }
      }' "$folder/$cluster-$ranks.csv"
  done
done | {
  echo "| links | ranks | bytes | fastest own algorithm | MPI_Allreduce | gloo, loopback sockets | own / MPI |"
  echo "|---|---|---|---|---|---|---|"
  cat
} | tee "$folder/table.md"
