#!/usr/bin/env python3
"""Runs and trains all that scenarios/claims.csv needs, and judges the claims of the four documents: docs/reference/scorecard.csv.
The picture of learning is drawn from the same trainings.

Usage: tools/scorecard.py [STEPCAST [FOLDER]]   (build/release/stepcast, results/scorecard)

What FOLDER has from an earlier call with the same inputs is not run again.
"""
import os
import subprocess
import sys
import time

from tables import scorecard
from tables.page import ROOT, read_csv


def command(stepcast, scenario, folder):
    """The call that makes a scenario's results; one that was interrupted, or is over, is resumed."""
    file, output = str(ROOT / f"scenarios/{scenario}.yaml"), f"{folder}/{scenario}"
    call = [stepcast, "learn", file] if scenario.startswith("learn/") else [stepcast, "run", file, "--results-only"]
    return [*call, "-q", "-o", output, *(["--resume"] if os.path.exists(output) else [])]


def main(stepcast="build/release/stepcast", folder="results/scorecard"):
    scenarios = list(dict.fromkeys(claim["scenario"] for claim in read_csv(scorecard.CLAIMS) if scorecard.is_scenario(claim)))
    began = time.monotonic()
    for k, scenario in enumerate(scenarios, 1):
        print(f"[{k}/{len(scenarios)}] {scenario} ({time.monotonic() - began:.0f} s)", flush=True)
        subprocess.run(command(stepcast, scenario, folder), check=True)
    for subject, source in (("scorecard", folder), ("learning", f"{folder}/learn")):
        subprocess.run([sys.executable, str(ROOT / "tools/documents.py"), subject, source], check=True)
    print(scorecard.tables()[scorecard.PAGE]["classes"])


if __name__ == "__main__":
    if len(sys.argv) > 3 or any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
