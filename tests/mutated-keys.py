#!/usr/bin/env python3
"""Changes every key of every kind of input file in ten ways, one at a time: stepcast must end with 0, or with 2 and one line
that names the file and the place; it must not crash, hang or take more than 2 GiB. With --texts every key that holds a text gets
each of the hostile texts of tests/hostile.sh instead; beside that, no file may appear and no control character may be printed.

The keys are those of the shipped scenarios, networks, platforms, devices and traces, and of the examples in docs/reference. A key
counts once, wherever it stands (list positions are left out); it is changed in the shortest file that has it.
Usage: tests/mutated-keys.py STEPCAST [LIMIT OF KEYS] [--texts]"""
import copy
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 60  # of processor time, for one command
CHANGES = {
    "removed": None, "misspelt": None, "null": None, "negative": -1, "huge": 1e300, "empty": "", "list": [], "mapping": {"unknown": 1},
    "wrong unit": "10 parsecs", "not a number": float("nan"),
}


def hostile_texts():
    """The texts of tests/hostile.sh, as bash reads them."""
    lines = (ROOT / "tests" / "hostile.sh").read_text()
    array = re.search(r"^texts=\(.*?^  '' .*?\)$", lines, re.S | re.M).group()
    said = subprocess.run(["bash", "-c", array + '\nprintf "%s\\0" "${texts[@]}"'], capture_output=True, check=True).stdout
    return {f"text {number}": text.decode() for number, text in enumerate(said.split(b"\0")[:-1])}


def documents():
    """(kind, name, tree) of every file that is mutated."""
    kinds = {"scenario": ["scenarios/*.yaml", "scenarios/validate/*.yaml", "scenarios/learn/*.yaml"], "platform": ["platforms/*.yaml"],
             "model": ["models/*.yaml", "models/library/*/*.yaml"], "device": ["models/devices/*.yaml"], "trace": ["models/traces/*.yaml"]}
    for kind, patterns in kinds.items():
        for file in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
            if file.stat().st_size < 60000:
                yield kind, str(file.relative_to(ROOT)), yaml.safe_load(file.read_text())
    for page in sorted(ROOT.glob("docs/reference/*.md")):
        for name, text in re.findall(r"```yaml FILE=(\S+)\n(.*?)```", page.read_text(), re.S):
            tree = yaml.safe_load(text)
            kind = "model" if "layers" in tree else "platform" if "nodes" in tree or "topology" in tree else "scenario"
            yield kind, f"{page.name}:{name}", tree


def keys_of(tree, path=()):
    """Paths of all keys, with list positions as numbers."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield path + (key,)
            yield from keys_of(value, path + (key,))
    elif isinstance(tree, list):
        for index, value in enumerate(tree[:8]):
            yield from keys_of(value, path + (index,))


def changed(tree, path, change, changes):
    tree = copy.deepcopy(tree)
    place = tree
    for step in path[:-1]:
        place = place[step]
    if change == "removed":
        del place[path[-1]]
    elif change == "misspelt":
        place[f"{path[-1]}x"] = place.pop(path[-1])
    else:
        place[path[-1]] = changes[change]
    return tree


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def fault(stepcast, kind, file):
    """What is wrong with stepcast's answer; empty if nothing is."""
    command = ["run", file, "--dry-run"] if kind == "scenario" else ["show", kind, file]
    done = subprocess.run([stepcast, *command], capture_output=True, text=True, errors="replace", preexec_fn=limit, cwd=file.parent,
                          env={"STEPCAST_DATA": str(ROOT), "PATH": "/usr/bin:/bin"})
    if [one.name for one in file.parent.iterdir()] != [file.name] or (file.parent.parent / "pwned").exists():
        return "another file appeared", False
    if re.search(r"[\x01-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr):
        return f"control characters: {done.stderr[:200]!r}", False
    if done.returncode == 0:
        return "", True
    if done.returncode != 2:
        return f"exit code {done.returncode}: {done.stderr[:200]}", False
    if done.stderr.count("\n") != 1:
        return f"not one line: {done.stderr[:200]}", False
    return ("" if re.match(r"stepcast: \S.*: ", done.stderr) else f"no place: {done.stderr[:200]}"), False


def value_at(tree, path):
    for step in path:
        tree = tree[step]
    return tree


def main():
    texts = "--texts" in sys.argv
    arguments = [one for one in sys.argv[1:] if one != "--texts"]
    changes = hostile_texts() if texts else CHANGES
    stepcast = pathlib.Path(arguments[0]).resolve()
    keys = {}
    for kind, name, tree in sorted(documents(), key=lambda one: len(str(one[2]))):
        for path in keys_of(tree):
            if texts and not isinstance(value_at(tree, path), str):
                continue
            known = (kind, ".".join(str(step) for step in path if not isinstance(step, int)))
            keys.setdefault(known, (name, tree, path))
    chosen = list(keys.items())[:int(arguments[1]) if len(arguments) > 1 else None]
    runs = accepted = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "in" / "input.yaml"
        file.parent.mkdir()
        for (kind, key), (name, tree, path) in chosen:
            for change in changes:
                file.write_text(yaml.safe_dump(changed(tree, path, change, changes), allow_unicode=True, width=10000))
                runs += 1
                wrong, well = fault(stepcast, kind, file)
                accepted += well
                if wrong:
                    faults += 1
                    print(f"FAULT: {kind} {key} of {name}, {change}: {wrong.strip()}", flush=True)
    print(f"mutated keys: {len(chosen)} keys in {runs} files, {accepted} accepted, {runs - accepted - faults} refused in one line, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
