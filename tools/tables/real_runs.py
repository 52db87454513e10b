"""Forecasts against real runs, from validate/data/*.csv: a row for each point, with the launch that it ran in.

Renewed from results/validate-all, where tools/validate-all.sh puts them: launches replace those of the same name. Those named ranks-* are in
rank-counts.csv, all others in real-runs.csv. Ranks that compute and ranks that sleep are never in one figure.
"""
import pathlib
import statistics

from tables.page import csv_text, grouped, markdown, percent, quantile, read_csv

FOLDER = "validate/data/"
COLUMNS = ("launch", "scenario", "point", "strategy", "ranks", "cluster", "repeats", "predicted_seconds", "measured_seconds", "measured_low",
           "measured_high", "predicted_compute_seconds", "measured_compute_seconds", "predicted_waiting_seconds",
           "measured_waiting_seconds", "disturbed")
PAGE = "docs/reference/validation-results.md"
LAUNCHES = {
    "netcluster-2-1gbit": "2 ranks, 1 Gbit/s: eight strategies",
    "netcluster-4-1gbit": "4 ranks, 1 Gbit/s: eight strategies",
    "netcluster-4-parts": "4 ranks, 100 Mbit/s: spatial, filter and pipeline parallelism",
    "netcluster-4-100mbit": "4 ranks, 100 Mbit/s",
    "netcluster-4-racks": "4 ranks in two racks, 500 Mbit/s",
    "netcluster-8-250mbit": "8 ranks, 250 Mbit/s",
    "memory-2": "2 ranks in shared memory, real kernels: synchronous",
    "memory-2-spatial-pipeline": "the same: spatial partitioning and pipelines",
    "memory-2-tensor": "the same: tensor parallelism",
    "memory-2-tokens": "the same: divided tokens",
    "memory-2-strategies": "the same: compression, ZeRO, local SGD, servers, recomputation",
    "memory-2-input": "the same: input from files, faster and slower than compute",
    "memory-2-filters": "the same: overlapped halos, shared filters",
    "memory-2-machines": "the same: networks over two machines",
    "memory-2-experts": "the same: experts",
    "memory-2-sharded": "the same: partitioned parameters with recomputation",
    "memory-4-strategies": "4 ranks in shared memory, real kernels: several workers and servers, groups",
    "shared-4-strategies": "4 ranks that share two cores, real kernels: several workers and servers, groups",
    "shared-4-two-workers": "the same: two workers with servers",
    "shared-4-search": "the same: replicas over machines with servers, trainings of a search",
    "shared-4-mesh": "the same: two axes of a mesh at once",
    "mpi-memory-2": "2 ranks, real kernels, messages by MPI: synchronous",
    "mpi-memory-2-spatial-pipeline": "the same: spatial partitioning and pipelines",
    "mpi-memory-2-tensor": "the same: tensor parallelism",
    "mpi-memory-2-strategies": "the same: compression, ZeRO, local SGD, servers, recomputation",
    "mpi-memory-2-input": "the same: input from files",
    "mpi-memory-4-strategies": "4 ranks, real kernels, messages by MPI",
    "mpi-shared-4-strategies": "4 ranks that share two cores, real kernels, messages by MPI",
}
KINDS = {  # by the beginning of a launch's name
    "memory-": "kernels run, messages go through shared memory",
    "mpi-memory-": "kernels run, messages go through MPI",
    "shared-": "kernels run on four ranks that share two cores",
    "netcluster-": "ranks sleep for the times of their layers instead of computing, on emulated networks",
}


def renewed(results):
    new = {file.parent.name: read_csv(file) for file in sorted(pathlib.Path(results).resolve().glob("*/measured.csv"))}
    counts = {name: rows for name, rows in new.items() if name.startswith("ranks-")}
    return replaced("real-runs.csv", {name: rows for name, rows in new.items() if name not in counts}) | replaced("rank-counts.csv", counts)


