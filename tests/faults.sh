#!/bin/bash
# Kills, stops or spins ranks of `stepcast validate` at random moments. Each time, stepcast must name the rank, its host and its
# status in time, with exit code 4; the results so far must be readable; and no process, file or namespace may be left
# behind. The script is not a part of ctest: 60 starts of a validation take about ten minutes on two quiet cores.
# Usage: tests/faults.sh STEPCAST [MOMENTS] [SEED] [OPTIONS OF VALIDATE...], such as --transport mpi, --cluster netcluster:1gbit (root), or --hosts FILE
# --rsh PROGRAM, whose hosts see this machine's processes and files; `--hosts here` stands for two hosts at the loopback, without ssh;
# MOMENTS: faults of each kind, default 20. HEARTBEAT: seconds, default 3. WITHIN: the faults come within this many seconds after
# the start of the ranks; default: the duration of a run without a fault. Programs `stepcast-rank` and `spin` are those of STEPCAST's build.
set -u
stepcast=$(realpath "$1")
moments=${2:-20} seed=${3:-1}
more=("${@:4}")
spin=$(dirname "$stepcast")/tests/validate/spin
heartbeat=${HEARTBEAT:-3}
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
RANDOM=$seed

cp "$STEPCAST_DATA/tests/two-strategies.yaml" faults.yaml
if [[ ${more[*]} == *"--hosts here"* ]]; then
  printf 'one address=127.0.0.1\ntwo address=127.0.0.1\n' >here
  printf '#!/bin/sh\nshift\nexec "$@"\n' >rsh
  chmod +x rsh
  more+=(--rsh "$work/rsh" --bind 127.0.0.1)
fi
phases='startup|measuring .*|capturing .*|timing .*|waiting for the forecast|strategy.kind=.* \(repeat [0-9]+\)|shutdown'

failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

seconds() { date +%s.%N; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# start NAME REPEATS: starts a validation in the background and sets $pid.
start() {
  if [[ ${more[*]} == *--hosts* ]]; then
    mkdir -p "$work/$1-tmp"
    export TMPDIR=$work/$1-tmp
  fi
  "$stepcast" validate faults.yaml --ranks 2 --repeats "$2" --heartbeat "$heartbeat" --accept-disturbed "${more[@]}" \
    -o "$1" >"$1.out" 2>"$1.err" </dev/null &
  pid=$!
}

# process_of NAME RANK: prints the process of a rank, if it runs. Agents of ranks on hosts keep their folder in that of the run.
process_of() {
  local process
  if [[ ${more[*]} == *--hosts* ]]; then
    pgrep -f "^[^ ]*stepcast-rank --folder $work/$1-tmp/[^ ]* .*--rank $2 "
    return 0
  fi
  for process in $(pgrep -f "^[^ ]*stepcast-rank --folder $work/$1 "); do
    tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$process"
  done
  true
}

# Checks that a run has left no process, shared memory or namespace.
left_behind() {
  local name=$1
  for ((try = 0; try < 30; ++try)); do  # agents end when they notice that the launcher is gone
    pgrep -f "$work/$name" >/dev/null || break
    sleep 0.1
  done
  pgrep -fa "$work/$name" && fail "$name: processes are left"
  for owner in /dev/shm/stepcast-*.owner; do
    [ -e "$owner" ] && flock -n "$owner" true && fail "$name: ${owner%.owner} is left"
  done
  [[ ${more[*]} == *netcluster* ]] && ip netns list | grep -E '^stepcast[0-9]' && fail "$name: namespaces are left"
}

# Checks the error message, and that all runs that were measured can be read.
check_message() {
  local name=$1 rank=$2 how=$3 message lines kept
  message=$(tr '\r' '\n' <"$name.err" | tail -n 1)
  [[ $message =~ ^stepcast:\ rank\ $rank\ on\ [^\ ]+\ $how\ during\ ($phases)\;\  ]] || fail "$name: $message"
  lines=$(cat "$name"/samples.jsonl* 2>/dev/null | wc -l)
  kept=0
  [[ $message =~ \;\ ([0-9]+)\ runs\ measured\ so\ far ]] && kept=${BASH_REMATCH[1]}
  [ "$kept" -eq "$lines" ] || fail "$name: $lines lines, but $kept can be read"
  echo "$name: $message" | cut -c 1-150
}

# fault KIND NUMBER: one validation in which a rank fails at a random moment. Counts in `found` those without any complaint, and
# keeps in `longest` the seconds from the fault to the end of the validation.
declare -A found longest
fault() {
  local kind=$1 name=$1-$2 rank=$((RANDOM % 2)) process how thread begin code took limit before=$failures
  local wait_for threads=("" collectives messages)
  thread=${threads[RANDOM % 3]}
  wait_for=$(awk -v whole="$whole" -v part="$RANDOM" 'BEGIN { print whole * part / 32768 }')
  start "$name" 1000
  until process=$(process_of "$name" $rank) && [ -n "$process" ]; do
    kill -0 $pid 2>/dev/null || { fail "$name: it ended before its ranks began: $(cat "$name.err")"; return; }
    sleep 0.02
  done
  sleep "$wait_for"
  case $kind in
    killed) kill -KILL "$process"; how=died limit=10 ;;
    stopped)  # repeated, in case another process continues it
      (while kill -STOP "$process" 2>/dev/null; do sleep 0.2; done) &
      how='hung for [0-9]+ s' limit=$((heartbeat + 10)) ;;
    spinning)  # if the thread does not run yet, the program's thread spins
      "$spin" "$process" "$thread" 2>/dev/null || "$spin" "$process" "" || fail "$name: could not make it spin"
      how='hung for [0-9]+ s' limit=$((heartbeat + 10)) ;;
  esac
  begin=$(seconds)
  # While MPI starts, a rank that spins cannot be told from one that waits for it.
  timeout 120 tail --pid=$pid -f /dev/null || { fail "$name: it did not end"; kill -KILL $pid; }
  wait $pid
  code=$?
  took=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { print b - a }')
  [ $code -eq 4 ] || fail "$name: exit code $code, not 4"
  less "$took" "$limit" || fail "$name: named after $took s"
  [ "$kind" = spinning ] && grep -q 'during startup' "$name.err" && rank='[01]'
  check_message "$name" "$rank" "$how"
  left_behind "$name"
  if [ "$failures" -eq "$before" ]; then found[$kind]=$((${found[$kind]:-0} + 1)); fi
  if less "${longest[$kind]:-0}" "$took"; then longest[$kind]=$took; fi
}

whole=${WITHIN:-}
if [ -z "$whole" ]; then
  begin=$(seconds)
  start whole 3
  wait $pid || { cat whole.err; exit 1; }
  whole=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { print b - a }')
  left_behind whole
fi
echo "seed $seed, $moments moments of each kind within ${whole%.*} s from the start of the ranks"
kinds=(killed stopped)
if [ -x "$spin" ]; then kinds+=(spinning); else echo "no $spin: no rank is made to spin"; fi
for ((number = 1; number <= moments; ++number)); do
  for kind in "${kinds[@]}"; do fault "$kind" "$number"; done
done
for kind in "${kinds[@]}"; do
  printf '%s: %s of %s found, the latest after %.1f s\n' "$kind" "${found[$kind]:-0}" "$moments" "${longest[$kind]:-0}"
done
[ $failures -eq 0 ] || { echo "$failures checks failed"; exit 1; }
