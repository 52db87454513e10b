#!/usr/bin/env bash
# Draws the tables of keys in docs/reference between "<!-- table: keys KIND PATH -->" and "<!-- /table -->" with
# "stepcast schema KIND --table PATH". A key that has a heading of its own, on the page or on a page named KIND-*.md, becomes a
# link to it.
# --check: changes nothing, and fails if a table is not what the command prints. Usage: tools/key-tables.sh [--check] [STEPCAST]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
check=no
if [[ ${1:-} == --check ]]; then check=yes && shift; fi
stepcast=$(realpath -- "${1:-$root/build/release/stepcast}")
[[ -x $stepcast ]] || { echo "key-tables: no program: $stepcast" >&2 && exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# linked KIND PAGE: the table on standard input, with links to headings such as "### `noise`" of PAGE and of KIND-*.md.
linked() {
  local pages=()
  mapfile -t pages < <(find "$root/docs/reference" -name "$1-*.md" | LC_ALL=C sort)
  awk -F'`' -v page="$2" 'FILENAME != "-" {
      if (/^##+ `[a-z_]+`$/) { file = FILENAME == page ? "" : FILENAME; sub(".*/", "", file); place[$2] = file "#" $2 }
      next
    }
    /^\| `/ && $2 in place { sub("^\\| `" $2 "`", "| [`" $2 "`](" place[$2] ")") }
    { print }' "${pages[@]}" "$2" -
}

failed=0
while IFS=: read -r page marker; do
  read -r _ _ name kind path _ <<<"$marker"
  [[ $name == keys ]] || continue
  if [[ $path == . ]]; then linked "$kind" "$page"; else cat; fi < <("$stepcast" schema "$kind" --table "$path") >"$work/table"
  cp "$page" "$work/page"
  begin="^<!-- table: keys $kind $path -->\$"
  sed -i -e "/$begin/,/^<!-- \/table -->\$/{//!d}" -e "/$begin/r $work/table" "$work/page"
  if cmp -s "$page" "$work/page"; then continue; fi
  if [[ $check == yes ]]; then
    echo "key-tables: $page: the table \"keys $kind $path\" is not what stepcast prints; run tools/key-tables.sh" >&2
    failed=1
  else
    cat "$work/page" >"$page"
  fi
done < <(grep -o '<!-- table: keys .*-->' "$root"/docs/reference/*.md)
exit "$failed"
