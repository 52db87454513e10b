"""Claims about learning, from docs/notes/2026-11-learning-claims.csv, and the picture docs/img/learning-time.png, from 2026-11-learning-time.csv.

Renewed from the folder of the results of `stepcast learn scenarios/learn/NAME.yaml -o FOLDER/NAME`; the picture from those of `sandblaster`.
"""
import math
import pathlib
import statistics

from tables.page import csv_text, grouped, markdown, read_csv

PAGE = "docs/notes/2026-11-learning-claims.md"
DATA = PAGE.replace(".md", ".csv")
CURVES_DATA = "docs/notes/2026-11-learning-time.csv"
COLUMNS = ("scenario", "claim", "quantity", "points", "medians", "holds_in", "seeds", "verdict")
CURVE_COLUMNS = ("curve", "seconds", "accuracy", "lowest", "highest")
CURVES = {  # name, what the name of its point contains, colour (Okabe and Ito, as in report/plots/style.cpp)
    "Downpour SGD with Adagrad": ("optimizer=adagrad", "#D55E00"),
    "Downpour SGD": ("optimizer=sgd", "#0072B2"),
    "SGD on one worker": ("workers=1,", "#000000"),
    "Sandblaster L-BFGS": ("workers=16, strategy={kind: sandblaster, tasks: 128}", "#009E73"),
}


def number(text, quantity):
    if text and math.isfinite(float(text)):
        return f"{float(text):.3g}"
    return "diverged" if quantity == "loss" else "never"


def short(point):
    return point.replace("strategy={kind: ", "").replace("learning.", "").replace("}", "").replace("|", "/")


def claim(row):
    relation = {"less than": "<", "more than": ">"}.get(row["relation"], f"is {row['relation']}")
    return row | {"claim": row["source"], "points": f"{short(row['point'])} {relation} {short(row['over'])}",
                  "medians": ", ".join(number(row[name], row["quantity"]) for name in ("median_point", "median_over"))}


def trainings(rows, word):
    """The (seconds, accuracy) of each seed's evaluations, of the point whose name contains `word`."""
    seeds = {}
    for row in rows:
        if word in row["point"]:
            seeds.setdefault(row["seed"], []).append((float(row["seconds"]), float(row["accuracy"])))
    return list(seeds.values())


def curves(rows):
    """Median, least and largest accuracy of the seeds after equally many evaluations."""
    for name, (word, _) in CURVES.items():
        for evaluations in zip(*trainings(rows, word)):
            seconds, accuracies = zip(*evaluations)
            values = (statistics.median(seconds), statistics.median(accuracies), min(accuracies), max(accuracies))
            yield dict(zip(CURVE_COLUMNS, (name, *(f"{value:.5g}" for value in values))))


def renewed(results):
    folder = pathlib.Path(results).resolve()
    new = {file.parent.name: [claim(row) for row in read_csv(file)] for file in sorted(folder.glob("*/trends.csv"))}
    old = grouped(read_csv(DATA), "scenario")
    files = {DATA: csv_text(COLUMNS, [row for rows in (old | new).values() for row in rows])}
    if (folder / "sandblaster/learning.csv").exists():
        files[CURVES_DATA] = csv_text(CURVE_COLUMNS, curves(read_csv(folder / "sandblaster/learning.csv")))
    return files


def counted(title, rows):
    return (title, len(rows), *(sum(row["verdict"] == verdict for row in rows) for verdict in ("yes", "open", "no")))


def tables():
    rows = read_csv(DATA)
    lines = [counted(f"`{name}`", own) for name, own in grouped(rows, "scenario").items()]
    return {PAGE: {"verdicts": markdown("| scenario | claims | yes | open | no |", lines + [counted("all", rows)])}}


def script(output):
    """The script of gnuplot that draws the picture."""
    rows, blocks, bands, lines = read_csv(CURVES_DATA), [], [], []
    for i, (name, (_, colour)) in enumerate(CURVES.items()):
        points = "\n".join(f"{1000 * float(row['seconds']):.6g} " + " ".join(f"{100 * float(row[key]):.4g}" for key in CURVE_COLUMNS[2:])
                           for row in rows if row["curve"] == name)
        blocks.append(f"$c{i} << EOD\n{points}\nEOD\n")
        bands.append(f"$c{i} using 1:3:4 with filledcurves fc rgb '{colour}' fs transparent solid 0.18 noborder notitle")
        lines.append(f"$c{i} using 1:2 with lines lc rgb '{colour}' lw 2.2 title '{name}'")
    return "".join(blocks) + f"""
set encoding utf8
set terminal pngcairo size 1800,760 fontscale 1.6 linewidth 2
set output '{output}'
set border 3 lc rgb '#555555'
set tics nomirror out
set grid lc rgb '#DDDDDD' lt 1
set key outside right center Left reverse samplen 2 spacing 1.6
set xlabel 'time of the simulated cluster [ms]'
set ylabel 'accuracy on held-out data [%]' offset 0.5
set yrange [0:100]
set xrange [0:200]
plot {', '.join(bands + lines)}
"""


PICTURES = {"docs/img/learning-time.png": script}
