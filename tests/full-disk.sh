#!/bin/bash
# Runs and trainings with `-o` on disks that are too small: every file is complete or not there, the run names what is missing and
# ends with 3, and `--resume` on a larger disk gives the files of a run that always had room. Then two runs into one folder:
# the second is refused. The disks are tmpfs mounts in a mount namespace; exit code 77 where that is not allowed.
# Usage: tests/full-disk.sh STEPCAST
set -u
if [ "${2:-}" != inside ]; then
  unshare -m true 2>/dev/null && exec unshare -m bash "$0" "$1" inside
  unshare -rm true 2>/dev/null && exec unshare -rm bash "$0" "$1" inside
  echo "skipped: mount namespaces are not allowed here"
  exit 77
fi
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
mkdir disk
scenario=$STEPCAST_DATA/scenarios/quickstart.yaml
small=(--set 'sweep.workers=[1, 2, 4, 8]')

# whole FILE: false for a file that ends in the middle.
whole() {
  case $1 in
    *.png) tail -c 8 "$1" | head -c 4 | grep -q IEND ;;
    *.html) tail -n 3 "$1" | grep -q '</html>' ;;
    *.svg) tail -n 3 "$1" | grep -q '</svg>' ;;
    *simulations.jsonl) [ "$(tail -c 1 "$1")" = "" ] ;;  # it may be empty
    *.csv | *.jsonl | *.json | *.sha256 | *.gp) [ "$(tail -c 1 "$1")" = "" ] && [ -s "$1" ] ;;
    */.lock) true ;;
    *) false ;;  # a temporary file was left behind
  esac
}
same() {  # manifest.json has the date and the command
  diff -r -x manifest.json -x '*.png' -x simulations.jsonl roomy "$1" >difference 2>&1 || fail "$1 differs: $(head -n 3 difference)"
  diff <(sort roomy/simulations.jsonl) <(sort "$1/simulations.jsonl") >/dev/null || fail "$1: other simulations"
}

"$stepcast" run "$scenario" "${small[@]}" -o roomy >out 2>err || fail "with room"
room=$(du -sk roomy | cut -f 1)
ended_full=0
for size in 4 8 16 24 32 48 64 80 96 128 160 192 256 384 2048; do
  mount -t tmpfs -o size=${size}k tmpfs disk || exit 77
  "$stepcast" run "$scenario" "${small[@]}" -j 2 -o disk/r >out 2>err
  code=$?
  for file in disk/r/* disk/r/.[!.]*; do
    [ ! -e "$file" ] || whole "$file" || fail "$size KiB: $file is not complete"
  done
  if [ $code -eq 3 ]; then
    ended_full=$((ended_full + 1))
    grep -qE 'No space left|the disk is full; missing: |probably full' err || fail "$size KiB: the cause is not named"
    [ "$(grep -c '^stepcast: ' err)" -eq 1 ] || fail "$size KiB: not one line"
    grep -q '^written' out && fail "$size KiB: it says that all was written"
    for name in $(sed -n 's/.*missing: \([^;]*\);.*/\1/p' err | tr -d ,); do
      [ ! -e "disk/r/$name" ] || fail "$size KiB: $name is said to be missing"
    done
    mount -o remount,size=8m disk
    "$stepcast" run "$scenario" "${small[@]}" -j 2 -o disk/r --resume >out 2>err || fail "$size KiB: resumed with $?"
    same disk/r
  elif [ $code -eq 0 ]; then
    same disk/r
  else
    fail "$size KiB: exit code $code"
  fi
  umount disk
done
[ $ended_full -ge 4 ] || fail "only $ended_full of the disks were too small; the results take $room KiB"

# A training on a disk that fills up says how to go on, and goes on.
cat >learns.yaml <<'END'
name: learns
model: tiny-dnn
trace: derived
platform: ethernet-cpu
workers: 2
batch_per_worker: 8
strategy: {kind: synchronous}
learning: {mini_batches: 10, learning_rate: 0.02, seeds: 3, data: {kind: sequences, samples: 64, test_samples: 32}}
END
"$stepcast" learn learns.yaml -o taught >out 2>err || fail "learn with room"
told=0
for size in 8 12 16; do
  mount -t tmpfs -o size=${size}k tmpfs disk || exit 77
  "$stepcast" learn learns.yaml -j 1 -o disk/l >out 2>err
  [ $? -eq 3 ] || fail "learn, $size KiB: it does not end with 3"
  grep -qF 'free some space and continue with --resume (finished trainings are kept)' err && told=$((told + 1))
  mount -o remount,size=8m disk
  "$stepcast" learn learns.yaml -j 1 -o disk/l --resume >out 2>err || fail "learn, $size KiB: resumed with $?"
  cmp -s taught/learning.csv disk/l/learning.csv || fail "learn, $size KiB: another learning.csv"
  umount disk
done
[ $told -eq 3 ] || fail "learn: only $told of 3 full disks were told how to go on"

# The second run into one folder is refused, and the first is not disturbed by it.
mkdir two bin
printf '#!/bin/bash\ntouch "%s/drawing"\nsleep 2\n' "$work" >bin/gnuplot
chmod +x bin/gnuplot
PATH=$work/bin:$PATH "$stepcast" run "$scenario" "${small[@]}" -o two/r >first.out 2>first.err &
first=$!
for ((i = 0; i < 200; ++i)); do [ -e drawing ] && break; sleep 0.1; done
"$stepcast" run "$scenario" "${small[@]}" -o two/r >out 2>err
[ $? -eq 2 ] || fail "two runs: exit code of the second"
grep -qF "two/r: process $first (" err || fail "two runs: the first one's process is not named"
wait $first
[ -e two/r/.lock ] && fail "two runs: the lock is left"
"$stepcast" run "$scenario" "${small[@]}" -o two/r --resume >out 2>err || fail "after the first run: $?"

# Ranks whose shared memory is too small or cannot be written say so.
for option in size=4k size=64k size=1m size=4m ro; do
  mount -t tmpfs -o $option tmpfs /dev/shm || exit 77
  "$stepcast" validate "$STEPCAST_DATA/tests/two-strategies.yaml" --ranks 2 --sleep --set noise.jitter=none --accept-disturbed -o shared >out 2>err
  code=$?
  expected=3
  [ $option = ro ] && expected=2
  [ $code -eq $expected ] || fail "/dev/shm with $option: exit code $code"
  grep -qE '^stepcast: /dev/shm.*(no space left|No space left|Read-only file system)' err || fail "/dev/shm with $option: the cause is not named"
  [ -z "$(ls -A /dev/shm)" ] || fail "/dev/shm with $option: $(ls -A /dev/shm) is left"
  umount /dev/shm
done

echo "$ended_full of 15 disks were too small"
end_test
