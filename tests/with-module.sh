#!/usr/bin/env bash
# Runs a script of this folder with a Python that has a module; without one the test is skipped (exit code 77).
# Usage: tests/with-module.sh MODULE SCRIPT STEPCAST
set -euo pipefail
for python in python3 /usr/bin/python3; do
  if "$python" -c "import $1" 2>/dev/null; then exec "$python" "$(dirname "$0")/$2" "$3"; fi
done
echo "$2: skipped: no Python with $1"
exit 77
