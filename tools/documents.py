#!/usr/bin/env python3
"""Draws the tables of README.md and docs/ between "<!-- table: NAME -->" and "<!-- /table -->", and the pictures, from CSV files.

Usage: tools/documents.py                    all tables and pictures, from the files as they are
       tools/documents.py SUBJECT [SOURCE]   those of one subject, after its CSV file was renewed from SOURCE
       tools/documents.py --check            changes nothing, and fails if a table is not what its file gives
       tools/documents.py --check SUBJECT PROGRAM   fails if the file is not what the program gives (derived-rule, derived-traces, rank-counts)

SOURCE is a folder of results, the program stepcast (blind-rates, derived-rule, derived-traces, fsdp-rates, rank-counts), or the output of `stepcast collectives --measured-tables`
(gpu) or `drawn_cases` (simulator). SUBJECT: discrepancy, absolute-rates, measured-points, published, open-figures, real-runs,
fsdp-rates, blind-rates, rank-counts, learning, scorecard, gpu, simulator, derived-rule, derived-traces. The modules in tools/tables/ say what each renews. A page decides
by its blocks which tables it shows.
"""
import functools
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

from tables.page import BLOCK, ROOT, filled

SUBJECTS = ("open-figures", "discrepancy", "absolute-rates", "fsdp-rates", "blind-rates", "measured-points", "published", "real-runs", "rank-counts", "learning",
            "scorecard", "gpu", "simulator", "derived-rule", "derived-traces", "readme")


def module(subject):
    return importlib.import_module("tables." + subject.replace("-", "_"))


@functools.cache
def joined(subjects):
    """The tables of the subjects by page and name."""
    pages = {}
    for subject in subjects:
        for page, tables in getattr(module(subject), "tables", dict)().items():
            pages.setdefault(page, {}).update(tables)
    return pages


def files_of(subjects):
    """Path and text of all files that the subjects draw: pages, and files that the program stepcast reads."""
    files = {}
    for subject in subjects:
        files |= getattr(module(subject), "files", dict)()
    for page, tables in joined(subjects).items():
        if (ROOT / page).exists():
            files[page] = filled((ROOT / page).read_text(encoding="utf-8"), tables)
    return files


def unknown_blocks():
    """Blocks of pages that no subject draws; tools/key-tables.sh fills those of keys."""
    known = joined(SUBJECTS)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        page = str(path.relative_to(ROOT))
        names = [found[2] for found in BLOCK.finditer(path.read_text(encoding="utf-8"))]
        unknown = [name for name in names if name not in known.get(page, ()) and not name.startswith("keys ")]
        yield from (f"{page}: no subject draws its table \"{name}\"" for name in unknown)


def pictures_of(subjects):
    return {picture: script for subject in subjects for picture, script in getattr(module(subject), "PICTURES", {}).items()}


def draw(script, file):
    subprocess.run(["gnuplot"], input=script(file), text=True, check=True)


def picture_fault():
    """Whether gnuplot, where it is installed, draws the pictures; their bytes depend on its version."""
    with tempfile.TemporaryDirectory() as folder:
        for picture, script in pictures_of(SUBJECTS).items() if shutil.which("gnuplot") else ():
            draw(script, f"{folder}/drawn.png")
            if not os.path.getsize(f"{folder}/drawn.png"):
                return f"gnuplot draws no {picture}"
    return None


def write(files):
    for path, text in files.items():
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text:
            (ROOT / f"{path}.new").write_text(text, encoding="utf-8")
            (ROOT / f"{path}.new").replace(ROOT / path)
            print(f"written: {path}")


def check(subject, program):
    """What is wrong; none: nothing."""
    if subject:
        own = module(subject)
        if hasattr(own, "fault"):
            return own.fault(program)
        wrong = [path for path, text in own.renewed(program).items() if (ROOT / path).read_text(encoding="utf-8") != text]
        return f"{wrong[0]} is not what the program gives: run tools/documents.py {subject} PROGRAM" if wrong else None
    wrong = [f"{path} is not what its files give: run tools/documents.py" for path, text in files_of(SUBJECTS).items()
             if (ROOT / path).read_text(encoding="utf-8") != text]
    return next(iter([*wrong, *unknown_blocks()]), None) or picture_fault()


def main(words):
    checking = words[:1] == ["--check"]
    words = words[checking:]
    if len(words) > 2 or words and words[0] not in SUBJECTS or checking and len(words) == 1:
        sys.exit(__doc__.strip())
    if checking:
        return check(*(words or ("", "")))
    if len(words) == 2:
        write(module(words[0]).renewed(words[1]))
    subjects = (words[0], "readme") if words else SUBJECTS
    write(files_of(subjects))
    for picture, script in pictures_of(subjects).items():
        draw(script, ROOT / picture)
        print(f"drawn: {picture}")
    return None


if __name__ == "__main__":
    fault = main(sys.argv[1:])
    if fault:
        sys.exit(f"documents: {fault}")
