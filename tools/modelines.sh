#!/usr/bin/env bash
# Puts into the first line of every shipped YAML file which schema it follows, for editors with the YAML language server, and
# writes these schemas to schemas/. --check: changes nothing, and fails if a file lacks its line or a schema is old.
# Usage: tools/modelines.sh [--check] [STEPCAST]
set -euo pipefail
shopt -s globstar
cd "$(dirname "$0")/.."
check=no
if [[ ${1:-} == --check ]]; then check=yes && shift; fi
stepcast=${1:-build/release/stepcast}
new=$(mktemp)
trap 'rm -f "$new"' EXIT

failed=0
complain() {
  echo "modelines: $1; run tools/modelines.sh" >&2
  failed=1
}

schema() {  # KIND FILE...
  local kind=$1 file folder line first
  shift
  "$stepcast" schema "$kind" >"$new"
  if ! cmp -s "$new" "schemas/$kind.json"; then
    if [[ $check == yes ]]; then
      complain "schemas/$kind.json is not what stepcast prints"
    else
      mkdir -p schemas && cat "$new" >"schemas/$kind.json"
    fi
  fi
  for file in "$@"; do
    folder=${file%/*}
    line="# yaml-language-server: \$schema=${folder//+([^\/])/..}/schemas/$kind.json"
    read -r first <"$file"
    if [[ $first == "$line" ]]; then continue; fi
    if [[ $check == yes ]]; then complain "$file has not the first line \"$line\""; else sed -i "1i $line" "$file"; fi
  done
}

shopt -s extglob
schema scenario scenarios/**/*.yaml
schema platform platforms/*.yaml
schema model models/*.yaml models/library/*/*.yaml
schema trace models/traces/*.yaml
schema device models/devices/*.yaml
schema compression models/compression/*.yaml
schema stack strategies/stacks/*.yaml
exit "$failed"
