#!/usr/bin/env bash
# Writes man pages of stepcast and its commands from their --help with help2man. Usage: tools/man-pages.sh STEPCAST FOLDER
set -euo pipefail
stepcast=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$("$stepcast" --version)
version=${version%%$'\n'*}  # not "| head -n 1": stepcast would end with SIGPIPE when head closes the pipe early

# page COMMAND...: help2man calls a program, so that one stands for each command. It prints the help in the form of GNU's.
page() {
  local name words about
  name=$(IFS=-; echo "stepcast${*:+-}$*")
  words=$(printf ' %q' "$@")
  about=$("$stepcast" "$@" --help)
  about=${about%%$'\n'*}
  cat >"$work/$name" <<SCRIPT
#!/bin/bash
[[ \$1 == --version ]] && echo "$name ${version#* }" && exit
"$stepcast"$words --help | sed -E 's/^( +-[a-zA-Z]),--/\1, --/; s/^(Positionals|Subcommands):/\1:\n/; s/^Example: /Examples:\n         /'
SCRIPT
  chmod +x "$work/$name"
  help2man --no-info --no-discard-stderr --name="${about%.}" --output="$folder/$name.1" "$work/$name"
}

# The commands that "stepcast ARGUMENTS --help" lists.
commands() {
  "$stepcast" "$@" --help | awk '/^Subcommands:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside && /^  [a-z]/ { print $1 }'
}

page
for command in $(commands); do
  page "$command"
  for inner in $(commands "$command"); do page "$command" "$inner"; done
done
