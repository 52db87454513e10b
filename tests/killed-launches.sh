#!/bin/bash
# Kills, stops or hangs up a process of `stepcast validate` at a random moment: the launcher, mpirun or the agent of a host, or a
# rank. The launcher, unless it was killed itself, ends in time with exit code 4 and one line; the processes of the launch end; and
# after one more launch, which is left alone, no file and no shared memory is left. All of it stays on the loopback.
# Usage: tests/killed-launches.sh STEPCAST [LAUNCHES] [SEED]     LAUNCHES: default 200, which take about a quarter of an hour
set -u
stepcast=$(realpath "$1")
launches=${2:-200}
RANDOM=${3:-1}
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
heartbeat=3 within=3  # seconds
cd "$work" || exit 2
mkdir tmp
cp "$STEPCAST_DATA/tests/two-strategies.yaml" killed.yaml
printf 'one address=127.0.0.1\ntwo address=127.0.0.1\n' >here
printf '#!/bin/sh\nshift\nexec "$@"\n' >rsh
chmod +x rsh
failures=0
fail() {
  echo "FAILED: launch $launch ($what): $1"
  failures=$((failures + 1))
}

# All processes of the launches, which have a variable of their own. One that has ended has none.
processes() { grep -slzx "LAUNCHED_IN=$work" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'; }
end_all() {
  local process
  for process in $(processes); do kill -KILL "$process" 2>/dev/null; done
  rm -rf "$work"
}
trap end_all EXIT

shared_memory() { find /dev/shm -mindepth 1 -maxdepth 1 -type d -name 'stepcast-*' | sort; }
shared_memory >before

# start RESULTS OPTIONS...: sets $pid.
start() {
  local results=$1
  shift
  LAUNCHED_IN=$work TMPDIR=$work/tmp "$stepcast" validate killed.yaml --ranks 2 --sleep --set noise.jitter=none --accept-disturbed "$@" \
    -o "$results" >"$results.out" 2>"$results.err" </dev/null &
  pid=$!
}
# victim WHAT: prints the process, if it is there.
victim() {
  local process
  case $1 in
    launcher) echo "$pid" ;;
    starter) pgrep -P "$pid" -x 'mpirun|stepcast-rank' | shuf -n 1 --random-source=<(yes) ;;
    rank)
      for process in $(processes); do
        tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null | grep -q '^[^ ]*stepcast-rank --folder' && echo "$process"
      done | head -n 1
      ;;
  esac
}

signals_of() {
  case $1 in
    launcher) echo KILL KILL HUP TERM STOP ;;
    *) echo KILL STOP ;;
  esac
}

declare -A count
for ((launch = 1; launch <= launches; ++launch)); do
  more=()
  if [ $((launch % 2)) -eq 0 ]; then more=(--hosts here --rsh "$work/rsh" --bind 127.0.0.1); fi
  wanted=(launcher launcher starter rank)
  who=${wanted[RANDOM % 4]}
  start killed --repeats 1000 --heartbeat $heartbeat "${more[@]}"
  sleep "$(awk -v w=$within -v r=$RANDOM 'BEGIN { print w * r / 32768 }')"
  process=$(victim "$who")
  if [ -z "$process" ]; then who=launcher process=$pid; fi  # it has not begun yet
  read -r -a signals <<<"$(signals_of $who)"
  signal=${signals[RANDOM % ${#signals[@]}]}
  what="$who $signal ${more[*]:0:1}"
  count[$what]=$((${count[$what]:-0} + 1))
  kill -"$signal" "$process"
  case $what in
    'launcher STOP '*) sleep 1 && kill -KILL "$pid" ;;
    'starter STOP ') sleep 1 && kill -TERM "$pid" ;;  # nothing that still runs waits for mpirun
  esac
  timeout $((heartbeat + 30)) tail --pid="$pid" -f /dev/null || { fail "the launcher does not end"; kill -KILL "$pid"; }
  wait "$pid" 2>/dev/null
  code=$?
  expected=4
  case $what in
    'launcher KILL '* | 'launcher STOP '*) expected=137 ;;
    'launcher HUP '*) expected='4|129' ;;  # before it has begun, the signal ends it
    'launcher TERM '*) expected='4|143' ;;
  esac
  [[ $code =~ ^($expected)$ ]] || fail "exit code $code: $(cat killed.err)"
  if [ $code -eq 4 ]; then
    [ "$(grep -c '^stepcast: ' killed.err)" -eq 1 ] || fail "not one line: $(cat killed.err)"
  fi
  for ((try = 0; try < 100; ++try)); do
    [ -z "$(processes)" ] && break
    sleep 0.1
  done
  for left in $(processes); do fail "a process is left: $(tr '\0' ' ' <"/proc/$left/cmdline")"; kill -KILL "$left"; done
done

# Two at once, which are left alone.
launch=last what="left alone"
start alone --repeats 1 --heartbeat 300
first=$pid
start hosts --repeats 1 --heartbeat 300 --hosts here --rsh "$work/rsh" --bind 127.0.0.1
wait "$first" || fail "exit code $?: $(cat alone.err)"
wait "$pid" || fail "exit code $?: $(cat hosts.err)"
[ -z "$(processes)" ] || fail "a process is left"
[ -z "$(ls -A tmp)" ] || fail "files are left: $(ls -A tmp)"
shared_memory | comm -13 before - >new
while read -r folder; do  # another program's launch has its folder locked
  [ ! -e "$folder.owner" ] || flock -n "$folder.owner" true && fail "$folder is left"
done <new
for what in "${!count[@]}"; do echo "$what: ${count[$what]}"; done | sort
echo "$launches launches of seed ${3:-1} were killed, stopped or hung up: $failures failures"
[ $failures -eq 0 ]
