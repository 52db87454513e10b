#!/usr/bin/env bash
# Checks that every strategy and every key that "stepcast show strategies" prints is on a page docs/reference/strategies*.md.
# Usage: tests/strategies-documented.sh [STEPCAST]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
pages=("$root"/docs/reference/strategies*.md)

# The words in the first column of a table that ends with an empty line.
first_words() { awk '/^$/ { exit } { print $1 }'; }

failed=0
missing() {
  echo "strategies-documented: $1 is not in docs/reference/strategies*.md" >&2
  failed=1
}
kinds=$("$stepcast" show strategies | first_words)
[ "$(wc -w <<<"$kinds")" -ge 10 ] || missing "the list of strategies"
for kind in $kinds; do
  grep -qF "\`$kind\`" "${pages[@]}" || missing "strategy $kind"
  keys=$("$stepcast" show strategies "$kind" | awk '/^key / { inside = 1; next } inside' | first_words | grep -E '^[a-z]')
  for key in $keys; do
    grep -qF "\`$key\`" "${pages[@]}" || missing "key $key of $kind"
  done
done
exit "$failed"
