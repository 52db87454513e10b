#!/usr/bin/env python3
"""Fills README.md's table of errors from the tables of the pages that it links to. Usage: tools/readme-summary.py [--check]
--check: changes nothing, and fails if the table is not what the pages give."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- table: accuracy -->\n).*?(<!-- /table -->)", re.DOTALL)
HEAD = "| compared with | blind | figures | inside the 90 % interval | median error | mean error |\n|---|---|---|---|---|---|\n"
# Three tests that are over (2026-11-discrepancy.md): 7 of 7, 28 of 31 and 7 of 10 figures inside; errors of the best and the worst of them.
PAST = "| published figures: three tests, 17 experiments | yes | 48 | 88 % | 2.2 to 14.7 % | 4.9 to 17.2 % |\n"


def table(page, name):
    """The rows of the block NAME of a page, each a list of its cells."""
    block = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- /table -->", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for line in block[1].splitlines() if line.startswith("|")]
    return [re.split(r" *\| *", line.strip("| ").replace(r"\|", "/")) for line in lines[2:]]


def real(title, row, cells):
    """A row of real runs; `cells` has the places of the points, the median and the mean in `row`."""
    points, median, mean = (row[cell] for cell in cells)
    return f"| real runs: {title} | | {points} | | {median} | {mean} |\n"


def summary():
    open_figures = next(row for row in table("notes/2026-11-discrepancy.md", "scores") if row[0] == "all, leaving one experiment out")
    figures, inside, median, mean = (open_figures[cell] for cell in (1, 3, 5, 6))
    text = PAST + "| published figures: 134 experiments, each left out of the term's fit | no "
    text += f"| {figures} | {inside} | {median} | {mean} |\n"
    computing = next(row for row in table("reference/validation-results.md", "real-runs") if "shared memory" in row[0])
    text += real("2 ranks on two CPU cores", computing, (1, 3, 2))
    gpu = table("notes/2026-11-first-gpu.md", "gpu")[0]
    text += real("one NVIDIA H200", gpu, (0, 3, 2))
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
