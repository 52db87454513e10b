"""Forecasts how distributed training scales, from Python.

    import pandas, stepcast
    columns = stepcast.run("scenarios/quickstart.yaml", set={"sweep.workers": [8, 64]})
    print(pandas.DataFrame(columns)[["workers", "step_seconds", "efficiency"]])

Every call runs the program `stepcast` with an argument list, never a shell. The program is that of the environment
variable STEPCAST, else the one installed beside this module, else that on the PATH. docs/how-to/use-as-a-library.md says
why this is no extension module.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

__all__ = ["run", "check", "schema", "version", "Columns", "Error", "InputError", "LimitError"]


class Error(RuntimeError):
    """The program failed. `exit_code` is its exit code; the text is what it wrote."""

    def __init__(self, text, exit_code):
        super().__init__(text)
        self.exit_code = exit_code


class InputError(Error, ValueError):
    """The scenario or an argument is invalid: FILE:LINE:COL: key: expected X, got Y."""


class LimitError(Error):
    """The simulations would need more time or memory than their limit."""


_ERRORS = {2: InputError, 3: LimitError}
_PARTIAL = 4  # exit code: some points failed, and the rows of all others are results


class Columns(dict):
    """Result columns by name (docs/reference/results.md): lists with one value per point, None where a point has none.

    `published` has the columns of published figures beside their forecasts, and is empty without them.
    """

    def __init__(self, rows, published=()):
        super().__init__(_columns(rows))
        self.published = _columns(published)


def _columns(rows):
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _program():
    chosen = os.environ.get("STEPCAST")
    if chosen:
        return chosen
    for folder in pathlib.Path(__file__).resolve().parents[:4]:
        program = folder / "bin" / "stepcast"
        if os.access(program, os.X_OK):
            return str(program)
    found = shutil.which("stepcast")
    if not found:
        raise FileNotFoundError("stepcast: the program is not on the PATH; install it, or name it in STEPCAST")
    return found


def _call(arguments, text=None):
    """Standard output of the program, which reads `text` from standard input."""
    done = subprocess.run([_program(), *arguments], input=text, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0 and not (done.returncode == _PARTIAL and "--json" in arguments and done.stdout):
        said = (done.stdout.strip() + "\n" + done.stderr.strip()).strip()  # `check` lists mistakes on standard output
        raise _ERRORS.get(done.returncode, Error)(said, done.returncode)
    return done.stdout


def _scenario(scenario):
    """The argument that names a scenario, and the text for standard input. JSON is YAML."""
    if isinstance(scenario, dict):
        return "-", json.dumps(scenario)
    return os.fspath(scenario), None


def run(scenario, *, set=None, draws=None, jobs=None, output=None, options=()):  # pylint: disable=redefined-builtin
    """Simulates all points of a scenario and returns their Columns.

    scenario: a mapping with the keys of docs/reference/scenarios.md, or the path of a file.
    set:      values that replace those of the scenario, such as {"strategy.bucket": "25 MiB"}; None removes a key.
    draws:    draws of the assumptions for each point; 1 gives no intervals.
    jobs:     simulations at the same time; all cores by default.
    output:   folder that also receives the result files and plots; without it no file is kept and no plot is drawn.
    options:  more options of `stepcast run`, such as ["--resume"].

    A point that cannot be simulated has the reason in the column `failed`.
    """
    name, text = _scenario(scenario)
    arguments = ["run", name, "--json"]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={json.dumps(value)}"]
    for option, value in (("--draws", draws), ("--jobs", jobs)):
        if value is not None:
            arguments += [option, str(value)]
    arguments += options
    with tempfile.TemporaryDirectory() as folder:
        kept = ["--output", os.fspath(output)] if output is not None else ["--output", folder + "/run", "--results-only"]
        found = json.loads(_call(arguments + kept, text))
    return Columns(found["results"], found.get("published", ()))


def check(scenario):
    """Checks a scenario without simulating it. Raises InputError with the place of the first mistake."""
    name, text = _scenario(scenario)
    _call(["check", name], text)


def schema(kind="scenario"):
    """The JSON Schema (draft 7) of a kind of file: scenario, platform, model or trace."""
    return json.loads(_call(["schema", kind]))


def version():
    """The program's version, its compiler and its libraries."""
    return _call(["--version"]).strip()
