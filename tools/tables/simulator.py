"""Checks of the simulator: against SMPI, by laws on drawn cases, folded against unfolded, and its time and memory.

Drawn cases are renewed from the file cases.csv that `drawn_cases -o FOLDER` wrote; tests/smpi/smpi.sh and bench/run.sh write their
files themselves; bench/results/folding.csv was written once.
"""
import pathlib

from tables.page import ROOT, csv_text, grouped, markdown, percent, read_csv

SMPI = "docs/notes/2026-11-smpi.csv"
DRAWN = "docs/notes/2026-11-drawn-cases.csv"


def renewed(source):
    rows = read_csv(pathlib.Path(source).resolve())
    return {DRAWN: csv_text(rows[0].keys(), rows)}


def smpi_table(file=SMPI):
    """The placements that agree in one row, and a row for each other placement, with the same without latencies."""
    groups, lines = {}, []
    for row in read_csv(file):
        apart = f", {row['stride']} devices apart" if row["stride"] != "1" else ""
        groups.setdefault((row["platform"], row["ranks"] + apart), []).append(row)

    def largest(rows):
        error = max((abs(float(row["error_percent"])) for row in rows), default=0)
        return "below 1e-7 %" if error < 1e-7 else f"{error:.1f} %"
    equal = {key: rows for key, rows in groups.items() if largest(rows) == largest([])}
    platforms = ", ".join(dict.fromkeys(platform for platform, _ in equal))
    ranks = sorted(int(row["ranks"]) for rows in equal.values() for row in rows)
    lines.append((platforms, f"{ranks[0]} to {ranks[-1]}", len(ranks), largest([]), ""))
    for (platform, ranks), rows in groups.items():
        parts = [[row for row in rows if (row["latencies"] == "0") == without] for without in (False, True)]
        if (platform, ranks) not in equal:
            lines.append((platform, ranks, len(parts[0]), *map(largest, parts)))
    return markdown("| platform | ranks | cases | largest error | latencies set to 0 |", lines)


def laws_table():
    """Laws by the bound that the results or the documents claim."""
    laws = grouped([row for row in read_csv(DRAWN) if row["kind"] == "law"], "bound")
    order = sorted(laws, key=lambda bound: float(bound or "inf"))

    def line(bound, rows):
        times, broken = (sum(int(row[name]) for row in rows) for name in ("count", "broken"))
        return bound or "none", len(rows), times, broken, max((row["largest_difference"] for row in rows), key=float)
    return markdown("| bound | laws | times | broken | largest difference |", [line(bound, laws[bound]) for bound in order])


def folding_table():
    """What the rule picked, by its folding and its fidelity; rows of numbers below 2000 are of larger runs."""
    rows = [row for row in read_csv("bench/results/folding.csv") if row["error"]]
    groups = sorted(grouped(rows, "folding", "form").items(), key=lambda item: -len(item[1]))
    return markdown("| picked: `folding` | `fidelity` | cases | worst error | processor seconds, most |",
                    [(f"`{folding.replace(';', ',')}`", f"`{form.replace(';', ',')}`", len(own),
                      "the same run" if folding == "unfolded" else percent(max(abs(float(row["error"])) for row in own), 4),
                      f"{max(float(row['processor_seconds']) for row in own):.1f}") for (folding, form), own in groups])


def whole_table():
    """Time and memory of the benchmark cases with a limit, below the machine and above the exponents of growth."""
    def row(case):
        setting = " ".join(word for word in case["setting"].split() if not word.startswith("platform"))
        return (case["case"].upper() + (f", {setting}" if setting else ""), case["workers"], case["processor_seconds"],
                case["peak_megabytes"], ", ".join(limits(case)))

    def limits(case):
        return [f"{case[key]} {unit}" for key, unit in (("limit_seconds", "s"), ("limit_megabytes", "MB")) if case[key] != "-"]
    rows = map(row, filter(limits, read_csv("bench/results/whole.csv")))
    head, fit = ((ROOT / "bench/results" / name).read_text(encoding="utf-8") for name in ("machine.txt", "fit.txt"))
    table = markdown("| case | workers | processor seconds | peak memory, MB | limit |", rows)
    return f"{head}\n{table}" + (f"\n{fit}" if fit else "")


def tables():
    return {"docs/explanation/simulator-engine.md": {"smpi": smpi_table()},
            "docs/explanation/performance.md": {"whole": whole_table()},
            DRAWN.replace(".csv", ".md"): {"laws": laws_table()},
            "docs/notes/2026-11-folding.md": {"folding": folding_table()}}
