#include "report/page/page.hpp"

namespace stepcast {

const char* const kPageStyle = R"(
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0 }
main { max-width: 1340px; margin: 0 auto; padding: 0 20px 40px }
h1 { margin-bottom: 0 }
.answer { font-size: 1.25em; border-left: 5px solid #0072b2; padding: 8px 16px; background: #f3f7fa }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(560px, 100%), 1fr)); gap: 20px; align-items: start }
figure { margin: 0 } figcaption { font-weight: 600 }
svg { width: 100%; height: auto } svg text { font-size: 12px; fill: #444 } .grid { stroke: #ddd }
.legend { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 4px 0 }
.key { display: inline-block; width: 12px; height: 12px; margin-right: 6px }
button { font: inherit; background: none; border: 0; padding: 2px; cursor: pointer; color: inherit }
button[aria-pressed=false] { opacity: .4; text-decoration: line-through }
.wide { overflow-x: auto; margin-bottom: 16px } table { border-collapse: collapse; font-size: 14px }
th { text-align: left; vertical-align: bottom; border-bottom: 2px solid #888 } th button { font-weight: 600; text-align: left }
th[aria-sort=ascending] button::after { content: " \2191" } th[aria-sort=descending] button::after { content: " \2193" }
td { padding: 3px 12px 3px 2px; border-bottom: 1px solid #eee; vertical-align: top } .number { text-align: right; font-variant-numeric: tabular-nums }
pre { overflow-x: auto; background: #f6f6f6; padding: 12px; font-size: 13px }
@media print { button { color: #222 } .charts { display: block } }
)";

const char* const kPageScript = R"(
"use strict";
for (const table of document.querySelectorAll("table.sorts")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => header.firstChild.addEventListener("click", () => {
    const up = header.getAttribute("aria-sort") !== "ascending";
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => { const text = row.cells[column].textContent, number = parseFloat(text); return isNaN(number) ? text : number };
    const order = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map(row => [key(row), row]);
    rows.sort((a, b) => up ? order(a[0], b[0]) : order(b[0], a[0]));
    table.tBodies[0].append(...rows.map(row => row[1]));
  }));
}
for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    button.closest("figure").querySelector(`[data-series="${button.dataset.toggle}"]`).style.display = shown ? "" : "none";
  });
}
)";

}  // namespace stepcast