def replaced(file, new):
    rows = [row for row in read_csv(FOLDER + file) if row["launch"] not in new]
    rows += [row | {"launch": name} for name, own in new.items() for row in own]
    return {FOLDER + file: csv_text(COLUMNS, sorted(rows, key=lambda row: row["launch"]))}


def rows_of(file, beginning=""):
    """Rows whose launch has a name that begins so, with `error`, forecast / measured - 1."""
    rows = [row for row in read_csv(FOLDER + file) if row["launch"].startswith(beginning)]
    for row in rows:
        row["error"] = float(row["predicted_seconds"]) / float(row["measured_seconds"]) - 1
    return rows


def sizes(rows):
    return sorted(abs(row["error"]) for row in rows)


def mean_and_largest(rows):
    return (percent(statistics.mean(sizes(rows))), percent(max(sizes(rows)))) if rows else ("", "")


def ordered(rows):
    """Of the pairs of points of a launch whose measured 95 % intervals do not overlap, those whose forecasts have the right order."""
    right = pairs = 0
    for own in grouped(rows, "launch").values():
        numbers = [[float(row[name]) for name in ("predicted_seconds", "measured_seconds", "measured_low", "measured_high")] for row in own]
        for i, a in enumerate(numbers):
            for b in numbers[i + 1:]:
                if a[2] > b[3] or b[2] > a[3]:
                    pairs += 1
                    right += (a[0] < b[0]) == (a[1] < b[1])
    return right, pairs


def by_strategy():
    """Mean and largest error, and points, of each strategy and kind of ranks."""
    rows = {beginning: rows_of("real-runs.csv", beginning) for beginning in KINDS}
    names = dict.fromkeys(row["strategy"] for own in rows.values() for row in own)

    def line(*wanted):
        for own in rows.values():
            chosen = [row for row in own if row["strategy"] in wanted]
            yield "{}, {} ({})".format(*mean_and_largest(chosen), len(chosen)) if chosen else ""
    lines = [(f"`{name}`", *line(name)) for name in names]
    return markdown("| mean and largest error (points) | kernels, shared memory | kernels, MPI | kernels, shared cores | ranks that sleep |",
                    lines + [(f"all {len(names)}", *line(*names))])


def by_launch():
    launches = grouped(rows_of("real-runs.csv"), "launch")
    return markdown("| where | points | mean error | largest |",
                    [(title, len(launches[name]), *mean_and_largest(launches[name])) for name, title in LAUNCHES.items() if name in launches])


def in_short():
    """(title, points, mean, median, largest, pairs in the right order) of each kind of ranks."""
    for beginning, title in KINDS.items():
        rows = rows_of("real-runs.csv", beginning)
        if rows:
            errors = sizes(rows)
            right, pairs = ordered(rows)
            yield (title, len(rows), *map(percent, (statistics.mean(errors), quantile(errors, 0.5), errors[-1], right / pairs if pairs else 1)))


def rank_counts():
    """Means by rank count, of both lengths of packets; links and traces were measured at 2 ranks."""
    for ranks, own in sorted(grouped(rows_of("rank-counts.csv"), "ranks").items(), key=lambda item: int(item[0])):
        yield f"{ranks}{' (measured)' * (ranks == '2')}", *rank_figures(own)
    yield "never measured", *rank_figures([row for row in rows_of("rank-counts.csv") if row["ranks"] != "2"])


def rank_figures(rows):
    short, long = ([row for row in rows if row["launch"].startswith("64k") == large] for large in (False, True))
    return (len(short), *mean_and_largest(short), *mean_and_largest(long))


def tables():
    results = {"strategies": by_strategy(), "launches": by_launch(),
               "real-runs": markdown("| runs | points | mean error of the step time | median | largest | pairs of points in the right order |",
                                     in_short())}
    return {PAGE: results,
            "docs/notes/2026-11-rank-counts.md": {"rank counts": markdown(
                "| ranks | points | mean error, packets of 6 KiB | largest | mean error, packets of 64 KiB | largest |", rank_counts())}}
