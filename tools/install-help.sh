#!/usr/bin/env bash
# Installs completion of bash, zsh and fish, and man pages of stepcast and its commands from their --help if help2man is there. Usage: tools/install-help.sh STEPCAST SHARE_FOLDER
set -euo pipefail
stepcast=$(realpath "$1")
share=$2
mkdir -p "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$stepcast" completion bash >"$share/bash-completion/completions/stepcast"
"$stepcast" completion zsh >"$share/zsh/vendor-completions/_stepcast"
"$stepcast" completion fish >"$share/fish/vendor_completions.d/stepcast.fish"
if ! command -v help2man >/dev/null; then
  echo "install-help: help2man is not installed; no man pages"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$share/man/man1"
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
  help2man --no-info --no-discard-stderr --name="${about%.}" --output="$share/man/man1/$name.1" "$work/$name"
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
gzip -9nf "$share"/man/man1/stepcast*.1
