#!/usr/bin/env bash
# Puts the counts and largest differences of a run of drawn_cases into docs/notes/2026-11-drawn-cases.md.
# Usage: tools/drawn-table.sh CASES_CSV
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/notes/2026-11-drawn-cases.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tail -n +2 "$1" | awk -F, -v laws="$work/laws" -v cases="$work/cases" '
  function quoted() { match($0, /"[^"]*"/); return substr($0, RSTART + 1, RLENGTH - 2) }
  BEGIN {
    print "| law | times | broken | bound | largest difference |\n|---|---|---|---|---|" > laws
    print "| cases | number |\n|---|---|" > cases
  }
  $1 == "law" {
    name = quoted()
    split(substr($0, RSTART + RLENGTH + 1), cell, ",")
    printf "| %s | %s | %s | %s | %s |\n", name, cell[1], cell[2], cell[3] == "" ? "none" : cell[3], cell[4] > laws
  }
  $1 == "all" { printf "| %s | %s |\n", $2 == "cases" ? "in all" : "scenarios " ($2 == "refused" ? "that the reader refuses" : "of another size"), $3 > cases }
  $1 == "strategy" || $1 == "platform" { list[$1] = list[$1] (list[$1] == "" ? "" : ", ") "`" $2 "` " $3 }
  END { printf "| by strategy | %s |\n| by platform | %s |\n", list["strategy"], list["platform"] > cases }'
tools/fill-table.sh "$page" laws "$work/laws"
tools/fill-table.sh "$page" cases "$work/cases"
