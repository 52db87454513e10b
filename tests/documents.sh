#!/usr/bin/env bash
# Runs what the documents tell people to run. Usage: tests/documents.sh [STEPCAST]
# Every ```sh block of README.md and docs/*.md is run, in order, each document in a folder of its own; ```yaml FILE=NAME
# blocks are written there first. ```sh skip is not run. ```sh capture=FILE may fail because the machine is busy, and then
# takes tests/documents/FILE. Also checks that relative links lead somewhere, to the heading if they name one.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=$(realpath "${1:-$root/build/release/stepcast}")
[[ -x $stepcast ]] || { echo "documents: no program $stepcast; build it first" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$stepcast" "$work/bin/stepcast"
export PATH="$work/bin:$PATH" STEPCAST_DATA="$root"

# Cuts a document into blocks: FOLDER/NUMBER.sh or .yaml, with its mark ("skip", "FILE=...") in NUMBER.mark.
cut_blocks() {
  awk -v folder="$2" '
    /^```/ && !inside && ($1 == "```sh" || $1 == "```yaml") {
      inside = 1
      name = sprintf("%s/%03d", folder, ++count)
      print $2 > (name ".mark")
      close(name ".mark")
      body = name ($1 == "```sh" ? ".sh" : ".yaml")
      printf "" > body
      next
    }
    /^```/ { if (inside == 1) close(body); inside = inside ? 0 : 2; next }
    inside == 1 { print > body }' "$1"
}

run_block() {  # DOCUMENT BLOCK MARK FOLDER
  local log="$work/log"
  if (cd "$4" && timeout 100 bash -euo pipefail "$2" >"$log" 2>&1); then return; fi
  if [[ $3 == capture=* ]] && grep -q "ran undisturbed" "$log"; then
    echo "$1: the machine is too busy to capture; taking tests/documents/${3#capture=}"
    cp "$root/tests/documents/${3#capture=}" "$4/"
    return
  fi
  echo "$1: failed:" >&2
  cat "$2" "$log" >&2
  exit 1
}

run_document() {
  local document=$1 blocks folder block mark ran=0
  blocks=$(mktemp -d "$work/blocks.XXXX")
  folder=$(mktemp -d "$work/folder.XXXX")
  ln -s "$root/scenarios" "$folder/scenarios"
  cut_blocks "$root/$document" "$blocks"
  find "$blocks" -name '*.sh' -o -name '*.yaml' | sort >"$work/order"
  while read -r block; do
    mark=$(cat "${block%.*}.mark")
    if [[ $block == *.yaml ]]; then
      if [[ $mark == FILE=* ]]; then cp "$block" "$folder/${mark#FILE=}"; fi
    elif [[ $mark != skip ]]; then
      run_block "$document" "$block" "$mark" "$folder" </dev/null
      ran=$((ran + 1))
    fi
  done <"$work/order"
  if ((ran > 0)); then echo "$document: $ran blocks ran"; fi
  total=$((total + ran))
}

# The names that links know a document's headings by: "### The machine's speed" is the-machines-speed.
headings() {
  awk '/^```/ { inside = !inside } /^#+ / && !inside' "$1" | sed 's/^#* //' | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
  local document=$1 link target heading
  for link in $(grep -oE '\]\([^) ]+' "$root/$document" | sed 's/^](//' | grep -vE '^[a-z]+:' || true); do
    target=$root/$(dirname "$document")/${link%%#*}
    if [[ $link == \#* ]]; then target=$root/$document; fi
    if [[ ! -e $target ]]; then
      echo "$document: links to ${link%%#*}, which is not there" >&2
      exit 1
    fi
    heading=${link#*#}
    if [[ $link == *#* ]] && ! headings "$target" | grep -xF -- "$heading" >/dev/null; then
      echo "$document: links to $link, which has no such heading" >&2
      exit 1
    fi
  done
}

total=0
cd "$root"
for document in *.md docs/*.md; do
  check_links "$document"
  run_document "$document"
done
if ((total < 10)); then
  echo "documents: only $total blocks ran; were the marks lost?" >&2
  exit 1
fi
