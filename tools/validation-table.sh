#!/usr/bin/env bash
# Fills docs/validation.md's tables of forecasts against real runs from validate/data/*-measured.csv, which
# tools/validate-all.sh writes: by strategy, and by launch and strategy. Usage: tools/validation-table.sh [FOLDER]
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
        printf "| %s | `%s` | %d | %.1f %% | %+.1f %% | %.1f %% | %.1f %% |\n", part[1], part[2], count[key],
          100 * sum[key] / count[key], 100 * signed[key] / count[key], 100 * most[key], 100 * spreads[key] / count[key]
      }
    }' "$@"
}

table=$(mktemp)
trap 'rm -f "$table"' EXIT
{
  echo "| run | strategy | points | mean error, absolute | mean error | largest | half the 95 % interval of the measurement, mean |"
  echo "|---|---|---|---|---|---|---|"
  rows "${files[@]}"
} >"$table"
tools/fill-table.sh docs/validation.md measured "$table"
tools/validation-summary.sh "$data" >"$table.all"
tools/fill-table.sh docs/validation.md measured-all "$table.all"
rm "$table.all"
echo "docs/validation.md: $(($(wc -l <"$table") - 2)) rows from ${#files[@]} files"
