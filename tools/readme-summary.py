#!/usr/bin/env python3
"""Fills README.md's table of errors from the tables of the pages that it links to. Usage: tools/readme-summary.py [--check]
--check: changes nothing, and fails if the table is not what the pages give."""
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- table: accuracy -->\n).*?(<!-- /table -->)", re.DOTALL)
HEAD = "| compared with | blind | number of figures | share inside the 90 % interval | median error | mean error |\n|---|---|---|---|---|---|\n"
# These four tests are over: their scenarios and forecasts stay as they were, so their results do too.
PAST = """\
| published figures: 1 experiment on 32 to 2,048 devices | yes | 7 | 100 % | 4.5 % | 4.9 % |
| published figures: 8 experiments on five other systems | yes | 31 | 90 % | 2.2 % | 6.2 % |
| published figures: 8 experiments from MLPerf's logs, on 8 to 1,536 devices | yes | 10 | 70 % | 14.7 % | 17.2 % |
| published figures: 30 experiments, forecast with an earlier discrepancy term | yes | 63 | 52 % | 3.7 % | 7.0 % |
"""


def table(page, name):
    """The rows of the block NAME of a page, each a list of its cells."""
    block = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- /table -->", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for line in block[1].splitlines() if line.startswith("|")]
    return [re.split(r" *\| *", line.strip("| ").replace(r"\|", "/")) for line in lines[2:]]


def shipped(title, blind):
    """The row of the experiments that scenarios/*.yaml repeat. Cells of published-figures.md: see the heads of its tables."""
    page = "reference/published-figures.md"
    scenarios = {name for row in table(page, "published-experiments") if row[2] == blind for name in row[1].split(", ")}
    rows = [row for row in table(page, "published") if row[0] in scenarios and "not counted" not in row[6]]
    errors = [abs(float(row[7].rstrip(" %"))) for row in rows]
    inside = 100 * sum(row[6].startswith("yes") for row in rows) / len(rows)
    return f"| {title} | {blind} | {len(rows)} | {inside:.0f} % | {statistics.median(errors):.1f} % | {statistics.mean(errors):.1f} % |\n"


def real(title, row, cells):
    """A row of real runs; `cells` has the places of the points, the median and the mean in `row`."""
    points, median, mean = (row[cell] for cell in cells)
    return f"| real runs: {title} | | {points} | | {median} | {mean} |\n"


def summary():
    open_figures = next(row for row in table("notes/2026-11-discrepancy.md", "scores") if row[0] == "all, leaving one experiment out")
    figures, inside, median, mean = (open_figures[cell] for cell in (1, 3, 5, 6))
    text = PAST + shipped("published figures: the scenarios of this repository that were never changed", "yes")
    text += f"| published figures: 134 experiments, each with a term that was fitted without that experiment | no | {figures} | {inside} | {median} | {mean} |\n"
    text += shipped("published figures: the other scenarios of this repository", "no")
    for row in table("reference/validation-results.md", "real-runs"):
        if "MPI" not in row[0]:  # README.md has at most eleven rows; the page has them all
            text += real(row[0], row, (1, 3, 2))
    for row in table("notes/2026-11-first-gpu.md", "gpu"):
        text += real("kernels run on one NVIDIA H200", row, (0, 3, 2))
    return text


def main():
    old = README.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda found: found[1] + HEAD + summary() + found[2], old)
    if "--check" in sys.argv and new != old:
        sys.exit("README.md: its table is not what the pages give: run tools/readme-summary.py")
    if new != old:
        README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
