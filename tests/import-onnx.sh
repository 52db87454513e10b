#!/usr/bin/env bash
# Runs tests/import_onnx_test.py STEPCAST with Debian's Python; skipped (77) without python3-onnx.
set -euo pipefail
python=/usr/bin/python3
"$python" -c 'import onnx' 2>/dev/null || exit 77
exec "$python" "$(dirname "$0")/import_onnx_test.py" "$1"
