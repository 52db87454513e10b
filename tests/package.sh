#!/bin/bash
# The Debian package of a build: unpacked anywhere, it forecasts the quickstart from its own data, and it names the libraries
# that it needs. Usage: tests/package.sh BUILD-FOLDER
set -eu
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset STEPCAST_DATA
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/deb" >log || { cat log; exit 1; }
package=$(echo deb/stepcast_*.deb)
dpkg-deb -f "$package" Depends | grep -q libsimgrid || { echo "no dependency on SimGrid"; exit 1; }
dpkg-deb -x "$package" root
root/usr/bin/stepcast run root/usr/share/stepcast/scenarios/quickstart.yaml --draws 1 --results-only -o out >/dev/null
[ "$(wc -l <out/results.csv)" -eq 5 ]
paths=$(grep -o '"[^"]*\.yaml"' out/manifest.json | grep / | grep -v usr/share/stepcast/ || true)
[ -z "$paths" ] || { echo "read from outside of the package: $paths"; exit 1; }
echo "$package: $(dpkg-deb -f "$package" Depends)"
