# Sourced by tests that are scripts: a folder of their own as working directory, and counted failures. The output of what was run is in
# the files `out` and `err`.
# shellcheck shell=bash
set -u
source_folder=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
export STEPCAST_DATA=$source_folder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

failures=0
fail() {
  echo "FAILED: $1"
  for file in out err; do [ -s "$file" ] && head -c 1000 "$file"; done
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" out || fail "no \"$1\""; }
says_not() { grep -qF -- "$1" out && fail "\"$1\" is said"; }
end_test() { [ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }; }
