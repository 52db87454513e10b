#!/bin/bash
# Which folder may include which (cmake/layers.txt), how large folders and files may be, and two rules that no
# compiler checks.
# Usage: tests/architecture.sh [SOURCE_FOLDER]; prints every breach and fails if there is one.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

breaches=0
breach() {
  echo "$1"
  breaches=$((breaches + 1))
}

# Every #include as FILE:LINE:PATH.
includes() {
  grep -rnE --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.cuh' '^[[:space:]]*#[[:space:]]*include' "$@" |
    sed -E 's/^([^:]*:[0-9]+):[^<"]*[<"]([^>"]*)[>"].*/\1:\2/'
}

libraries=$(grep -vE '^(#|inside )' cmake/layers.txt | sed 's#[/ ].*##' | uniq | tr '\n' ' ')

# Sets `who` to the folder of this project, or the third-party library, that a header belongs to.
find_owner() {
  case $1 in
    strategies/arithmetic/*) who=arithmetic ;;
    simgrid/* | simgrid.h | xbt/* | xbt.h | smpi/*) who=simgrid ;;
    *dnnl*) who=dnnl ;;
    cuda*.h | cublas*.h | cudnn*.h | nccl.h) who=cuda ;;
    mpi.h) who=mpi ;;
    yaml-cpp/*) who=yaml-cpp ;;
    Random123/*) who=random123 ;;
    nlohmann/*) who=nlohmann ;;
    rapidjson/*) who=rapidjson ;;
    openssl/*) who=openssl ;;
    hwloc.h) who=hwloc ;;
    onnx/* | google/protobuf/*) who=onnx ;;
    fmt/*) who=fmt ;;
    boost/*) who=boost ;;
    Eigen/*) who=eigen ;;
    nlopt.h) who=nlopt ;;
    CLI/*) who=cli ;;
    catch2/*) who=catch2 ;;
    */*.h) who=system ;;
    */*) who=${1%%/*}; case " $libraries " in *" $who "*) ;; *) who=unknown ;; esac ;;
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
    case " ${folder%%/*} ${folder##*/} system fmt $* " in
      *" $who "*) ;;
      *) breach "$place: $folder may not include <$header> ($who)" ;;
    esac
  done < <(includes "$folder")
}

while read -r folder owners; do
  # shellcheck disable=SC2086
  allow "$folder" $owners
done < <(grep -vE '^(#|inside )' cmake/layers.txt)

# inner_order LIBRARY GROUP...: a folder may include itself and those of the groups before its own.
inner_order() {
  local library=$1 level=0 group folder known
  shift
  local -A level_of=()
  for group in "$@"; do
    level=$((level + 1))
    for folder in $group; do
      level_of[$folder]=$level
      [ "$folder" = . ] || [ -d "$library/$folder" ] || breach "$library/$folder: there is no such folder"
    done
  done
  while IFS=: read -r file line header; do
    folder=$(inner_folder "$library" "$file") && known=$(inner_folder "$library" "$header")
    if [ "$folder" = "$known" ]; then continue; fi
    if [ -z "${level_of[$folder]:-}" ]; then
      breach "$file: $library/$folder has no place in its line of cmake/layers.txt"
    elif [ "${level_of[$folder]}" -le "${level_of[$known]:-99}" ]; then
      breach "$file:$line: $library/$folder may not include <$header>: see its line in cmake/layers.txt"
    fi
  done < <(includes "$library" | grep -E ":$library/")
}

inner_folder() {  # LIBRARY PATH: the folder of a path inside the library, "." for the library itself
  local path=${2#"$1"/}
  case $path in */*) echo "${path%/*}" ;; *) echo . ;; esac
}

while IFS=: read -r library groups; do
  IFS=, read -ra order <<<"$groups"
  inner_order "$library" "${order[@]}"
done < <(sed -n 's/^inside //p' cmake/layers.txt)

# No circle among modules (a header with its source), so that each can be read, tested and replaced alone.
edges=$(includes $libraries | sed -nE 's#^([^:]*)\.[a-z]+:[0-9]+:(.*/.*)\.(hpp|cuh)$#\1 \2#p' | awk '$1 != $2' | sort -u)
circle=$(tsort <<<"$edges" 2>&1 >/dev/null)
[ -z "$circle" ] || breach "modules that include each other in a circle: $(tr '\n' ' ' <<<"$circle")"

# A folder has one purpose, said in its README.md or in that of its top folder, and a file has one noun.
while IFS= read -r folder; do
  count=$(find "$folder" -maxdepth 1 \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) | wc -l)
  [ "$count" -le 20 ] || breach "$folder: $count source files; make inner folders"
  readme=$folder/README.md top=${folder%%/*}
  if [ ! -f "$readme" ]; then
    grep -qF "${folder##*/}/" "$top/README.md" || breach "$folder: has no README.md, and $top/README.md does not say what it holds"
  elif [ "$(wc -l <"$readme")" -gt 25 ]; then
    breach "$readme: more than 25 lines"
  elif grep -q 'ay include' "$readme"; then
    breach "$readme: says what the folder may include; cmake/layers.txt does"
  fi
done < <(find $libraries -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' | xargs -n 1 dirname | sort -u)
while read -r lines file; do
  [ "$lines" -le 400 ] || breach "$file: $lines lines; 400 at most"
done < <(find $libraries \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -exec wc -l {} + | grep -v ' total$')

# A function has at most 50 lines. clang-format puts its last brace below the start of its first line.
long_functions() {
  awk '
    FNR == 1 { delete start }
    /^(  )?\}/ {
      indent = match($0, /\}/) - 1
      if (indent in start && FNR - start[indent] >= 50) print FILENAME ":" start[indent] ": a function of " FNR - start[indent] + 1 " lines"
      delete start[indent]
    }
    /^(  )?[^ #\/}].*\(/ && !/^ *(class|struct|template)/ {
      sub(/ *\/\/.*/, "")
      indent = match($0, /[^ ]/) - 1
      if (/;$/) delete start[indent]; else if (!(indent in start)) start[indent] = FNR
    }
    /^(  )?[^ }].*;$/ { delete start[match($0, /[^ ]/) - 1] }' "$@"
}
while IFS= read -r line; do
  breach "$line; 50 at most"
done < <(find $libraries \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z | xargs -0 bash -c "$(declare -f long_functions)"'; long_functions "$@"' _)

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
