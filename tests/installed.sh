#!/bin/bash
# What `cmake --install` gives other programs: the Python module, and the libraries with CMake and with pkg-config, which build
# and run the example of a strategy of one's own. Usage: tests/installed.sh BUILD-FOLDER
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset STEPCAST STEPCAST_DATA
cmake --install "$build" --prefix "$work/installed" >/dev/null
"$work/installed/bin/stepcast" collectives --measured-tables >measured.txt  # it reads what was installed, not the sources
[ -x "$work/installed/share/stepcast/tools/netcluster" ]
PYTHONPATH=$work/installed/lib/python3/dist-packages /usr/bin/python3 "$root/tests/python/stepcast_test.py" -q  # Debian's, with its pandas

example=$root/docs/examples/own-strategy
cmake -S "$example" -B by-cmake -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null
cmake --build by-cmake >/dev/null
by-cmake/own-strategy "$example/own-strategy.yaml" | tee by-cmake.txt
awk '{ ms[NR] = $(NF - 1) } END { exit !(NR == 2 && ms[2] < ms[1]) }' by-cmake.txt || { echo "expected pipe_sgd to be faster"; exit 1; }

export PKG_CONFIG_PATH=$work/installed/lib/pkgconfig
flags=$(pkg-config --cflags --libs stepcast)
# shellcheck disable=SC2086  # words of flags
c++ "$example/main.cpp" -DSTEPCAST_DATA_FOLDER="\"$(pkg-config --variable=datadir stepcast)\"" $flags -o by-pkg-config
rm -f simulations.jsonl
./by-pkg-config "$example/own-strategy.yaml" | diff by-cmake.txt -
