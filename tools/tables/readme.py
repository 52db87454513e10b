"""The table of errors of README.md, from the files that the pages' own tables are drawn from."""
from tables import discrepancy, gpu, published, real_runs
from tables.page import markdown

HEADS = "| compared with | blind | number of figures | share inside the 90 % interval | median error | mean error |"
# These four tests are over: their scenarios and forecasts stay as they were, so their results do too.
PAST = [
    ("published figures: 1 experiment on 32 to 2,048 devices", "yes", "7", "100 %", "4.5 %", "4.9 %"),
    ("published figures: 8 experiments on five other systems", "yes", "31", "90 %", "2.2 %", "6.2 %"),
    ("published figures: 8 experiments from MLPerf's logs, on 8 to 1,536 devices", "yes", "10", "70 %", "14.7 %", "17.2 %"),
    ("published figures: 30 experiments, forecast with an earlier discrepancy term", "yes", "63", "52 %", "3.7 %", "7.0 %"),
]


def real(title, points, median, mean):
    return f"real runs: {title}", "", points, "", median, mean


def tables():
    _, figures, experiments, inside, _, median, mean, *_ = discrepancy.left_out_row()
    rows = PAST + [published.summary_row("published figures: the scenarios of this repository that were never changed", "yes")]
    title = f"published figures: {experiments} experiments, each with a term that was fitted without that experiment"
    rows.append((title, "no", figures, inside, median, mean))
    rows.append(published.summary_row("published figures: the other scenarios of this repository", "no"))
    # README.md has at most eleven rows; the page has them all.
    rows += [real(title, points, half, mean) for title, points, mean, half, *_ in real_runs.in_short() if "MPI" not in title]
    points, _, mean, half, _ = gpu.in_short()
    rows.append(real("kernels run on one NVIDIA H200", points, half, mean))
    return {"README.md": {"accuracy": markdown(HEADS, rows).replace("|  |", "| |")}}
