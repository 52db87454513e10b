#!/usr/bin/env bash
# Checks scenarios/published: every scenario can be read, its rows of `published` are those of figures.csv in the same order, and
# the column `part` follows the rule of README.md. Usage: tests/open-figures.sh [STEPCAST]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
export STEPCAST_DATA=$root
folder=$root/scenarios/published
csv=$folder/figures.csv
failed=0
folder_check=$(mktemp)
trap 'rm -f "$folder_check"' EXIT
fail() {
  echo "open-figures: $1" >&2
  failed=1
}

column() {  # NAME: the number of a column of the CSV, whose fields hold no commas and no quotes
  head -1 "$csv" | tr ',' '\n' | grep -nxF "$1" | cut -d: -f1
}
experiment=$(column experiment) group=$(column group) part=$(column part) devices=$(column devices) metric=$(column metric)
value=$(column value) role=$(column role) source=$(column source)

if grep -q '"' "$csv"; then fail "$csv: expected no quotes"; fi
uneven=$(awk -F, -v columns="$(head -1 "$csv" | tr ',' '\n' | wc -l)" 'NF != columns { print FNR; exit }' "$csv")
if [[ -n $uneven ]]; then fail "$csv:$uneven: expected as many fields as in the first line"; fi
if awk -F, -v source="$source" 'FNR > 1 && $source == ""' "$csv" | grep -q .; then fail "$csv: a row without source"; fi
if [[ -n $(cut -d, -f1 "$csv" | sort | uniq -d) ]]; then fail "$csv: an id occurs twice"; fi

# The figures as EXPERIMENT KIND WORKERS METRIC VALUE, from the CSV and from the scenarios.
figures_of_csv() {
  awk -F, -v e="$experiment" -v r="$role" -v d="$devices" -v m="$metric" -v v="$value" \
    'FNR > 1 { print $e, ($r == "base" ? "fitted" : "predicted"), $d, $m, $v }' "$csv"
}
figures_of_scenarios() {  # a file holds several, as YAML documents
  sed -nE -e 's/^name: (.*)/=\1/p' \
    -e 's/^  - \{point: \{workers: ([0-9]+)[^}]*\}, column: ([a-z_]+), kind: ([a-z]+), value: ([0-9.]+), .*/\3 \1 \2 \4/p' "$folder"/*.yaml |
    awk '/^=/ { name = substr($0, 2); next } { print name, $0 }'
}
difference=$(diff <(figures_of_csv | sort -s -k1,1) <(figures_of_scenarios | sort -s -k1,1) | grep '^[<>]' || true)
if [[ -n $difference ]]; then fail "figures in figures.csv (<) and in the scenarios (>) differ:"$'\n'"$difference"; fi

while IFS=' ' read -r name stated; do
  digits=$(printf %s "$name" | sha256sum | cut -c1-8)
  expected=$((16#$digits % 3 == 0))
  if [[ $stated != $( ((expected)) && echo test || echo fit) ]]; then fail "$csv: group $name: expected the other part than $stated"; fi
done < <(awk -F, -v g="$group" -v p="$part" 'FNR > 1 { print $g, $p }' "$csv" | sort -u)

"$stepcast" check "$folder"/*.yaml >"$folder_check" || fail "$(grep -v 'no errors$' "$folder_check")"

# The checks themselves fail where they must: on a copy with one other figure.
if [[ -z ${OPEN_FIGURES_COPY:-} ]]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy" "$folder_check"' EXIT
  mkdir -p "$copy/tests" "$copy/scenarios/published"
  cp "$0" "$copy/tests/open-figures.sh"
  files=("$folder"/*.yaml)
  first=${files[0]}
  { head -1 "$csv"; sed -n 's/^name: //p' "$first" | awk -F, -v e="$experiment" 'NR == FNR { names[$1]; next } $e in names' - "$csv"; } >"$copy/scenarios/published/figures.csv"
  sed -E '$ s/value: [0-9.]+/value: 7/' "$first" >"$copy/scenarios/published/$(basename "$first")"
  ln -s "$root/models" "$copy/models"
  ln -s "$root/platforms" "$copy/platforms"
  if OPEN_FIGURES_COPY=1 bash "$copy/tests/open-figures.sh" "$stepcast" 2>/dev/null; then fail "a changed figure was not noticed"; fi
fi
((failed == 0)) || exit 1
echo "open-figures: $(figures_of_csv | grep -c predicted) figures of $(cat "$folder"/*.yaml | grep -c '^name: ') experiments agree"
