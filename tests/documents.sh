#!/usr/bin/env bash
# Runs what the documents tell people to run, and checks their form. Usage: tests/documents.sh [STEPCAST [DOCUMENT...]]
# Without DOCUMENT: all of them, *.md and docs/**/*.md. `tests/documents.sh --form` checks the form alone, without a program.
# - Every ```sh block is run, in order, each document in a folder of its own; ```yaml and ```python FILE=NAME blocks are written there first.
#   ```sh torch is run where a Python has PyTorch.
#   ```sh skip is not run. ```sh capture=FILE may fail because the machine is busy, and then takes tests/documents/FILE.
# ```text printed: each line, its last cell possibly cut, stands in what the block before it printed.
# - Relative links lead somewhere, to the heading if they name one. Pages of docs/ are in mkdocs.yml, and no page, README.md and
#   docs/ as a whole have more words than below.
# - The steps of docs/explanation/walks.md name what is in the source (tests/walk_names.py).
# - Tables are what their CSV files give (tools/documents.py).
# - A ```diff block is true: taken back from the source, it would apply.
# - The site builds where mkdocs is installed.
set -euo pipefail
shopt -s globstar
root=$(cd "$(dirname "$0")/.." && pwd)
form_only=
if [[ ${1:-} == --form ]]; then form_only=1 && shift; fi
stepcast=$(realpath -m "${1:-$root/build/release/stepcast}")
[[ $form_only || -x $stepcast ]] || { echo "documents: no program $stepcast; build it first" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
most_words=1800          # of a page of docs/ except docs/notes
most_words_readme=700
most_words_docs=65000  # of docs/ with docs/notes
mkdir "$work/bin"
ln -s "$stepcast" "$work/bin/stepcast"
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import torch' 2>/dev/null; then ln -s "$(command -v "$python")" "$work/bin/python3" && break; fi
done
export PATH="$work/bin:$PATH" STEPCAST_DATA="$root"

# Cuts a document into blocks: FOLDER/NUMBER.sh or .file, with its mark ("skip", "FILE=...") in NUMBER.mark.
cut_blocks() {
  awk -v folder="$2" '
    /^```/ && !inside && ($1 == "```sh" || $1 == "```yaml" || $1 == "```python" || $0 == "```text printed") {
      inside = 1
      name = sprintf("%s/%03d", folder, ++count)
      print $2 > (name ".mark")
      close(name ".mark")
      body = name ($1 == "```sh" ? ".sh" : ".file")
      printf "" > body
      next
    }
    /^```/ { if (inside == 1) close(body); inside = inside ? 0 : 2; next }
    inside == 1 { print > body }' "$1"
}

# Each line of BLOCK is the beginning of a line of the block that ran before it; blanks do not count.
check_printed() {
  local line
  tr -s ' ' <"$work/log" | sed 's/^ //' >"$work/said"
  while read -r line; do
    if ! awk -v line="$line" 'index($0, line) == 1 { found = 1 } END { exit !found }' "$work/said"; then fail "$1: the program does not print: $line"; fi
  done < <(tr -s ' ' <"$2")
}

run_block() {  # DOCUMENT BLOCK MARK FOLDER
  local log="$work/log"
  if (cd "$4" && timeout 300 bash -euo pipefail "$2" >"$log" 2>&1); then return; fi
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
  ln -s "$root/scenarios" "$root/tools" "$folder"
  cut_blocks "$root/$document" "$blocks"
  find "$blocks" -name '*.sh' -o -name '*.file' | sort >"$work/order"
  while read -r block; do
    mark=$(cat "${block%.*}.mark")
    if [[ $block == *.file ]]; then
      if [[ $mark == FILE=* ]]; then cp "$block" "$folder/${mark#FILE=}"; fi
      if [[ $mark == printed ]]; then check_printed "$document" "$block"; fi
    elif [[ $mark == torch && ! -e $work/bin/python3 ]]; then
      echo "$document: skipped a block: no Python with PyTorch (Debian: python3-torch)"
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

fail() {
  echo "$1" >&2
  exit 1
}

# What a page must be like to be readable, and to look the same on GitHub and on the site.
check_form() {
  local document=$1 words wrong
  wrong=$(awk '
    /^```/ { inside = !inside }
    !inside && /^([-*]|[0-9]+\.) / && last != "" && last !~ /^([-*]|[0-9]+\.|  ) ?/ { print FNR; exit }
    { last = $0 }' "$root/$document")
  if [[ $wrong ]]; then fail "$document:$wrong: a list needs an empty line before it"; fi
  if [[ $document == README.md ]] && (($(wc -w <"$root/$document") > most_words_readme)); then fail "README.md: has more than $most_words_readme words"; fi
  if [[ $document != docs/* ]]; then return; fi
  words=$(wc -w <"$root/$document")
  if [[ $document != docs/notes/* ]] && ((words > most_words)); then fail "$document: has $words words, $most_words at most"; fi
  if ! grep -qE "(-|:) ${document#docs/}\$" "$root/mkdocs.yml"; then fail "$document: is not in mkdocs.yml"; fi
}

check_links() {
  local document=$1 link target heading
  for link in $(awk '/^```/ { inside = !inside } !inside' "$root/$document" | grep -oE '\]\([^) ]+' | sed 's/^](//' | grep -vE '^[a-z]+:' || true); do
    target=$root/$(dirname "$document")/${link%%#*}
    if [[ $link == \#* ]]; then target=$root/$document; fi
    if [[ ! -e $target ]]; then fail "$document: links to ${link%%#*}, which is not there"; fi
    heading=${link#*#}
    if [[ $link == *#* ]] && ! headings "$target" | grep -xF -- "$heading" >/dev/null; then
      fail "$document: links to $link, which has no such heading"
    fi
    # GitHub writes "a / b" as a--b, MkDocs as a-b.
    if [[ $link == *#*--* ]]; then fail "$document: links to $link, a heading that the site names differently"; fi
  done
}

# Files of the source that a page names, such as `sim/engine/engine.cpp`, must exist.
check_paths() {
  local path
  for path in $(grep -oE '`[a-z_]+/[A-Za-z0-9_./-]+\.(cpp|hpp|cu|cuh|sh)`' "$root/$1" | tr -d '`' | sort -u || true); do
    if [[ ! -e $root/$path ]]; then fail "$1: names $path, which does not exist"; fi
  done
}

# A diff block shows an edit that was made once: the source still has its new lines.
check_diffs() {
  awk '/^```diff$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/$1" >"$work/diff"
  if [[ -s $work/diff ]] && ! patch -d "$root" -p1 -R --dry-run --force --fuzz=0 <"$work/diff" >"$work/log" 2>&1; then
    fail "$1: its diff is not that of the source any more: $(head -n 1 "$work/log")"
  fi
}

total=0
cd "$root"
documents=("${@:2}")
if (($# < 2)); then documents=(*.md docs/**/*.md); fi
for document in "${documents[@]}"; do
  check_form "$document"
  check_links "$document"
  check_paths "$document"
  check_diffs "$document"
done
words=$(cat docs/**/*.md | wc -w)
if ((words > most_words_docs)); then fail "docs/ has $words words, $most_words_docs at most"; fi
tests/walk_names.py docs/explanation/walks.md
tools/documents.py --check
if [[ $form_only ]]; then exit 0; fi
for document in "${documents[@]}"; do run_document "$document"; done
if (($# >= 2)); then exit 0; fi
if ((total < 10)); then fail "documents: only $total blocks ran; were the marks lost?"; fi
if command -v mkdocs >/dev/null; then tools/build-docs.sh; else echo "documents: mkdocs is not installed; the site was not built"; fi
