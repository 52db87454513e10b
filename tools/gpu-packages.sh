#!/usr/bin/env bash
# Downloads the few Debian packages that stepcast-gpu is built from and unpacks them into a folder, for a GPU machine on which
# packages cannot be installed: copy the folder there and set CMAKE_PREFIX_PATH=FOLDER/usr. Run this on Debian 12 with the same
# processor architecture.
#   tools/gpu-packages.sh FOLDER
set -euo pipefail
(($# == 1)) || { echo "gpu-packages: expected one argument, the folder to write to" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq libfmt-dev libfmt9 libyaml-cpp-dev libyaml-cpp0.7 libcli11-dev nlohmann-json3-dev rapidjson-dev zlib1g-dev zlib1g librandom123-dev catch2
for package in *.deb; do dpkg -x "$package" "$folder"; done
echo "$folder: $(du -sh "$folder" | cut -f1); on the GPU machine: CMAKE_PREFIX_PATH=$folder/usr"
