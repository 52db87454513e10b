"""The picture docs/img/learning-time.png, from docs/notes/2026-11-learning-time.csv.

Renewed from the folder learn/ of the results of tools/scorecard.py.
"""
import pathlib
import statistics

from tables.page import csv_text, read_csv

CURVES_DATA = "docs/notes/2026-11-learning-time.csv"
CURVE_COLUMNS = ("curve", "seconds", "accuracy", "lowest", "highest")
CURVES = {  # name, what the name of its point contains, colour (Okabe and Ito, as in report/plots/style.cpp)
    "Downpour SGD with Adagrad": ("optimizer=adagrad", "#D55E00"),
    "Downpour SGD": ("optimizer=sgd", "#0072B2"),
    "SGD on one worker": ("workers=1,", "#000000"),
    "Sandblaster L-BFGS": ("workers=16, strategy={kind: sandblaster, tasks: 128}", "#009E73"),
}


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
    rows = read_csv(pathlib.Path(results).resolve() / "sandblaster/learning.csv")
    return {CURVES_DATA: csv_text(CURVE_COLUMNS, curves(rows))}


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
