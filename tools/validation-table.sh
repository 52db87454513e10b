#!/usr/bin/env bash
# From FOLDER/*-measured.csv (default validate/data), which tools/validate-all.sh writes: writes forecasts against real runs by launch and
# strategy to docs/reference/validation-results.csv, and fills the tables of docs/reference/validation-results.md and the table of
# README.md from them. Ranks that compute and ranks that sleep are never in one figure.
# Usage: tools/validation-table.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:-validate/data}
shopt -s nullglob
files=("$data"/*-measured.csv)
if ((${#files[@]} == 0)); then
  echo "validation-table: no $data/*-measured.csv; run tools/validate-all.sh first" >&2
  exit 2
fi

rows() {
  awk -F, '
    function size(x) { return x < 0 ? -x : x }
    FNR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; run = FILENAME; sub(/.*\//, "", run); sub(/-measured.csv$/, "", run); next }
    {
      gsub(/"[^"]*"/, "point")  # the only quoted field; it may hold commas
      error = $at["predicted_seconds"] / $at["measured_seconds"] - 1
      spread = ($at["measured_high"] - $at["measured_low"]) / 2 / $at["measured_seconds"]
      key = run "|" $at["strategy"]
      if (!(key in count)) order[++keys] = key
      ++count[key]; sum[key] += size(error); signed[key] += error; spreads[key] += spread
      if (size(error) > most[key]) most[key] = size(error)
    }
    END {
      for (k = 1; k <= keys; ++k) {
        key = order[k]; split(key, part, "|")
        printf "%s,%s,%d,%.1f,%.1f,%.1f,%.1f\n", part[1], part[2], count[key],
          100 * sum[key] / count[key], 100 * signed[key] / count[key], 100 * most[key], 100 * spreads[key] / count[key]
      }
    }' "$@"
}

# One row that sums up the summary of some launches. Nothing if there are none.
in_short() {  # TITLE PATTERN
  if ! compgen -G "$data/$2-measured.csv" >/dev/null; then return; fi
  tools/validation-summary.sh "$data" "$2" | awk -v title="$1" '
    /^\| all/ { split($0, cell, " *\\| *") }
    /points of/ { sub(/.* of /, "") ; split($0, part, /[()]/); of = part[2] }
    END { printf "| %s | %s | %s | %s | %s | %s |\n", title, cell[3], cell[4], cell[5], cell[7], of }'
}

# By strategy, ranks that compute over the project's own transport and over MPI.
own_and_mpi() {
  awk -F, '
    function size(x) { return x < 0 ? -x : x }
    function figures(key) { return key in count ? sprintf("%d | %.1f %% | %.1f %%", count[key], 100 * sum[key] / count[key], 100 * most[key]) : "0 | |" }
    FNR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; by = FILENAME ~ /mpi-[^\/]*$/ ? "mpi" : "own"; next }
    {
      gsub(/"[^"]*"/, "point")
      name = $at["strategy"]
      if (!(name in known)) { known[name]; order[++names] = name }
      error = size($at["predicted_seconds"] / $at["measured_seconds"] - 1)
      for (k = 0; k < 2; ++k) {
        key = by " " (k ? "all" : name)
        ++count[key]; sum[key] += error
        if (error > most[key]) most[key] = error
      }
    }
    END {
      print "| strategy | points, own transport | mean error | largest | points, MPI | mean error | largest |"
      print "|---|---|---|---|---|---|---|"
      order[++names] = "all"
      for (i = 1; i <= names; ++i)
        printf "| %s | %s | %s |\n", i < names ? "`" order[i] "`" : "all", figures("own " order[i]), figures("mpi " order[i])
    }' "$data"/memory-*-measured.csv "$data"/mpi-memory-*-measured.csv
}

page=docs/reference/validation-results.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
if compgen -G "$data/mpi-memory-*-measured.csv" >/dev/null; then
  own_and_mpi >"$table"
else
  echo "No launch over MPI is committed." >"$table"
fi
tools/fill-table.sh "$page" measured-mpi "$table"
csv=${page%.md}.csv
{
  echo "launch,strategy,points,mean_absolute_error_percent,mean_error_percent,largest_error_percent,half_measured_interval_percent"
  rows "${files[@]}"
} >"$csv"
echo "$csv: $(($(wc -l <"$csv") - 1)) rows from ${#files[@]} files"
{
  echo "| runs | points | mean error of the step time | median | largest | pairs of points in the right order |"
  echo "|---|---|---|---|---|---|"
  in_short "kernels run, messages go through shared memory" 'memory-*'
  in_short "kernels run, messages go through MPI" 'mpi-memory-*'
  in_short "kernels run on four ranks with a CPU quota of 0.45 cores each" 'quota-*'
  in_short "ranks sleep for the times of their layers instead of computing, on emulated networks" 'netcluster-*'
} >"$table"
tools/fill-table.sh "$page" real-runs "$table"
tools/readme-summary.py
