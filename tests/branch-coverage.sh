#!/bin/bash
# Share of the branches of core, strategies and sim that the tests take, by clang's source-based coverage: both sides of every
# condition that the source states. Exit code 1 if a folder has less than 90 %. Builds in build/coverage.
# Usage: tests/branch-coverage.sh [FOLDER OF TESTS]...   (core strategies sim scenarios)
set -euo pipefail
cd "$(dirname "$0")/.."
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(core strategies sim scenarios)
build=build/coverage
cmake --preset clang -B $build -DCMAKE_BUILD_TYPE=None -DSTEPCAST_WERROR=OFF \
  -DCMAKE_CXX_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping" >/dev/null
cmake --build $build --target "${tests[@]/%/_tests}"
rm -rf $build/profiles
STEPCAST_DATA=$PWD LLVM_PROFILE_FILE=$PWD/$build/profiles/%8m.profraw \
  ctest --test-dir $build -j 2 --output-on-failure -R "^($(IFS='|'; echo "${tests[*]}")):" | tail -n 3
version=$(clang++ --version | sed -nE 's/.*version ([0-9]+).*/\1/p')
llvm-profdata-"$version" merge -sparse $build/profiles/*.profraw -o $build/profile
programs=()
for test in "${tests[@]}"; do programs+=(-object "$build/tests/$test/${test}_tests"); done
llvm-cov-"$version" export -summary-only -instr-profile=$build/profile "${programs[@]}" >$build/coverage.json
python3 - $build/coverage.json "$PWD" <<'END'
import json, sys
files = json.load(open(sys.argv[1]))["data"][0]["files"]
below = False
for folder in ("core", "strategies", "sim"):
    inside = [one for one in files if one["filename"].startswith(f"{sys.argv[2]}/{folder}/")]
    count = sum(one["summary"]["branches"]["count"] for one in inside)
    covered = sum(one["summary"]["branches"]["covered"] for one in inside)
    below = below or covered < 0.9 * count
    print(f"{folder}: {covered} of {count} branches, {100 * covered / max(count, 1):.1f} %")
    missing = sorted(inside, key=lambda one: one["summary"]["branches"]["covered"] - one["summary"]["branches"]["count"])
    for one in missing[:8]:
        branches = one["summary"]["branches"]
        if branches["covered"] < branches["count"]:
            print(f"  {one['filename'][len(sys.argv[2]) + 1:]}: {branches['count'] - branches['covered']} of {branches['count']} not taken")
sys.exit(1 if below else 0)
END
