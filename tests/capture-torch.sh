#!/usr/bin/env bash
# Runs tests/capture_torch_test.py, or another script of this folder, with a Python that has PyTorch; without one the test is skipped (exit code 77).
# Usage: tests/capture-torch.sh STEPCAST [SCRIPT]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import torch' 2>/dev/null; then exec "$python" "$root/tests/${2:-capture_torch_test.py}" "$1"; fi
done
echo "capture-torch: skipped: no Python with PyTorch (Debian: python3-torch)"
exit 77
