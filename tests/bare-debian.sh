#!/bin/bash
# Installs the Debian package on a bare Debian 12 (debootstrap), where apt installs what the package depends on, and runs the
# quickstart, `stepcast init` and the Python module there. Needs root and Debian's mirror; exits 77, with the reason, without them.
# Usage: tests/bare-debian.sh BUILD-FOLDER
set -eu
build=$(realpath "$1")
. "$(dirname "$0")/bare-root.bash"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/deb" >"$work/log" || { cat "$work/log"; exit 1; }

make_root root
cp "$work"/deb/stepcast_*.deb "$work/root/stepcast.deb"
bare() { inside root "$@"; }
install() { bare apt-get install -y -qq --no-install-recommends "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }; }

install /stepcast.deb
bare stepcast run quickstart -o /quick | tail -n 4
[ "$(wc -l <"$work/root/quick/results.csv")" -eq 5 ]
grep -q '</html>' "$work/root/quick/report.html"
bare stepcast init /my.yaml --model resnet50 --platform dgx-a100 -y
install python3
bare python3 -c 'import stepcast; print("in Python:", stepcast.run("/my.yaml", draws=1)["workers"])'
install man-db
bare man stepcast-run | grep -q 'Simulate every point'
bare apt-get remove -y -qq stepcast >"$work/log"
[ ! -e "$work/root/usr/share/stepcast" ] && [ ! -e "$work/root/usr/bin/stepcast" ]
echo "the package works on a bare Debian $(cat "$work/root/etc/debian_version")"
