#!/usr/bin/env bash
# Prints the errors of FOLDER/ranks-N-measured.csv (default validate/data/rank-counts) as a Markdown table: one row for each rank count and
# strategy, and one for all that were never measured. Usage: tools/rank-counts-table.sh [FOLDER]
set -euo pipefail
data=${1:-$(dirname "$0")/../validate/data/rank-counts}
files=$(find "$data" -name 'ranks-*-measured.csv' | sort -V)
if [[ ! $files ]]; then
  echo "rank-counts-table: no $data/ranks-*-measured.csv; run tools/validate-rank-counts.sh first" >&2
  exit 2
fi
# shellcheck disable=SC2086  # one word for each file
awk -F, '
  function size(x) { return x < 0 ? -x : x }
  FNR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
  {
    gsub(/"[^"]*"/, "point")  # the only quoted field; it may hold commas
    error = size($at["predicted_seconds"] / $at["measured_seconds"] - 1)
    ranks = $at["ranks"]
    key = ranks "|" $at["strategy"]
    if (!(key in count)) order[++keys] = key
    ++count[key]; sum[key] += error
    if (error > most[key]) most[key] = error
    if (ranks > 2) { ++all; total += error; if (error > largest) largest = error }
  }
  END {
    print "| ranks | strategy | points | mean error | largest |"
    print "|---|---|---|---|---|"
    for (k = 1; k <= keys; ++k) {
      split(order[k], part, "|")
      note = part[1] == 2 ? " (measured)" : ""
      printf "| %s%s | `%s` | %d | %.1f %% | %.1f %% |\n", part[1], note, part[2], count[order[k]], 100 * sum[order[k]] / count[order[k]], 100 * most[order[k]]
    }
    if (all > 0) printf "| never measured | all | %d | %.1f %% | %.1f %% |\n", all, 100 * total / all, 100 * largest
  }' $files
