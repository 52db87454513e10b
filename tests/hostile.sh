#!/bin/bash
# Hostile texts in the fields of a scenario, a model and a platform, and on the command line: stepcast ends with 0 or 2, runs no
# command, and writes nothing outside its folder. tests/report/results/hostile_text_test.cpp tests what is written.
# Usage: tests/hostile.sh STEPCAST
stepcast=$(realpath "$1")
. "$(dirname "$0")/setup.sh"
mkdir in && cd in || exit 2
texts=('$(touch ../pwned)' '`touch ../pwned`' '; touch ../pwned' '| touch ../pwned' '=1+1' '=cmd|x!A0' '@SUM(1)' "' . system('touch ../pwned') . '"
  '<script>alert(1)</script>' '</svg>' '../../pwned' '/tmp/pwned' '%n%s' '\\' "'" '"' '{/Symbol a}' '#' '- x' '&a' '*a' '!!python/object' '? x'
  '[1, 2' '{a: b' 'a: b' 'null' '~' '1e999' '-0' 'NaN' $'\e[2J' $'a\tb' $'a\nb' '${HOME}' '$HOME' '!x' '>pwned' '%' 'CON' 'nul' '..' '.' ' '
  '' '--help' '-o' 'a,b' 'a=b' '0x10' 'é€😀')
runs=0
# quoted TEXT: as a YAML string in double quotes.
quoted() { printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\x1b/\\e/g' -e 's/\t/\\t/g' | awk '{ printf "%s%s", n++ ? "\\n" : "\"", $0 } END { print n ? "\"" : "\"\"" }'; }
check() {
  local code=$1 what=$2
  runs=$((runs + 1))
  [ "$code" -eq 0 ] || [ "$code" -eq 2 ] || fail "exit code $code: $what"
  [ "$code" -eq 0 ] || [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $what"
  [ "$(ls -A "$work" | wc -l)" -eq 1 ] || { fail "$what wrote $(ls -A "$work" | tr '\n' ' ')"; rm -rf "$work"/[!i]*; }
  LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' out err && fail "control characters: $what"
  return 0
}
for text in "${texts[@]}"; do
  q=$(quoted "$text")
  {
    echo "name: hostile"
    echo "description: $q"
    sed -e '/^name:/d' -e '/^description:/,/^[a-z]/{/^description:/d; /^ /d}' "$STEPCAST_DATA/scenarios/quickstart.yaml"
  } >scenario.yaml
  "$stepcast" run scenario.yaml --set 'sweep.workers=[1]' --results-only --draws 1 -o r >out 2>err; check $? "description $q"
  sed "s/^name: .*/name: $(printf '%s' "$q" | sed 's/[&/\\]/\\&/g')/" scenario.yaml >named.yaml
  "$stepcast" run named.yaml --dry-run >out 2>err; check $? "name $q"
  "$stepcast" run scenario.yaml --dry-run --set "description=$text" >out 2>err; check $? "--set $q"
  "$stepcast" run scenario.yaml --dry-run --set "model=$text" >out 2>err; check $? "model $q"
  { echo "name: $q"; printf '%s\n' 'source: test' 'input: [4]' 'layers:' "  - {name: $q, kind: dense, units: 2}"; } >m.yaml
  "$stepcast" show model ./m.yaml >out 2>err; check $? "layer $q"
done
echo "$runs runs with ${#texts[@]} texts, $failures failures"
[ $failures -eq 0 ]
