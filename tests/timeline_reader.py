"""Reads timelines and analyses them as Holistic Trace Analysis (HTA) does, independently of stepcast's code.

HTA's definitions: a GPU event has args.stream > 0; it is communication if its name is NCCL's, memory if it begins
with Memcpy or Memset, else computation. Busy time is the union of intervals. kernel time = last end - first start,
idle = kernel time - busy, non-compute = kernel time - compute - idle; overlap = communication that computation
covers. Dates are whole nanoseconds here.
"""
import collections
import gzip
import json
import re

COMMUNICATION = re.compile(r"^nccl.*Kernel")
MEMORY = re.compile(r"^Memcpy|^Memset")


def nanoseconds(microseconds):
    """Exact: the file holds microseconds with at most three decimals."""
    value = round(microseconds * 1000)
    assert abs(value - microseconds * 1000) < 1e-3 * max(1, abs(microseconds) * 1e-9), microseconds
    return value


def read(file):
    with (gzip.open if str(file).endswith(".gz") else open)(file, "rb") as opened:
        trace = json.loads(opened.read())
    for event in trace["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = nanoseconds(event[key])
    return trace


def complete(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def kernels(trace):
    return [event for event in complete(trace) if event.get("args", {}).get("stream", -1) > 0]


def kind(event):
    if COMMUNICATION.match(event["name"]):
        return "communication"
    return "memory" if MEMORY.match(event["name"]) else "computation"


def union(events):
    """Disjoint intervals, ascending."""
    merged = []
    for start, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def common(first, second):
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in first for b in second)


def temporal_breakdown(trace):
    events = kernels(trace)
    busy = union(events)
    kernel_time = busy[-1][1] - busy[0][0]
    compute = length(union([event for event in events if kind(event) == "computation"]))
    idle = kernel_time - length(busy)
    return {"kernel": kernel_time, "idle": idle, "compute": compute, "non_compute": kernel_time - compute - idle}


def overlap(trace):
    """Share of communication that computation covers."""
    by_kind = collections.defaultdict(list)
    for event in kernels(trace):
        by_kind[kind(event)].append(event)
    communication = union(by_kind["communication"])
    covered = common(communication, union(by_kind["computation"]))
    return covered / length(communication) if communication else 0.0


def idle_by_cause(trace, stream, delay=30):
    """Gaps of a stream: the host launched too late, a short delay between kernels, or another reason [ns]."""
    launched = {event["args"]["correlation"]: event["ts"]
                for event in complete(trace) if event.get("cat") == "cuda_runtime"}
    events = sorted((event for event in kernels(trace) if event["args"]["stream"] == stream), key=lambda e: e["ts"])
    idle = collections.Counter()
    for before, event in zip(events, events[1:]):
        end = before["ts"] + before["dur"]
        late = launched[event["args"]["correlation"]] > end
        cause = "host_wait" if late else "kernel_wait" if event["ts"] - end < delay else "other"
        idle[cause] += event["ts"] - end
    return idle


def steps(trace):
    """Start and end of every step, as HTA finds them."""
    found = []
    for event in complete(trace):
        number = re.match(r"ProfilerStep\s*#\s*(\d+)", event["name"])
        if number:
            found.append((int(number.group(1)), event["ts"], event["ts"] + event["dur"]))
    return [(start, end) for _, start, end in sorted(found)]


def check_shape(trace):
    """Chrome's and Perfetto's rules, and what HTA needs beyond them."""
    launches, ran, threads, seen = [], [], collections.defaultdict(list), set()
    for event in complete(trace):
        for key in ("pid", "tid", "ts", "dur", "name", "cat"):
            assert key in event, event
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        threads[event["tid"]].append(event)
        if event["cat"] == "cuda_runtime":
            launches.append((event["pid"], event["args"]["correlation"], event["ts"]))
        if event["cat"] in ("kernel", "gpu_memcpy"):
            assert event["args"]["stream"] > 0, event
            ran.append((event["pid"], event["args"]["correlation"], event["ts"]))
            same = (event["tid"], event["ts"], event["dur"], event["name"])
            assert same not in seen, ("shown twice", event)
            seen.add(same)
    assert len({who[:2] for who in ran}) == len(ran) == len(launches)
    dates = {who[:2]: who[2] for who in launches}
    assert all(dates[who[:2]] <= who[2] for who in ran), "a kernel before its launch"
    for events in threads.values():
        check_nesting(events)
    check_arrows(trace, threads)


def check_nesting(events):
    """Spans of a thread are disjoint, or one holds the other; kernels never overlap; one thread, one process."""
    assert len({event["pid"] for event in events}) == 1
    open_ends = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= event["ts"]:
            open_ends.pop()
        end = event["ts"] + event["dur"]
        assert not open_ends or end <= open_ends[-1], ("overlaps another span of its thread", event)
        assert not (open_ends and event["cat"] == "kernel"), ("kernels of a stream overlap", event)
        open_ends.append(end)


def check_arrows(trace, threads):
    ends = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]].append(event)
            assert any(one["ts"] <= event["ts"] < one["ts"] + one["dur"] for one in threads[event["tid"]]), event
    for pair in ends.values():
        assert sorted(event["ph"] for event in pair) == ["f", "s"], pair
        start, finish = sorted(pair, key=lambda e: e["ph"], reverse=True)
        assert start["ts"] <= finish["ts"] and finish["bp"] == "e", pair
