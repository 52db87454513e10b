#!/bin/bash
# Opens report.html in headless Chromium without a network: the script runs without errors, the table sorts, a series can be hidden, and a
# picture is drawn. Exits 77 where Chromium is missing. Usage: tests/report-page.sh STEPCAST [PICTURE.png]
stepcast=$(realpath "$1")
picture=${2:+$(realpath -m "$2")}
command -v chromium >/dev/null || { echo "skipped: no chromium: apt-get install chromium"; exit 77; }
. "$(dirname "$0")/setup.sh"
fail() { echo "FAILED: $1"; exit 1; }
"$stepcast" run "$STEPCAST_DATA/scenarios/resnet50-ethernet-cpu.yaml" --set 'sweep.strategy.all_reduce=[ring, halving_doubling]' --results-only -o page >out 2>&1 || fail "no results"

# The page presses its own buttons and writes what it sees into its title.
cat >presses.js <<'END'
<script>
const table = document.querySelector("table.sorts"), headers = [...table.tHead.rows[0].cells];
const column = headers.findIndex(header => header.textContent.startsWith("workers"));
headers[column].firstChild.click(); headers[column].firstChild.click();
const workers = [...table.tBodies[0].rows].map(row => Number(row.cells[column].textContent));
const toggle = document.querySelector("[data-toggle]");
toggle.click();
document.title = "sorted " + workers.every((one, i) => i === 0 || workers[i - 1] >= one) + ", hidden " +
  (document.querySelector('g[data-series="0"]').style.display === "none");
</script>
END
sed 's|</body>||; s|</html>||' page/report.html >pressed.html
cat presses.js >>pressed.html
browser=(chromium --headless --no-sandbox --disable-gpu --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile"
  --enable-logging=stderr --window-size=1300,2600)
timeout 100 "${browser[@]}" --dump-dom "file://$work/pressed.html" >dom 2>messages || fail "the browser ends with an error"
grep -q '<title>sorted true, hidden true</title>' dom || { grep -o '<title>[^<]*' dom | head -1; fail "the table or the legend does not react"; }
! grep -E 'CONSOLE' messages || fail "messages on the console"
# At 390 px nothing but what scrolls by itself is wider than the page. Chromium's windows are never so narrow.
sed 's|</body>|<script>document.body.style.width = "390px"; const ends = [...document.querySelectorAll("main > *, section > *, figure, figure > *, .charts > *")].map(one => one.getBoundingClientRect().right); document.title = "widest " + (Math.max(...ends) <= 390)</script></body>|' page/report.html >narrow.html
timeout 100 "${browser[@]}" --window-size=500,2600 --dump-dom "file://$work/narrow.html" 2>messages >dom
grep -q '<title>widest true</title>' dom || fail "the page is wider than 390 px"
timeout 100 "${browser[@]}" --screenshot="$work/page.png" "file://$work/page/report.html" >/dev/null 2>messages
[ "$(stat -c %s page.png 2>/dev/null || echo 0)" -gt 20000 ] || fail "no picture"
! grep -E 'CONSOLE' messages || fail "messages on the console"
[ -z "$picture" ] || cp page.png "$picture"
echo "the page works in $(chromium --version 2>/dev/null | cut -d' ' -f1,2)"
