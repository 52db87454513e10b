#!/usr/bin/env bash
# Checks that docs/reference/commands.md or measuring-commands.md has a section for every command of stepcast, and that the
# options in the tables of a section are exactly those that the command's --help prints. Usage: tests/commands-documented.sh [STEPCAST]
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
for command in $(subcommands); do
  if ! grep -qhxF "## \`stepcast $command\`" "${pages[@]}"; then
    echo "commands-documented: docs/reference has no section \`stepcast $command\`" >&2
    failed=1
    continue
  fi
  printed=$({
    printed_options "$command"
    for inner in $(subcommands "$command"); do printed_options "$command" "$inner"; done
  } | sort -u)
  documented=$(documented_options "$command" | sort -u)
  if [[ $printed != "$documented" ]]; then
    echo "commands-documented: options of $command, in --help (<) and in docs/reference (>):" >&2
    diff <(echo "$printed") <(echo "$documented") | grep '^[<>]' >&2 || true
    failed=1
  fi
done
exit "$failed"
