#!/bin/bash
# The rules of .clang-tidy over the source files that changed, the last changed first and 12 at most.
# Usage: tests/clang-tidy.sh [COMMIT]: since this commit; by default since the last tag, or 20 commits ago
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy-14 >/dev/null || { echo "no clang-tidy-14 here: skipped"; exit 0; }

most=12
since=${1:-$(git describe --tags --abbrev=0 2>/dev/null || git rev-parse -q --verify HEAD~20 || git rev-list --max-parents=0 HEAD)}
cmake --preset clang -B build/tidy -DCMAKE_UNITY_BUILD=OFF -DSTEPCAST_PRECOMPILED_HEADERS=OFF -DBUILD_TESTING=OFF >/dev/null
mapfile -t changed < <(git log --format= --name-only "$since..HEAD" -- '*.cpp' | awk '!seen[$0]++' |
  while read -r file; do
    if grep -qF "\"file\": \"$PWD/$file\"" build/tidy/compile_commands.json; then echo "$file"; fi
  done)
echo "${#changed[@]} files of the program changed since $since; checking $((${#changed[@]} < most ? ${#changed[@]} : most))"
[ ${#changed[@]} -gt 0 ] || exit 0
printf '%s\n' "${changed[@]:0:most}" | xargs -P "$(nproc)" -n 2 clang-tidy-14 -p build/tidy --quiet 2>/dev/null
