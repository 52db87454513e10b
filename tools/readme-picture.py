#!/usr/bin/env python3
"""Draws README.md's picture, docs/img/published.png: the forecasts of three experiments and their published figures.

Reads what `stepcast run SCENARIO... -o RESULTS` wrote. Usage: tools/readme-picture.py [RESULTS_FOLDER [PICTURE.png]]
"""
import csv
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = ["goyal-imagenet-1h", "chen-huo-dnn-bmuf", "megatron-tensor"]
BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito, as in report/plots/style.cpp


def rows(results, scenario, file):
    path = results / scenario / file
    if not path.exists():
        names = " ".join(f"scenarios/{name}.yaml" for name in SCENARIOS)
        sys.exit(f"readme-picture: {path} does not exist; first: stepcast run {names} -o {results}")
    with open(path, newline="") as text:
        return list(csv.DictReader(text))


def workers(row):
    words = dict(word.split("=", 1) for word in row["point"].split(", ") if "=" in word)
    return int(words["workers"])


def published(results, scenario, column, word):
    """(workers, forecast, low, high, published) of the figures of `column` at points that contain `word`."""
    chosen = [row for row in rows(results, scenario, "published.csv")
              if row["column"] == column and row["kind"] in ("fitted", "predicted") and word in row["point"]]
    return sorted((workers(row), *(float(row[name]) for name in ("predicted", "low", "high", "published"))) for row in chosen)


def block(name, values):
    lines = "\n".join(" ".join(f"{value:.8g}" for value in row) for row in values)
    return f"${name} << EOD\n{lines}\nEOD\n"


def data(results):
    sweep = [(int(row["workers"]), *(100 * float(row[name]) for name in ("efficiency", "efficiency_low", "efficiency_high")))
             for row in rows(results, "goyal-imagenet-1h", "results.csv")]
    marks = [(count, 100 * value) for count, _, _, _, value in published(results, "goyal-imagenet-1h", "efficiency", "")]
    return (block("goyal", sweep) + block("goyal_published", marks)
            + block("bmuf", published(results, "chen-huo-dnn-bmuf", "sweep_aggregate_minutes", "form=nesterov"))
            + block("averaging", published(results, "chen-huo-dnn-bmuf", "sweep_aggregate_minutes", "kind=model_averaging"))
            + block("tensor", published(results, "megatron-tensor", "step_seconds", "")))


def series(name, colour, title, offset="1.0"):
    forecast = f"${name} using ($1*{offset}):2"
    return (f"{forecast} with lines lc rgb '{colour}' lw 1.8 notitle, "
            f"${name} using ($1*{offset}):2:3:4 with yerrorbars lc rgb '{colour}' lw 1.8 pt 7 ps 0.6 title '{title}', "
            f"${name} using ($1*{offset}):5 with points lc rgb 'black' pt 12 lw 1.5 ps 1.3 notitle")


def script(results, output):
    return data(results) + f"""
set encoding utf8
set terminal pngcairo size 2400,840 fontscale 1.7 linewidth 2 pointscale 2
set output '{output}'
set multiplot layout 1,3 margins 0.07,0.985,0.25,0.86 spacing 0.085,0
set border 3 lc rgb '#555555'
set tics nomirror out
set grid lc rgb '#DDDDDD' lt 1
set logscale x 2
set label 1 'blue and orange: forecast with its 5 % to 95 % interval      ◇  published' at screen 0.5, screen 0.05 center
set key top right reverse Left samplen 1.5
set xlabel 'P100 GPUs'
set ylabel 'efficiency [%]' offset 0.5
set title "Synchronous SGD, ResNet-50\\n{{/*0.8 Goyal et al. 2017}}"
set yrange [60:102]
set xrange [7:290]
plot $goyal using 1:3:4 with filledcurves fc rgb '{BLUE}' fs transparent solid 0.18 noborder notitle, \\
  $goyal using 1:2 with linespoints lc rgb '{BLUE}' lw 1.8 pt 7 ps 0.6 notitle, \\
  $goyal_published using 1:2 with points lc rgb 'black' pt 12 lw 1.5 ps 1.3 notitle
unset label 1
set title "Block-wise training of a speech network\\n{{/*0.8 Chen and Huo 2016}}"
set xlabel 'K40 GPUs'
set ylabel 'averaging, a pass over the data [min]' offset 0.5
set yrange [0:20]
set xrange [7:73]
plot {series('averaging', ORANGE, 'model averaging', '0.97')}, {series('bmuf', BLUE, 'BMUF', '1.03')}
set title "Tensor parallelism, GPT-2 (1.2 to 8.7 billion)\\n{{/*0.8 Megatron-LM 1.0}}"
set xlabel 'V100 GPUs'
set ylabel 'step time [s]' offset 0.5
set yrange [1:2]
set xrange [0.9:9]
plot {series('tensor', BLUE, '')}
unset multiplot
"""


def main():
    results = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "img" / "published.png"
    new = output.with_suffix(".new.png")
    subprocess.run(["gnuplot"], input=script(results, new), text=True, check=True)
    new.replace(output)
    print(f"drawn: {output}")


if __name__ == "__main__":
    main()
