"""The table of errors of README.md, from the files that the pages' own tables are drawn from."""
from tables import blind_rates, discrepancy, gpu, real_runs, scorecard
from tables.page import markdown, percent

HEADS = "| compared with | blind | figures | inside the 90 % interval | median error | mean error |"
# Eight tests that are over: 7 of 7, 28 of 31, 7 of 10 and, by an earlier term, 33 of 63 figures inside (docs/notes/2026-11-discrepancy.md), and
# 3 of 19, 4 of 12, 8 of 8 and 1 of 3 (docs/notes/2026-11-open-published-figures.md: 2026-11-30); errors of the best and the worst of them. Their
# forecasts stay as they were, so their results do too.
PAST = ("published figures: eight tests, 62 experiments", "yes", "153", "59 %", "2.2 to 26.2 %", "4.4 to 25.8 %")


def real(title, points, median, mean):
    return f"real runs: {title}", "", points, "", median, mean


def tables():
    _, figures, experiments, inside, _, median, mean, *_ = discrepancy.left_out_row()
    title = f"published figures: {experiments} experiments, error fitted without each"
    rows = [PAST, (title, "no", figures, inside, median, mean)]
    figures, median, mean, inside = blind_rates.in_short()
    rows.append(("[absolute rates](docs/notes/2026-11-absolute-rates.md), 20 sources", "yes", figures, percent(inside, 0), percent(median), percent(mean)))
    blind, points, holds, median, mean = scorecard.in_short()
    title = "[claims of four documents](docs/reference/scorecard.md)"
    rows.append((title, f"{blind} of {points}", points, percent(holds, 0), percent(median), percent(mean)))
    points, mean, half = next((points, mean, half) for name, points, mean, half, *_ in real_runs.in_short() if "shared memory" in name)
    rows.append(real("2 ranks on two CPU cores", points, half, mean))
    points, _, mean, half, _ = gpu.in_short()
    rows.append(real("one NVIDIA H200", points, half, mean))
    return {"README.md": {"accuracy": markdown(HEADS, rows).replace("|  |", "| |")}}
