#!/bin/bash
# `stepcast validate` over several machines: each "machine" here has a network, a host name, a clock, shared memory and a disk of its own
# (namespaces), and a script stands in for ssh. Checks runs by --hosts and inside mpirun (both transports), that results come back, that clocks are
# compared, that nothing listens at all interfaces, that strangers are dropped and named, and the errors for a dead rank, a dead
# host and another build. Needs root; exits 77, with the reason, where it cannot run.
# Usage: tests/hosts.sh STEPCAST
set -u
skip() { echo "skipped: $1"; exit 77; }
if [ "${1:-}" != --inside ]; then
  stepcast=$(realpath "$1")
  [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
  command -v ip >/dev/null || skip "no ip: apt-get install iproute2"
  unshare -nm --propagation private true 2>/dev/null || skip "this system allows no network namespace"
  exec unshare -nm --propagation private bash "$0" --inside "$stepcast"  # all that is set up ends with this process
fi
stepcast=$2
STEPCAST_DATA=$(realpath "$(dirname "$0")/..")
export STEPCAST_DATA
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/here" "$work/disk"
cd "$work/here" || exit 2  # which no host sees
hosts=2 network=10.88.0

mkdir -p /run/netns && mount -t tmpfs none /run/netns
ip link set lo up
ip link add bridge0 type bridge
ip address add $network.254/24 dev bridge0
ip link set bridge0 up
for ((i = 0; i < hosts; ++i)); do
  ip netns add node$i || skip "ip netns add fails here"
  ip link add veth$i type veth peer name eth0 netns node$i
  ip link set veth$i master bridge0 up
  ip -n node$i address add $network.$((i + 1))/24 dev eth0
  ip -n node$i link set eth0 up
  ip -n node$i link set lo up
done
clock=()
if unshare --time --monotonic 1000 true 2>/dev/null; then clock=(--time --monotonic); else echo "no time namespaces: all clocks are equal"; fi

# As ssh: HOST COMMAND..., the words joined to one line for a shell of the host. A disk of its own hides this folder.
cat >"$work/rsh" <<END
#!/bin/bash
host=\$1
shift
[ -e $work/here/refuses-\$host ] && { echo "rsh: \$host refuses" >&2; exit 255; }
offset=(${clock[*]})
[ \${#offset[@]} -gt 0 ] && offset+=(\$((1000 * (1 + \${host#node}))))
exec taskset -c \$((\${host#node} % $(nproc))) ip netns exec "\$host" unshare --uts --mount --ipc "\${offset[@]}" /bin/bash -c '
  hostname "\$0"
  mount -t tmpfs none /dev/shm
  other=$work/here/other-build-\$0
  [ -e "\$other" ] && mount --bind "\$other" "${stepcast}-rank"
  mount -t tmpfs none $work/here
  mount -t tmpfs none $work/disk
  export TMPDIR=$work/disk
  eval "\$1"' "\$host" "\$*"
END
chmod +x "$work/rsh"
cat >hosts <<END
# two machines
node0 slots=1 address=$network.1
node1
END
cp "$STEPCAST_DATA/tests/two-strategies.yaml" tiny.yaml
# Other programs on this machine may hold a rank up for long, so only the errors below wait for heartbeats.
common=(--sleep --accept-disturbed --repeats 1 --set noise.jitter=none)
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
# check NAME: the results of a run in the folder NAME are complete, and the clocks were compared.
check() {
  [ "$(grep -vc '^#' "$1/measured.csv" 2>/dev/null)" = 3 ] || { fail "$1: not all points were measured"; cat "$1.err" "$1"/*.log; return; }
  [ "$(grep -c node "$1/hosts.csv")" = 2 ] || { fail "$1: hosts.csv does not name both hosts"; cat "$1/hosts.csv"; }
  [ ${#clock[@]} -eq 0 ] || awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i } /node/ { seconds[$column["host"]] = $column["clock_offset_seconds"] }
    END { apart = seconds["node1"] - seconds["node0"]; exit !(apart > 999.9 && apart < 1000.1) }' <(grep -v '^#' "$1/hosts.csv") ||
    { fail "$1: the clocks are 1000 s apart, but not in hosts.csv"; cat "$1/hosts.csv"; }
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i } NR > 1 && ($column["measured_seconds"] <= 0 || $column["measured_seconds"] > 5) { bad = 1 } END { exit bad }' \
    <(grep -v '^#' "$1/measured.csv") || { fail "$1: a step took longer than 5 s or less than 0"; cat "$1/measured.csv"; }
}

# Runs by --hosts; strangers knock meanwhile.
"$stepcast" validate tiny.yaml --hosts hosts --rsh "$work/rsh" --bind $network.254:29511 "${common[@]}" --heartbeat 200 -o by-ssh >by-ssh.out 2>by-ssh.err </dev/null &
pid=$!
wide=0 knocked=0
while kill -0 $pid 2>/dev/null; do
  if [ $knocked -eq 0 ] && (exec 3<>/dev/tcp/$network.254/29511 && printf 'GET / HTTP/1.1\r\n\r\n' >&3) 2>/dev/null; then knocked=1; fi
  for node in self node0 node1; do
    if [ $node = self ]; then sockets=$(cat /proc/net/tcp); else sockets=$(ip netns exec $node cat /proc/net/tcp); fi
    awk '$4 == "0A" && $2 ~ /^00000000:/ { bad = 1 } END { exit !bad }' <<<"$sockets" && wide=1
  done
  sleep 0.2
done
wait $pid || { fail "--hosts: exit code $?"; cat by-ssh.err by-ssh/*.log; }
check by-ssh
[ $wide -eq 0 ] || fail "--hosts: a socket listens at all interfaces"
grep -q 'dropped a connection from .*: it did not show the token' by-ssh/strangers.log || fail "the stranger is not named"

# Ranks that compute, with two forecasts: each has traces and algorithms that its hosts sent and got.
"$stepcast" validate tiny.yaml --hosts hosts --rsh "$work/rsh" --bind $network.254:29511 --accept-disturbed --repeats 1 --forecasts 2 \
  --set noise.jitter=trace --heartbeat 200 -o computing >computing.out 2>computing.err </dev/null || { fail "--forecasts 2: exit code $?"; cat computing.err computing/*.log; }
check computing
[ "$(cut -d, -f2 <(grep -v '^#' computing/samples.csv | tail -n +2) | sort | uniq -c | awk '{ printf "%s ", $1 }')" = "2 2 " ] ||
  { fail "--forecasts 2: not every forecast has runs"; cat computing/samples.csv; }
cmp -s computing/forecast-1/small-mlp-b8.yaml computing/forecast-2/small-mlp-b8.yaml && fail "--forecasts 2: both have the same trace"

# Inside mpirun, by both transports. All hosts see this copy of the scenario.
cp tiny.yaml "$work/tiny.yaml"
export STEPCAST_STORE_TOKEN=0123456789abcdef OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for transport in own mpi; do
  mpirun -n 2 --host node0,node1 --mca plm_rsh_agent "$work/rsh" --mca btl tcp,self --mca oob_tcp_if_include $network.0/24 \
    --mca btl_tcp_if_include $network.0/24 -x STEPCAST_STORE_TOKEN -x STEPCAST_DATA sh -c "cd $STEPCAST_DATA && exec $stepcast validate \
    $work/tiny.yaml --bind $network.1:29512 --transport $transport ${common[*]} --heartbeat 200 -o /tmp/stepcast-hosts-$$-$transport" \
    >mpirun-$transport.out 2>&1 </dev/null || { fail "mpirun, --transport $transport: exit code $?"; tail -n 20 mpirun-$transport.out; }
  mv "/tmp/stepcast-hosts-$$-$transport" "mpirun-$transport"
  [ "$(grep -vc '^#' "mpirun-$transport/measured.csv" 2>/dev/null)" = 3 ] || { fail "mpirun, --transport $transport: points are missing"; cat "mpirun-$transport"/*.log; }
done

# Errors.
refuses() {  # NAME EXIT-CODE TEXT OPTIONS...
  local name=$1 expected=$2 text=$3
  shift 3
  "$stepcast" validate tiny.yaml --rsh "$work/rsh" "${common[@]}" --heartbeat 5 "$@" -o "$name" >"$name.out" 2>"$name.err" </dev/null
  local code=$?
  [ $code -eq "$expected" ] && grep -Eq "$text" "$name.err" || { fail "$name: exit code $code"; cat "$name.err"; }
}
cp "${stepcast}-rank" other-build-node1
printf x >>other-build-node1
refuses other-build 2 'rank 1 on node1: its stepcast-rank is not the one of this machine' --hosts hosts --bind $network.254
rm other-build-node1
touch refuses-node1
refuses no-login 4 'rank 1 on node1 has not connected to .*: rsh: node1 refuses' --hosts hosts --bind $network.254
rm refuses-node1
printf 'node0; reboot\n' >bad-hosts
refuses bad-name 2 'bad-hosts:1:1: expected a host name of letters' --hosts bad-hosts
printf 'node0 slots=0\n' >bad-hosts
refuses bad-slots 2 'bad-hosts:1:7: expected slots=1 to slots=64, got "slots=0"' --hosts bad-hosts
refuses all-interfaces 2 'bind: expected ADDRESS' --hosts hosts --bind 0.0.0.0
refuses mpi-by-ssh 2 'ssh starts ranks without MPI' --hosts hosts --transport mpi

[ $failures -eq 0 ] || { echo "$failures checks failed"; exit 1; }
echo "ranks on two hosts, by ssh's stand-in and inside mpirun"
