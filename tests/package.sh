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
root/usr/bin/stepcast run quickstart --draws 1 --results-only -o out >/dev/null
[ "$(wc -l <out/results.csv)" -eq 5 ]
grep -q 'complete -F _stepcast' root/usr/share/bash-completion/completions/stepcast || { echo "no completion"; exit 1; }
root/usr/bin/stepcast check root/usr/share/stepcast/scenarios/quickstart.yaml >/dev/null
[ -e root/usr/share/stepcast/schemas/scenario.json ]
[ -e root/usr/share/doc/stepcast/copyright ] && [ -e root/usr/share/doc/stepcast/docs/tutorial/first-forecast.md ]
if command -v help2man >/dev/null; then zgrep -q 'stepcast run' root/usr/share/man/man1/stepcast-run.1.gz; fi
paths=$(grep -o '"[^"]*\.yaml"' out/manifest.json | grep / | grep -v usr/share/stepcast/ || true)
[ -z "$paths" ] || { echo "read from outside of the package: $paths"; exit 1; }
echo "$package: $(dpkg-deb -f "$package" Depends)"
