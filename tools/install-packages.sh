#!/usr/bin/env bash
# Installs the Debian 12 packages that stepcast needs, if any is missing. `--dev` adds the packages that CI uses.
set -euo pipefail

packages=(build-essential cmake ninja-build pkg-config libsimgrid-dev libboost-dev libyaml-cpp-dev libcli11-dev
  nlohmann-json3-dev rapidjson-dev zlib1g-dev libfmt-dev librandom123-dev libssl-dev libeigen3-dev libnlopt-dev libdnnl-dev libhwloc-dev libopenmpi-dev openmpi-bin libgloo-dev iproute2
  libonnx-dev libprotobuf-dev gnuplot-nox fonts-dejavu-core catch2)
if [[ "${1:-}" == --dev ]]; then packages+=(clang clang-format-14 clang-tidy-14 libbenchmark-dev python3-onnx mkdocs python3-torch slurm-wlm munge mpich libmpich-dev chromium
  python3-jsonschema python3-yaml python3-pandas help2man zsh fish debootstrap); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

echo "installing: ${missing[*]}"
as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
