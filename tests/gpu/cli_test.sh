#!/bin/bash
# Tests stepcast-gpu as a program, on a machine with or without a GPU: exit codes and one-line errors.
# Usage: tests/gpu/cli_test.sh STEPCAST_GPU
program=$(realpath "$1")
export CUDA_VISIBLE_DEVICES=  # hides a GPU that is there
. "$(dirname "$0")/../setup.sh"

# refuses CODE TEXT ARGUMENTS...: expects the exit code, nothing on stdout and one line with the text on stderr, within a second
# of CPU time.
refuses() {
  local expected=$1 text=$2 code spent
  shift 2
  TIMEFORMAT='%U %S'
  spent=$({ time timeout 20 "$program" "$@" >out 2>err </dev/null; } 2>&1; echo $? >code)
  code=$(cat code)
  [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected: stepcast-gpu $*"
  [ -s out ] && fail "output beside an error: stepcast-gpu $*"
  [ "$(wc -l <err)" -eq 1 ] || fail "not one line: stepcast-gpu $*"
  grep -qF -- "$text" err || fail "no \"$text\": stepcast-gpu $*"
  awk -v spent="$spent" 'BEGIN { split(spent, t, " "); exit t[1] + t[2] >= 1 }' || fail "took $spent s: stepcast-gpu $*"
}

# Every command that needs a GPU reports that there is none.
mkdir folder
rank="--rank 0 --ranks 2 --store folder/store --folder folder --control folder/control"
for command in "capture --model small-cnn --batch 8" "capture-all" "check" "validate" \
  "run $source_folder/scenarios/validate/gpu.yaml" "rank $rank --scenario $source_folder/scenarios/validate/gpu.yaml"; do
  refuses 2 "--device cuda:0: " $command
done
ls | grep -vE '^(out|err|code|folder)$' && fail "files were left behind"
grep -q '^input --device cuda:0: ' folder/rank-0.error || fail "no error file for the process that watches the ranks"

# Wrong options.
refuses 2 "--device: expected cuda:NUMBER, got \"gpu\"" capture --model small-cnn --batch 8 --device gpu
refuses 2 "--batch" capture --model small-cnn
refuses 2 "--batch" capture --model small-cnn --batch 0
refuses 2 "--precision" capture --model small-cnn --batch 8 --precision f8
refuses 2 "--layout" capture --model small-cnn --batch 8 --layout nwhc
refuses 2 "--workspace" capture --model small-cnn --batch 8 --workspace 1
refuses 2 "--precisions" check --precisions f32,f8
refuses 2 "there is no option \"--nothing\"" --nothing
refuses 2 "--path" run scenario.yaml --path sockets
refuses 2 "--ranks" run scenario.yaml --ranks 1

"$program" --help >out 2>err || fail "--help"
"$program" --version >out 2>err && grep -q '^stepcast-gpu 0\.' out || fail "--version"

end_test
