"""Tables in Markdown, the CSV files that they are drawn from, and their blocks in pages."""
import csv
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- /table -->)", re.DOTALL)


def read_csv(path):
    """The rows of a file below the root, or of any path, as dictionaries of text."""
    with open(ROOT / path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def csv_text(columns, rows):
    """Rows of dictionaries, of which only the columns are written; floats have six digits."""
    lines = [",".join(columns)]
    for row in rows:
        lines.append(",".join(cell_text(row.get(column, "")) for column in columns))
    return "\n".join(lines) + "\n"


def cell_text(value):
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def markdown(heads, rows):
    """A table of Markdown; `heads` is its first line."""
    lines = [heads, "|" + "---|" * (len(re.findall(r"(?<!\\)\|", heads)) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def percent(share, decimals=1):
    return f"{100 * share:.{decimals}f} %"


def signed_percent(share, decimals=1):
    return f"{100 * share:+.{decimals}f} %"


def grouped(rows, *columns):
    """Rows by the values of the columns, in the order of their first rows."""
    groups = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        groups.setdefault(key if len(columns) > 1 else key[0], []).append(row)
    return groups


def quantile(values, share):
    """The quantile of sorted values, linear between them, as report/statistics has it."""
    place = share * (len(values) - 1)
    below = int(place)
    return values[below] + (place - below) * (values[min(below + 1, len(values) - 1)] - values[below])


def filled(page, tables):
    """The text of a page with its blocks filled; blocks of other names stay."""
    return BLOCK.sub(lambda found: found[1] + tables.get(found[2], found[0][len(found[1]):-len(found[3])]) + found[3], page)
