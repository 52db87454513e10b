#!/bin/bash
# Which folder may include which (docs/architecture.md), and two rules that no compiler checks.
# Usage: tests/architecture.sh [SOURCE_FOLDER]; prints every breach and fails if there is one.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

breaches=0
breach() {
  echo "$1"
  breaches=$((breaches + 1))
}

# Every #include of a folder as FILE:LINE:PATH.
includes() {
  grep -rnE --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.cuh' '^[[:space:]]*#[[:space:]]*include' "$@" |
    sed -E 's/^([^:]*:[0-9]+):[^<"]*[<"]([^>"]*)[>"].*/\1:\2/'
}

# Sets `who` to the folder of this project, or the library, that a header belongs to.
find_owner() {
  case $1 in
    strategies/arithmetic/*) who=arithmetic ;;
    core/* | data/* | models/* | platforms/* | strategies/* | campaigns/* | scenarios/* | report/* | sim/* | kernels/* | gpu/* | validate/* | commands/*) who=${1%%/*} ;;
    simgrid/* | simgrid.h | xbt/* | xbt.h | smpi/*) who=simgrid ;;
    *dnnl*) who=dnnl ;;
    cuda*.h | cublas*.h | cudnn*.h | nccl.h) who=cuda ;;
    cases.hpp) who=cases ;;
    mpi.h) who=mpi ;;
    yaml-cpp/*) who=yaml-cpp ;;
    Random123/*) who=random123 ;;
    nlohmann/*) who=nlohmann ;;
    openssl/*) who=openssl ;;
    fmt/*) who=fmt ;;
    boost/*) who=boost ;;
    CLI/*) who=cli ;;
    catch2/*) who=catch2 ;;
    */*.h) who=system ;;
    */*) who=unknown ;;
    *) who=system ;;
  esac
}

# allow FOLDER OWNER...: any other owner in the folder is a breach.
allow() {
  local folder=$1 line place header who
  shift
  [ -d "$folder" ] || { breach "$folder: there is no such folder"; return; }
  while IFS= read -r line; do
    header=${line##*:}
    place=${line%:*}
    find_owner "$header"
    case " $folder system fmt $* " in
      *" $who "*) ;;
      *) breach "$place: $folder may not include <$header> ($who)" ;;
    esac
  done < <(includes "$folder")
}

allow core yaml-cpp random123
allow data core
allow models core
allow platforms core
allow strategies arithmetic core models platforms
allow strategies/arithmetic arithmetic core
allow campaigns core
allow scenarios arithmetic core data models platforms strategies campaigns
allow report core nlohmann openssl
allow sim arithmetic core models platforms strategies simgrid
allow kernels arithmetic core models dnnl cuda
allow gpu arithmetic core models strategies kernels report scenarios validate cuda cli cases
allow validate arithmetic core data models platforms strategies scenarios kernels report mpi nlohmann cli
allow commands arithmetic boost core data models platforms strategies campaigns scenarios report sim kernels validate cli

# g++ 12 frees a braced temporary of a co_await twice.
while IFS= read -r line; do
  breach "$line: name the argument of co_await before; g++ 12 frees a braced temporary twice"
done < <(grep -rlzE --include='*.hpp' --include='*.cpp' 'co_await [^;]*\{' strategies)  # -z: over line ends too

# Two types of one name in one namespace are one to the linker, which takes either's destructor for both.
while IFS= read -r line; do
  breach "two types of one name: $line"
done < <(find * -name '*.hpp' | grep -vE '^(build|tests|kernels/(cudnn|onednn))/' | xargs grep -HoE '^(struct|class) \w+ ([^;]*)?\{' |
  sed -E 's/^([^:]*):(struct|class) (\w+).*/\3 \1/' | sort | awk '{ n[$1]++; f[$1] = f[$1] " " $2 } END { for (k in n) if (n[k] > 1) print k f[k] }')

[ "$breaches" -eq 0 ] || { echo "$breaches breaches of the architecture"; exit 1; }
