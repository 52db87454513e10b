"""Called by timelines.sh with the folder of its runs."""
import collections
import csv
import gzip
import os
import re
import sys

import timeline_reader as reader

FOLDER = sys.argv[1]


def near(first, second, what, tolerance=1e-6):
    assert abs(first - second) <= tolerance * max(abs(first), abs(second)), (what, first, second)


def row(run):
    with open(f"{FOLDER}/{run}/results.csv") as opened:
        return next(csv.DictReader(opened))


def of_process(trace, pid):
    return {"traceEvents": [event for event in trace["traceEvents"] if event["pid"] == pid]}


def check_sums(trace, result):
    """One rank of a synchronous training without noise: compute, communication and step times of results.csv."""
    steps = reader.steps(trace)
    seconds = sorted((end - start) / 1e9 for start, end in steps[1:])
    near(seconds[len(seconds) // 2], float(result["step_seconds"]), "step")
    later = {"traceEvents": [event for event in reader.complete(trace)
                             if event["cat"] == "cuda_runtime" or event["ts"] >= steps[1][0]]}
    count = len(steps) - 1
    by_kind = {"computation": 0, "communication": 0, "memory": 0}
    for event in reader.kernels(later):
        by_kind[reader.kind(event)] += event["dur"] / 1e9 / count
    near(by_kind["computation"], float(result["compute_seconds"]), "compute")
    near(by_kind["communication"], float(result["communication_seconds"]), "communication")
    times = reader.temporal_breakdown(later)
    assert times["idle"] >= 0 and times["kernel"] == times["idle"] + times["compute"] + times["non_compute"]
    exposed = (times["kernel"] - times["compute"]) / 1e9 / count
    near(exposed, float(result["exposed_communication_seconds"]), "exposed", 1e-3)
    hidden = reader.overlap(later)
    assert 0 < hidden < 1, hidden
    idle = reader.idle_by_cause(later, 7)
    near(sum(idle.values()) / 1e9 / count, exposed, "idle of the compute stream", 0.5)


def layer_times():
    """Nanoseconds of every layer and pass in the trace that the synchronous runs replay."""
    with open(os.path.join(os.path.dirname(__file__), "../models/traces/resnet50-b32-v100-sxm2-16gb.yaml")) as opened:
        text = opened.read()
    times = collections.Counter()
    for layer in text.split("  - name: ")[1:]:
        name = layer.split('"')[1]
        for part, seconds in re.findall(r"(\w+): \{seconds: \[([^],]*)\]\}", layer):
            times[f"{name} {'backward' if part.startswith('backward') else part}"] += float(seconds) * 1e9
    return times


def check_durations(trace):
    """Every layer takes in each step what its trace says, and all members of a collective begin and end it together."""
    expected, seen, collectives = layer_times(), set(), collections.defaultdict(list)
    for event in reader.kernels(trace):
        if event["name"] in expected:
            # Start and end are rounded to nanoseconds, so that a duration may be one off.
            assert abs(event["dur"] - expected[event["name"]]) <= 1, (event, expected[event["name"]])
            seen.add(event["name"])
        elif "algorithm" in event["args"]:
            collectives[event["pid"]].append((event["ts"], event["dur"], event["args"]["bytes"]))
    assert seen == set(expected), sorted(set(expected) - seen)[:5]
    assert len(set(map(tuple, collectives.values()))) == 1, "a collective has not the same dates on all members"


def check_both_ends(messages):
    """A message takes as long at its sender as at its receiver."""
    ends = collections.defaultdict(set)
    for event in messages:
        ends[event["args"]["message"]].add((event["ts"], event["dur"], event["args"]["bytes"]))
    assert all(len(dates) == 1 for dates in ends.values())


def check_messages(run, processes):
    """Every message has both its ends and an arrow between them, and ranks wait for what has not arrived."""
    trace = reader.read(f"{FOLDER}/{run}/timeline.json.gz")
    reader.check_shape(trace)
    assert processes in (None, len({event["pid"] for event in trace["traceEvents"]}))
    messages = [event for event in reader.kernels(trace) if event["args"].get("message")]
    sent = {event["args"]["message"] for event in messages if event["args"]["Collective name"] == "send"}
    arrows = {event["id"] for event in trace["traceEvents"] if event["ph"] == "f"}
    assert arrows and arrows <= sent, (run, len(arrows), len(sent))
    check_both_ends(messages)
    for event in messages:
        assert event["args"]["bytes"] > 0 or run == "servers", event
    assert any(event["name"] == "wait for message" for event in reader.complete(trace)), run


def main():
    whole = reader.read(f"{FOLDER}/all/timeline.json.gz")
    reader.check_shape(whole)
    assert "rank" not in whole["distributedInfo"] and whole["distributedInfo"]["world_size"] == 16
    processes = sorted({event["pid"] for event in whole["traceEvents"]})
    assert len(processes) == 16, processes
    for pid in processes:
        check_sums(of_process(whole, pid), row("all"))
    check_durations(whole)
    names = {event["name"] for event in reader.kernels(whole)}
    assert "conv1 forward" in names and "conv1 backward" in names and "forward" not in names, sorted(names)[:9]
    sums = [event for event in reader.kernels(whole) if event["name"].startswith("ncclDevKernel_AllReduce_Sum_")]
    for key in ("algorithm", "bytes", "Group size", "Process Group Ranks"):
        assert all(event["args"][key] for event in sums), key
    assert len(sums) % 16 == 0  # on every member
    assert sorted(os.listdir(f"{FOLDER}/ranks/timeline")) == [f"rank-{i}.json.gz" for i in (0, 5, 8, 9)]
    for rank in (0, 5, 8, 9):
        trace = reader.read(f"{FOLDER}/ranks/timeline/rank-{rank}.json.gz")
        assert trace["distributedInfo"]["rank"] == rank
        with gzip.open(f"{FOLDER}/ranks/timeline/rank-{rank}.json.gz", "rt") as opened:  # as HTA finds it
            assert re.search(r'"rank": (\d+)', opened.read()).group(1) == str(rank)
        reader.check_shape(trace)
        check_sums(trace, row("ranks"))
    few = reader.read(f"{FOLDER}/few/timeline.json.gz")
    assert len({event["pid"] for event in few["traceEvents"]}) == 8
    check_messages("stages", 32)
    check_messages("servers", None)
    print(f"overlap of rank 0: {100 * reader.overlap(of_process(whole, 1)):.1f} %,",
          reader.temporal_breakdown(of_process(whole, 1)), dict(reader.idle_by_cause(of_process(whole, 1), 7)))


main()
