#!/usr/bin/env bash
# Completes words in bash, and in zsh and fish where they are installed, as a user's TAB does. Usage: tests/completion.sh STEPCAST
set -euo pipefail
stepcast=$(realpath "$1")
export STEPCAST_DATA=${STEPCAST_DATA:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/folder"
ln -s "$stepcast" "$work/bin/stepcast"
export PATH=$work/bin:$PATH
cd "$work"
failed=0

# offers EXPECTED WORD...: the last word is completed; all of EXPECTED's words have to be offered.
offers() {
  local expected=$1 offered
  shift
  offered=$(bash -c 'source <(stepcast completion bash); compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stepcast
    printf "%s\n" "${COMPREPLY[@]}"' completion "$@")
  for word in $expected; do
    grep -qxF -- "$word" <<<"$offered" || { echo "completion: bash does not offer $word after: $*" >&2; failed=1; }
  done
}

offers_nothing() {
  local offered
  offered=$(bash -c 'source <(stepcast completion bash); compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stepcast
    printf "%s\n" "${COMPREPLY[@]}"' completion "$@")
  [[ -z $offered ]] || { echo "completion: bash offers \"$offered\" after: $*" >&2; failed=1; }
}

offers 'run show search schema' stepcast ''
offers 'search show schema' stepcast s
offers '--draws --dry-run' stepcast run scenario.yaml --d
offers 'model platform strategies' stepcast show ''
offers 'dgx-a100 dgx2' stepcast show platform dgx
offers 'resnet50' stepcast init a.yaml --model resn
offers 'bmuf synchronous' stepcast init a.yaml --strategy ''
offers 'bayesian evolution random' stepcast search scenario.yaml --by ''
offers 'noise.jitter= noise.sigma=' stepcast run scenario.yaml --set noise.
offers 'lognormal layers' stepcast run scenario.yaml --set noise.jitter = l
offers 'none trace' stepcast run scenario.yaml --set noise.jitter =
offers 'true false' stepcast run scenario.yaml --set strategy.overlap = ''
offers 'folder' stepcast run scenario.yaml -o fol
offers 'quickstart' stepcast run qui
offers 'bash zsh fish' stepcast completion ''
offers_nothing stepcast run scenario.yaml --draws ''
offers_nothing stepcast run scenario.yaml --no-such

# zsh completes only in a terminal, so that a pseudo-terminal types the line and TAB.
if command -v zsh >/dev/null; then
  cat >complete.zsh <<'ZSH'
# Usage: complete.zsh LINE WORD...: waits until every word is on the terminal, at most 20 s.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= ; autoload -U compinit; compinit -u -d $PWD/dump; source <(stepcast completion zsh); LISTMAX=1000; print read''y"
zpty -r -m shell text '*ready*'
zpty -w -n shell "stepcast $1"$'\t\t'
shift
shown=
for try in {1..100}; do
  while zpty -r -t shell text; do shown+=$text; done
  missing=
  for word in "$@"; do [[ $shown == *$word* ]] || missing+=" $word"; done
  [[ -z $missing ]] && exit 0
  sleep 0.2
done
print -r -- "$missing in: $shown"
exit 1
ZSH
  offers_zsh() {  # EXPECTED LINE
    # shellcheck disable=SC2086
    zsh -f complete.zsh "$2" $1 >zsh.txt 2>&1 || { echo "completion: zsh, after \"$2\": no $(cat zsh.txt)" >&2; failed=1; }
  }
  offers_zsh 'search show schema' 's'
  offers_zsh '--draws --dry-run' 'run a.yaml --dr'
  offers_zsh 'dgx2 dgx-a100' 'show platform dgx'
  offers_zsh 'noise.jitter' 'run a.yaml --set noise.j'
  offers_zsh 'lognormal layers' 'run a.yaml --set noise.jitter=l'
fi

if command -v fish >/dev/null; then
  export HOME=$work  # where fish keeps its history
  stepcast completion fish >stepcast.fish
  offers_fish() {  # EXPECTED LINE
    local offered
    offered=$(fish -N -c "source stepcast.fish; complete -C '$2'" | cut -f 1)
    for word in $1; do
      grep -qxF -- "$word" <<<"$offered" || { echo "completion: fish does not offer $word after: $2" >&2; failed=1; }
    done
  }
  offers_fish 'run show search schema' 'stepcast '
  offers_fish '--draws --dry-run' 'stepcast run scenario.yaml --d'
  offers_fish 'model platform strategies' 'stepcast show '
  offers_fish 'dgx-a100 dgx2' 'stepcast show platform dgx'
  offers_fish 'quickstart' 'stepcast run qui'
  offers_fish 'bayesian evolution random' 'stepcast search scenario.yaml --by '
  offers_fish 'noise.jitter= noise.sigma=' 'stepcast run scenario.yaml --set noise.'
  offers_fish 'noise.jitter=lognormal noise.jitter=layers' 'stepcast run scenario.yaml --set noise.jitter=l'
fi
exit "$failed"
