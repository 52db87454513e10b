#!/usr/bin/env bash
# Builds the documents as a site with search, into build/site (or FOLDER). A broken link is an error.
# To look at it: python3 -m http.server -d build/site. Usage: tools/build-docs.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mkdocs >/dev/null || { echo "build-docs: mkdocs is missing; run tools/install-packages.sh --dev" >&2; exit 2; }
PYTHONDONTWRITEBYTECODE=1 mkdocs build --strict --quiet --site-dir "$(realpath -m "${1:-build/site}")"
