#!/usr/bin/env bash
# Prints the figures that "tests/smpi/smpi.sh --write" wrote as a Markdown table: one row for each placement of ranks.
# Usage: tools/smpi-table.sh [FILE.csv]; tools/fill-table.sh puts it into docs/explanation/simulator-engine.md.
set -euo pipefail
data=${1:-$(dirname "$0")/../docs/notes/2026-11-smpi.csv}
awk -F, '
  NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
  {
    stride = $at["stride"] > 1 ? ", " $at["stride"] " devices apart" : ""
    key = $at["platform"] ", " $at["nodes"] " nodes | " $at["ranks"] stride ($at["latencies"] == 0 ? ", latencies set to 0" : "")
    if (!(key in count)) order[++keys] = key
    ++count[key]
    error = $at["error_percent"] < 0 ? -$at["error_percent"] : $at["error_percent"]
    if (error > most[key]) most[key] = error
    if ($at["smpi_seconds"] < smpi[key]) next
    smpi[key] = $at["smpi_seconds"]; own[key] = $at["stepcast_seconds"]
  }
  END {
    print "| platform | ranks | cases | longest case: SMPI | stepcast | largest error of all cases |"
    print "|---|---|---|---|---|---|"
    for (k = 1; k <= keys; ++k) {
      key = order[k]
      printf "| %s | %d | %.6f ms | %.6f ms | %s |\n", key, count[key], 1000 * smpi[key], 1000 * own[key],
        most[key] < 1e-7 ? "below 1e-7 %" : sprintf("%.1f %%", most[key])
    }
  }' "$data"
