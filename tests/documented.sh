#!/usr/bin/env bash
# Checks that docs/reference/commands.md or measuring-commands.md has a section for every command of stepcast, that the options in the
# tables of a section are exactly those that the command's --help prints, and that every strategy and every key that
# "stepcast show strategies" prints is on a page docs/reference/strategies*.md or campaigns.md. Usage: tests/documented.sh [STEPCAST]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
pages=("$root"/docs/reference/{commands,measuring-commands}.md)

# The names of the subcommands that "stepcast ARGUMENTS --help" lists.
subcommands() {
  "$stepcast" "$@" --help | awk '/^Subcommands:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside && /^  [a-z]/ { print $1 }'
}

# The options that "stepcast ARGUMENTS --help" lists, without those of every command.
printed_options() {
  "$stepcast" "$@" --help | grep -oE '^ +(-[a-zA-Z],)?--?[a-zA-Z][a-z-]*' | tr -d ' ' | tr ',' '\n' | grep -vxE -- '-h|--help|-q|--quiet|-v|--verbose|--json' || true
}

# The options in the first cells of the tables of the section "## `stepcast COMMAND`".
documented_options() {
  awk -v heading="## \`stepcast $1\`" '/^## / { inside = $0 == heading } inside && /^\| `-/' "${pages[@]}" |
    sed 's/^| \([^|]*\) |.*/\1/' | grep -oE '`--?[a-zA-Z][a-z-]*' | tr -d '`' || true
}

failed=0
missing() {
  echo "documented: docs/reference has no $1" >&2
  failed=1
}
for command in $(subcommands); do
  if ! grep -qhxF "## \`stepcast $command\`" "${pages[@]}"; then
    missing "section \`stepcast $command\`"
    continue
  fi
  printed=$({
    printed_options "$command"
    for inner in $(subcommands "$command"); do printed_options "$command" "$inner"; done
  } | sort -u)
  documented=$(documented_options "$command" | sort -u)
  if [[ $printed != "$documented" ]]; then
    echo "documented: options of $command, in --help (<) and in docs/reference (>):" >&2
    diff <(echo "$printed") <(echo "$documented") | grep '^[<>]' >&2 || true
    failed=1
  fi
done

# The words in the first column of a table that ends with an empty line. Reads to the end: with pipefail, a reader that leaves early
# fails whoever still writes.
first_words() { awk '/^$/ { after = 1 } !after { print $1 }'; }

pages=("$root"/docs/reference/strategies*.md "$root"/docs/reference/campaigns.md) # campaigns: the strategy search
kinds=$("$stepcast" show strategies | first_words)
[ "$(wc -w <<<"$kinds")" -ge 10 ] || missing "list of strategies"
for kind in $kinds; do
  grep -qF "\`$kind\`" "${pages[@]}" || missing "strategy $kind"
  keys=$("$stepcast" show strategies "$kind" | awk '/^key / { inside = 1; next } inside' | first_words | grep -E '^[a-z]')
  for key in $keys; do
    grep -qF "\`$key\`" "${pages[@]}" || missing "key $key of $kind"
  done
done
exit "$failed"
