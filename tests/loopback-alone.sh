#!/bin/bash
# `stepcast validate` on one machine opens no socket that another machine could reach: while its ranks run, the machine's own
# network has no more listening sockets than before, except on the loopback. Where the system allows no network namespace,
# mpirun's two sockets are left.
# Usage: tests/loopback-alone.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
allowed=2
if unshare -n true 2>/dev/null || unshare -rn true 2>/dev/null; then allowed=0; fi

# Listening sockets (state 0A) of this network that are not on 127.0.0.0/8 or ::1, by address, port and inode.
listening() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk '$4 == "0A" && $2 !~ /^......7F:/ && $2 !~ /^0{24}01000000:/ && $2 !~ /^0{16}FFFF0000......7F:/ { print $2, $10 }' | sort
}
for cluster in memory loopback; do
  listening >before
  "$stepcast" validate "$STEPCAST_DATA/scenarios/validate/small.yaml" --ranks 2 --sleep --set noise.jitter=none --accept-disturbed --cluster $cluster \
    -o "$cluster" >out 2>err </dev/null &
  pid=$!
  : >seen
  waited=0
  while kill -0 $pid 2>/dev/null && [ $waited -lt 60 ]; do
    listening | comm -13 before - >>seen
    [ -e "$cluster/links.jsonl" ] && break  # the ranks have met and measured
    waited=$((waited + 1))
    sleep 0.2
  done
  [ -e "$cluster/ranks.log" ] || fail "$cluster: the ranks did not begin"
  kill -INT $pid 2>/dev/null
  wait $pid
  code=$?
  [ $code -eq 4 ] || [ $code -eq 0 ] || { fail "$cluster: exit code $code"; cat "$cluster/ranks.log"; }
  count=$(sort -u seen | wc -l)
  [ "$count" -le $allowed ] || { fail "$cluster: $count sockets listen beyond the loopback"; sort -u seen; }
done
end_test
