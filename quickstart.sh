#!/usr/bin/env bash
# Installs what is missing, builds stepcast and runs the main job.
set -euo pipefail
cd "$(dirname "$0")"
tools/install-packages.sh
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release --target stepcast
build/release/stepcast run scenarios/quickstart.yaml
