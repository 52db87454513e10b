#!/usr/bin/env python3
"""Checks the rules of the scorecard on forecasts worked out by hand, and that every item of scenarios/claims.csv has a verdict."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from tables import scorecard  # noqa: E402
from tables.page import grouped, read_csv  # noqa: E402


def verdict(*numbers):
    return scorecard.judged(*numbers)[0]


def rules():
    assert verdict(3.5, 3, 3.9, 2, 4) == "holds"
    assert verdict(1.2, 1, 1.5, 2, 4) == "fails"
    assert verdict(3, 1.9, 4, 2, 4) == "cannot be judged"     # its interval spans more than a factor of 2
    assert verdict(3, 2.9, 3.1, 1.4, 7) == "cannot be judged"  # a factor of 2 would hold as well
    assert verdict(0, 0, 0, None, 0.01) == "cannot be judged"
    assert verdict(0.7, 0.6, 0.8, None, 1) == "holds"
    assert verdict(0.4, 0.35, 0.45, None, 1) == "cannot be judged"  # a factor of 2 would change nothing
    assert verdict(1.017, 1.008, 1.03, 1, None) == "open"      # too near to equality
    assert verdict(1.3, 0.9, 1.6, 1, None) == "open"
    assert verdict(1.3, 1.2, 1.4, None, 1) == "fails"


def trained(verdict_of_seeds, accuracy, low, high):
    claim = {"within": "", "low": low, "high": high, "kind": "loss", "blind": "no", "note": ""}
    row = {"median_point": accuracy, "median_over": "0.9", "verdict": verdict_of_seeds, "holds_in": "5", "seeds": "5"}
    return scorecard.trained_line(claim, row)


def trainings():
    assert trained("yes", "0.8", "", "")["verdict"] == "holds"
    assert trained("yes", "0.89", "1.05", "1.2")["verdict"] == "holds"   # 11 % of errors against 10 %
    assert trained("open", "0.89", "1.05", "1.2")["verdict"] == "open"   # not in enough seeds
    assert trained("yes", "0.8", "1.05", "1.2")["verdict"] == "fails"    # twice the errors
    line = trained("yes", "0.89", "1.05", "1.2")
    assert line["low"] is None and line["claim_low"] == 1.05             # the claim's range is no interval


def items():
    claims, lines = read_csv(scorecard.CLAIMS), read_csv(scorecard.DATA)
    assert {claim["item"] for claim in claims} == {str(item) for item in range(1, 99)}, "an item of 1 to 98 is missing"
    without = [claim for claim in claims if not claim["scenario"]]
    assert len(without) <= 10 and all(claim["note"] for claim in without), "at most 10 items have no scenario, each with its reason"
    for claim in claims:
        path = f"scenarios/{claim['scenario']}.yaml" if scorecard.is_scenario(claim) else claim["scenario"]
        assert not path or (ROOT / path).exists(), f"item {claim['item']}: there is no {path}"
    judged = {(line["item"], line["claim"], line["scenario"]) for line in lines}
    lacking = [claim for claim in claims if (claim["item"], claim["claim"], claim["scenario"]) not in judged]
    assert not lacking, f"item {lacking[0]['item']} has no verdict: {lacking[0]['claim']}; run tools/scorecard.py"


def counted():
    for line in read_csv(scorecard.DATA):
        if line["class"] in ("figure", "order") and line["verdict"] != "cannot be judged":
            low, high = float(line["low"]), float(line["high"])
            assert high <= 2 * low, f"item {line['item']} counts, and its interval spans more than a factor of 2"
    assert set(grouped(read_csv(scorecard.DATA), "verdict")) <= set(scorecard.VERDICTS)


rules()
trainings()
items()
counted()
