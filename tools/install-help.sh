#!/usr/bin/env bash
# Installs completion of bash, zsh and fish, and man pages if help2man is there. Usage: tools/install-help.sh STEPCAST SHARE_FOLDER
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
"$(dirname "$0")/man-pages.sh" "$stepcast" "$share/man/man1"
gzip -9nf "$share"/man/man1/stepcast*.1
