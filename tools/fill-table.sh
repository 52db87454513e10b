#!/usr/bin/env bash
# Puts a table into a document, between "<!-- table: NAME -->" and "<!-- /table -->".
# Usage: tools/fill-table.sh DOCUMENT NAME TABLE_FILE
set -euo pipefail
new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk -v begin="<!-- table: $2 -->" -v table="$3" '
  $0 == begin { print; while ((getline line < table) > 0) print line; skip = 1; ++found; next }
  /^<!-- \/table -->$/ { skip = 0 }
  !skip { print }
  END { if (found != 1 || skip) { print "fill-table: " FILENAME " lacks the block \"" begin "\"" > "/dev/stderr"; exit 1 } }
' "$1" >"$new"
cat "$new" >"$1"
