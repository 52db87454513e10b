#!/usr/bin/env bash
# Checks that shipped files are valid by the schemas that editors use (python3-jsonschema), that "stepcast check" finds no error
# in them, that each names its schema, and that the tables of keys in docs/reference are those of the readers.
# Usage: tests/schema.sh [STEPCAST]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
export STEPCAST_DATA=$root
cd "$root"

"$stepcast" check platforms/*.yaml models/*.yaml models/library/*/*.yaml models/devices/*.yaml models/compression/*.yaml \
  models/traces/*.yaml scenarios/*.yaml >/tmp/stepcast-check.$$ || { grep -v 'no errors' /tmp/stepcast-check.$$; exit 1; }
rm -f /tmp/stepcast-check.$$
tools/key-tables.sh --check "$stepcast"
tools/modelines.sh --check "$stepcast"
if ! python3 -c 'import jsonschema, yaml' 2>/dev/null; then
  echo "schema: python3-jsonschema and python3-yaml are not installed; the schemas were not tried"
  exit 77
fi
python3 tests/schema.py "$stepcast" "$root"
