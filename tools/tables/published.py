"""Forecasts of scenarios/*.yaml against published figures, from docs/reference/published-figures.csv.

Renewed, with the data of README.md's picture, from the folder of results of `stepcast run scenarios/*.yaml`.
"""
import pathlib
import statistics

from tables import published_picture
from tables.page import csv_text, grouped, markdown, percent, read_csv

DATA = "docs/reference/published-figures.csv"
COLUMNS = ("scenario", "point", "column", "kind", "relation", "predicted", "low", "high", "published", "inside", "share_of_draws", "margin",
           "error", "ideal_scaling_error", "counted", "tuned")
# What the table calls the experiment of a scenario; without an entry it has the scenario's name. Scenarios of one name share a row, unless
# one is blind and the other is not.
TITLES = {
    "asgd-4gpu": "Asynchronous SGD of a speech network, 4 GPUs (Zhang et al. 2013)",
    "chen-huo-dblstm": "Model averaging and BMUF of two speech networks, 8 to 64 K40 (Chen and Huo 2016)",
    "chen-huo-dnn-bmuf": "Model averaging and BMUF of two speech networks, 8 to 64 K40 (Chen and Huo 2016)",
    "gan-12-p100": "3DGAN, 12 P100 (abstract, see the file)",
    "goyal-imagenet-1h": "ResNet-50 in one hour, 256 P100 (Goyal et al. 2017)",
    "fastai-imagenet-18-minutes": "ResNet-50 on one P100, and ImageNet in 18 minutes on 128 V100 (Gonzalez, lecture)",
    "goyal-one-gpu": "ResNet-50 on one P100, and ImageNet in 18 minutes on 128 V100 (Gonzalez, lecture)",
    "goyal-ring-halving-doubling": "Ring against halving-doubling, 32 servers (Goyal et al. 2017)",
    "megatron-tensor": "Tensor parallelism of GPT-2, 2 to 8 V100 (Megatron-LM 1.0)",
    "nnlo-rnn-downpour": "Downpour SGD of a recurrent network, 8 and 20 workers (Vlimant et al.)",
    "seide-20-gpus": "1-bit SGD of a speech network, 20 K20X (Chen and Huo, slides)",
    "seide-1bit": "1-bit SGD of a speech network, 8 K20X (Seide et al. 2014)",
}


def renewed(results):
    files = sorted(pathlib.Path(results).resolve().glob("*/published.csv"))
    rows = [row for file in files for row in read_csv(file)]
    numbers = ("predicted", "low", "high", "published", "share_of_draws", "margin", "error", "ideal_scaling_error")
    for row in rows:
        row.update({name: float(row[name]) for name in numbers if row[name]}, tuned="yes" if row["tuned"] else "")
    return {DATA: csv_text(COLUMNS, rows)} | published_picture.renewed(results)


def counted_rows():
    """The rows of kind predicted that count, with the name of their experiment and whether they are blind."""
    rows = [row for row in read_csv(DATA) if row["kind"] == "predicted" and row["counted"] == "true"]
    return [row | {"title": TITLES.get(row["scenario"], row["scenario"]), "blind": "no" if row["tuned"] else "yes"} for row in rows]


def errors(rows, column="error"):
    return [abs(float(row[column])) for row in rows if row[column]]


def median_percent(values):
    return percent(statistics.median(values)) if values else ""


def experiment_row(title, blind, rows):
    scenarios = ", ".join(f"`{name}`" for name in dict.fromkeys(row["scenario"] for row in rows))
    inside = sum(row["inside"] == "true" for row in rows)
    return (title, scenarios, blind, f"{inside} of {len(rows)}", median_percent(errors(rows)), median_percent(errors(rows, "ideal_scaling_error")))


def sentence(rows, blind):
    """What the experiments that are blind, or not, have in common: their number, and the medians over them."""
    groups = [own for (_, kind), own in grouped(rows, "title", "blind").items() if kind == blind]
    figures = [row for own in groups for row in own]
    ideal = [statistics.median(errors(own, "ideal_scaling_error")) for own in groups if errors(own, "ideal_scaling_error")]
    inside = sum(row["inside"] == "true" for row in figures)
    medians = [statistics.median(errors(own)) for own in groups]
    return (f"{'Blind forecasts' if blind == 'yes' else 'Forecasts that are not blind'}: {inside} of {len(figures)} figures of {len(groups)} "
            f"experiments lie inside their interval. The median over these experiments of the median error is {median_percent(medians)} "
            f"(ideal scaling, {len(ideal)} experiments: {median_percent(ideal)}).\n")


def kinds():
    """How many figures of each kind are inside, and the scenarios of those that are not."""
    for kind, rows in grouped(read_csv(DATA), "kind").items():
        counts = [sum(row["inside"] == word for row in rows) for word in ("true", "open", "false")]
        missed = dict.fromkeys(f"`{row['scenario']}`" for row in rows if row["inside"] == "false")
        yield kind, len(rows), *counts, ", ".join(missed)


def tables():
    rows = counted_rows()
    experiments = [experiment_row(title, blind, own) for (title, blind), own in grouped(rows, "title", "blind").items()]
    heads = "| experiment | scenario | blind | figures inside the interval | median \\|error\\| | of ideal scaling |"
    return {"docs/reference/published-figures.md": {
        "published-experiments": markdown(heads, experiments) + "\n" + sentence(rows, "yes") + sentence(rows, "no"),
        "published-kinds": markdown("| kind | figures | inside, or holds | open | missed | scenarios with misses |", kinds())}}


PICTURES = {"docs/img/published.png": published_picture.script}
