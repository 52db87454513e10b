#!/bin/bash
# Share of the branches of core, strategies and sim that the tests take, by clang's source-based coverage: both sides of every
# condition that the source states. Exit code 1 if a folder has less than 90 %. Builds in build/coverage.
# Usage: tests/branch-coverage.sh [FOLDER OF TESTS]...   (core strategies sim scenarios forecast commands)
set -euo pipefail
cd "$(dirname "$0")/.."
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(core strategies sim scenarios forecast commands)
build=build/coverage
# Simulations of tests run in child processes that end by _exit, which writes no counts.
mkdir -p $build
printf '%s\n' 'int __llvm_profile_write_file(void);' 'void __real__exit(int) __attribute__((noreturn));' \
  'void __wrap__exit(int code) { __llvm_profile_write_file(); __real__exit(code); }' >$build/write_at_exit.c
clang -c $build/write_at_exit.c -o $build/write_at_exit.o
cmake --preset clang -B $build -DCMAKE_BUILD_TYPE=None -DSTEPCAST_WERROR=OFF \
  -DCMAKE_CXX_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping" \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,--wrap=_exit $PWD/$build/write_at_exit.o" >/dev/null
cmake --build $build --target stepcast stepcast-rank "${tests[@]/%/_tests}"
rm -rf $build/profiles
export STEPCAST_DATA=$PWD LLVM_PROFILE_FILE=$PWD/$build/profiles/%8m.profraw
bash tests/cli_test.sh $build/stepcast >$build/cli.log 2>&1 || tail -n 5 $build/cli.log  # the command line
ctest --test-dir $build -j 2 --output-on-failure -R "^($(IFS='|'; echo "${tests[*]}")):" | tail -n 3
version=$(clang++ --version | sed -nE 's/.*version ([0-9]+).*/\1/p')
llvm-profdata-"$version" merge -sparse $build/profiles/*.profraw -o $build/profile
programs=(-object "$build/stepcast")
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
