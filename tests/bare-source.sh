#!/bin/bash
# README's two commands and three next steps on a bare Debian 12 (debootstrap), from a tarball of the sources without git, and
# then what the Containerfile runs: its first stage beside the sources, its second in a bare root of its own, where the installed
# package runs the quickstart, `init`, the Python module and a man page, and is removed. Needs root and Debian's mirror; exits 77,
# with the reason, without them. Usage: tests/bare-source.sh [--quick]: without ./test.sh
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
quick=${1:-}
. "$(dirname "$0")/bare-root.bash"
make_root root
mkdir "$work/root/source"
(cd "$source" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$work/root/source"
step() {  # WHAT COMMAND: in the sources
  echo "== bare root: $1"
  inside root bash -c "export STEPCAST_CUDA_ARCHITECTURES=90; cd /source && $2" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
}

step "./quickstart.sh" "./quickstart.sh"
[ -s "$work/root/source/results/quickstart/report.html" ]
# A busy machine cannot be measured: the ranks then run, and say so.
step "the third step" "cmake --build build/release --target stepcast-rank &&
  { build/release/stepcast validate scenarios/validate/small.yaml --ranks 2 -o /validated >/validated.log 2>&1 ||
    grep 'another program uses the processor' /validated.log; }"
if [ "$quick" != --quick ]; then step "./test.sh" "./test.sh"; fi
# The commands of the pages; the program that runs them needs Python.
step "the first two steps" "apt-get install -y -qq --no-install-recommends python3 &&
  tests/documents.sh build/release/stepcast docs/tutorial/first-forecast.md docs/how-to/search-for-options.md"

step "the first stage of the Containerfile" "$(containerfile_run "$source/Containerfile" 1)"
make_root image
cp "$work"/root/package/stepcast_*.deb "$work/image/tmp/"
in_image() { inside image "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }; }
in_image bash -c "$(containerfile_run "$source/Containerfile" 2)"
inside image stepcast run quickstart -o /quick | tail -n 4
[ "$(wc -l <"$work/image/quick/results.csv")" -eq 5 ]
grep -q '</html>' "$work/image/quick/report.html"
in_image stepcast init /my.yaml --model resnet50 --platform dgx-a100 -y
inside image python3 -c 'import stepcast; print("in Python:", stepcast.run("/my.yaml", draws=1)["workers"])'
in_image bash -c "apt-get update && apt-get install -y --no-install-recommends man-db"
inside image man stepcast-run | grep -q 'Simulate every point'
in_image apt-get remove -y stepcast
[ ! -e "$work/image/usr/share/stepcast" ] && [ ! -e "$work/image/usr/bin/stepcast" ]
echo "README's commands, its steps and the Containerfile's lines work on a bare Debian $(cat "$work/image/etc/debian_version")"
