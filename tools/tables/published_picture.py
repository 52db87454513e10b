"""README.md's picture, docs/img/published.png: the forecasts of three experiments and their published figures.

Drawn from docs/reference/published-picture.csv.
"""
import pathlib

from tables.page import csv_text, read_csv

DATA = "docs/reference/published-picture.csv"
COLUMNS = ("series", "workers", "forecast", "low", "high", "published")
BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito, as in report/plots/style.cpp


def published(folder, series, scenario, column, word):
    """The figures of `column` of a scenario, at points that contain `word`."""
    rows = []
    for row in read_csv(folder / scenario / "published.csv"):
        if row["column"] == column and row["kind"] in ("fitted", "predicted") and word in row["point"]:
            words = dict(pair.split("=", 1) for pair in row["point"].split(", ") if "=" in pair)
            forecast, low, high, value = (float(row[name]) for name in ("predicted", "low", "high", "published"))
            rows.append(dict(zip(COLUMNS, (series, int(words["workers"]), forecast, low, high, value))))
    return sorted(rows, key=lambda row: row["workers"])


def renewed(results):
    folder = pathlib.Path(results).resolve()
    rows = [{"series": "goyal", "workers": row["workers"], "forecast": float(row["efficiency"]), "low": float(row["efficiency_low"]),
             "high": float(row["efficiency_high"])} for row in read_csv(folder / "goyal-imagenet-1h/results.csv")]
    marks = published(folder, "goyal_published", "goyal-imagenet-1h", "efficiency", "")
    rows += [{"series": row["series"], "workers": row["workers"], "published": row["published"]} for row in marks]
    rows += published(folder, "bmuf", "chen-huo-dnn-bmuf", "sweep_aggregate_minutes", "form=nesterov")
    rows += published(folder, "averaging", "chen-huo-dnn-bmuf", "sweep_aggregate_minutes", "kind=model_averaging")
    rows += published(folder, "tensor", "megatron-tensor", "step_seconds", "")
    return {DATA: csv_text(COLUMNS, rows)}


def blocks():
    """The series as blocks of gnuplot; efficiencies in percent."""
    rows = read_csv(DATA)
    text = ""
    for name in dict.fromkeys(row["series"] for row in rows):
        factor = 100 if name.startswith("goyal") else 1
        lines = [" ".join([row["workers"]] + [f"{factor * float(row[column]):.8g}" for column in COLUMNS[2:] if row[column]])
                 for row in rows if row["series"] == name]
        text += f"${name} << EOD\n" + "\n".join(lines) + "\nEOD\n"
    return text


def series(name, colour, title, offset="1.0"):
    forecast = f"${name} using ($1*{offset}):2"
    return (f"{forecast} with lines lc rgb '{colour}' lw 1.8 notitle, "
            f"${name} using ($1*{offset}):2:3:4 with yerrorbars lc rgb '{colour}' lw 1.8 pt 7 ps 0.6 title '{title}', "
            f"${name} using ($1*{offset}):5 with points lc rgb 'black' pt 12 lw 1.5 ps 1.3 notitle")


def script(output):
    """The script of gnuplot that draws the picture."""
    return blocks() + f"""
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
