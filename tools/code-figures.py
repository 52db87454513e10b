#!/usr/bin/env python3
"""Prints how large the code and its documentation are: files, lines, functions, folders, words, edits.

Usage: tools/code-figures.py [COMMIT]
Without COMMIT it reads the tracked files of the working tree. Functions are found by universal-ctags (package
universal-ctags); without it their figures are left out.
"""

import collections
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
MOST_LINES, MOST_FILES, MOST_PAGE_LINES = 400, 20, 250


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def product_files(root):
    """Sources of the programs: everything but tests/ and bench/."""
    names = run("git", "-C", str(root), "ls-files").split("\n") if (root / ".git").exists() else [
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(name for name in names if name.endswith(SOURCES) and not name.startswith(("tests/", "bench/")))


def function_lengths(root, files):
    """(lines, name, file) of each function definition, longest first; None without ctags."""
    if shutil.which("ctags") is None:
        return None
    listing = run("ctags", "-x", "--languages=C++,CUDA", "--langmap=C++:+.cu", "--kinds-C++=f",
                  "--_xformat=%n %{end} %N %F", *files, cwd=root)
    lengths = []
    for line in listing.splitlines():
        parts = line.split()
        if len(parts) >= 4 and parts[0].isdigit() and parts[1].isdigit():
            lengths.append((int(parts[1]) - int(parts[0]) + 1, parts[2], parts[-1]))
    return sorted(lengths, reverse=True)


def written_lines(page):
    """Lines of a page without the tables that scripts fill."""
    return re.sub(r"<!-- table: .*?<!-- /table -->", "", page.read_text(), flags=re.S).count("\n")


def strategy_edits(root):
    """Edits of the page that shows the diff of a strategy: its hunks, two new files that it names, and the section of the reference."""
    page = root / "docs/how-to/adding-a-strategy.md"
    text = page.read_text() if page.exists() else ""
    hunks, files = text.count("\n@@ "), text.count("\n+++ b/")
    return f"{hunks + 3} in {files + 3} files" if files else "no page shows them as a diff"


def figures(root):
    files = product_files(root)
    lines = {name: (root / name).read_text(errors="replace").count("\n") for name in files}
    longest = max(lines, key=lines.get)
    print(f"product files: {len(files)}, {sum(lines.values())} lines, median {statistics.median(lines.values()):g}, "
          f"longest {lines[longest]} ({longest})")
    over = [name for name in files if lines[name] > MOST_LINES]
    print(f"files over {MOST_LINES} lines: {len(over)} {' '.join(over)}")
    functions = function_lengths(root, files)
    if functions is None:
        print("functions: not counted, because ctags is not installed (package universal-ctags)")
    else:
        print(f"functions: {len(functions)}, median {statistics.median(f[0] for f in functions):g} lines, "
              f"longest {functions[0][0]} ({functions[0][1]}, {functions[0][2]})")
    folders = collections.Counter(str(pathlib.Path(name).parent) for name in files)
    full = [f"{folder} {count}" for folder, count in folders.most_common() if count > MOST_FILES]
    top = folders.most_common(1)[0]
    print(f"folders: {len(folders)}, fullest {top[0]} with {top[1]} files; over {MOST_FILES}: {', '.join(full) or 'none'}")
    pages = sorted((root / "docs").rglob("*.md"))
    words = {page.relative_to(root): len(page.read_text().split()) for page in pages}
    notes = sum(count for page, count in words.items() if "notes" in page.parts)
    long_pages = [str(page.relative_to(root)) for page in pages if written_lines(page) > MOST_PAGE_LINES]
    print(f"docs: {len(pages)} pages, {sum(words.values())} words, {notes} of them in docs/notes; "
          f"over {MOST_PAGE_LINES} lines: {' '.join(long_pages) or 'none'}")
    print(f"edits to add a strategy: {strategy_edits(root)}")


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return
    if len(sys.argv) == 1:
        return figures(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", sys.argv[1]], check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        figures(pathlib.Path(folder))


if __name__ == "__main__":
    main()
