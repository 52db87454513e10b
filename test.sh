#!/usr/bin/env bash
# Installs what is missing, builds stepcast and passes its tests.
set -euo pipefail
cd "$(dirname "$0")"
tools/install-packages.sh
cmake --preset release -DBUILD_TESTING=ON >/dev/null
cmake --build --preset release
ctest --preset release
