#!/usr/bin/env python3
"""Checks that a page's walk through the code is true: each name in a numbered step stands in a file that the step names.

Usage: tests/walk_names.py PAGE, from the root of the source. A file without a folder is in that of the file before it.
"""

import pathlib
import re
import sys


def text_of(path):
    """The source with its header."""
    files = [path, path.with_suffix(".hpp")]
    return "".join(file.read_text() for file in files if file.exists())


def faults(step):
    files, names = [], []
    for word in re.findall(r"`([^`]+)`", " ".join(step.split())):
        if word.endswith((".cpp", ".hpp")):
            files.append(pathlib.Path(word) if "/" in word else files[-1].parent / word)
        elif not word.endswith((".csv", "/")) and "/" not in word:
            names += re.findall(r"\w+", word)
    yield from (f"there is no {file}" for file in files if not file.exists())
    text = "".join(map(text_of, files))
    yield from (f"{name} is not in {' or '.join(map(str, files))}"
                for name in names if not re.search(rf"\b{name}\b", text))


def main():
    page = pathlib.Path(sys.argv[1]).read_text()
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^## |\Z)", page, re.S | re.M)
    wrong = [f"{sys.argv[1]}: step {step.splitlines()[0]!r}: {fault}" for step in steps for fault in faults(step)]
    print("\n".join(wrong + [f"{sys.argv[1]}: {len(steps)} steps"]))
    sys.exit(bool(wrong or not steps))


if __name__ == "__main__":
    main()
