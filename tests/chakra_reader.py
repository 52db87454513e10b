"""Reads Chakra execution traces and plays them by the rules of ASTRA-sim's workload layer.

    python3 tests/chakra_reader.py PREFIX

PREFIX.RANK.et are the traces; comm_group.json beside them has the groups. The encoding, the schema's numbers and the rules are
written here once more, from github.com/mlcommons/chakra (schema/protobuf/et_def.proto) and github.com/astra-sim/astra-sim
(astra-sim/workload), so that a mistake of stepcast's writer is not repeated:
- a node is issued when all its data dependencies have ended; of several, the one with the lowest number;
- a rank runs one device kernel, one host operation and one communication at a time; receives are always issued;
- the n-th collective of a group is the same on all its ranks; a message meets a receive of its ranks, tag and size, and its
  send ends when it has arrived, received or not.
Communication takes no time here. Prints for each rank its nodes and the microsecond in which it ends.
"""

import collections
import heapq
import json
import os
import struct
import sys

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 6, 7
# The one type that every version of the feeder reads for an attribute.
ATTRIBUTE_FIELDS = {"is_cpu_op": 27, "comm_type": 9, "comm_size": 9, "comm_src": 7, "comm_dst": 7, "comm_tag": 7, "pg_name": 29}


def varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


def fields(data):
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        if key & 7 == 0:
            value, place = varint(data, place)
        elif key & 7 == 2:
            size, place = varint(data, place)
            value, place = data[place : place + size], place + size
        else:
            size = 8 if key & 7 == 1 else 4
            value, place = struct.unpack("<Q" if size == 8 else "<I", data[place : place + size])[0], place + size
        yield key >> 3, value


def attribute(data):
    name, value = "", None
    for field, content in fields(data):
        if field == 1:
            name = content.decode()
        else:
            assert ATTRIBUTE_FIELDS[name] == field, (name, field)
            value = content.decode() if field == 29 else content
    return name, value


def node(data):
    one = {"id": 0, "after": [], "micros": 0, "is_cpu_op": 1}
    for field, value in fields(data):
        if field in (1, 3, 7):
            one[{1: "id", 3: "type", 7: "micros"}[field]] = value
        elif field == 2:
            one["name"] = value.decode()
        elif field == 5:
            place = 0
            while place < len(value):
                earlier, place = varint(value, place)
                one["after"].append(earlier)
        elif field == 10:
            name, content = attribute(value)
            one[name] = content
        else:
            raise AssertionError(f"field {field}")
    return one


def messages(file):
    with open(file, "rb") as stream:
        data = stream.read()
    place, found = 0, []
    while place < len(data):
        size, place = varint(data, place)
        found.append(data[place : place + size])
        place += size
    assert dict(fields(found[0])) == {1: b"0.0.4"}, found[0]
    return [node(one) for one in found[1:]]


def check(rank, nodes, groups):
    ids = {one["id"] for one in nodes}
    assert len(ids) == len(nodes)
    for one in nodes:
        assert set(one["after"]) <= ids and all(earlier < one["id"] for earlier in one["after"]), one
        if one["type"] == COMPUTE:
            continue
        assert not one["is_cpu_op"] and one["comm_size"] > 0, one
        if one["type"] == COLLECTIVE:
            assert one["comm_type"] in (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER), one
            assert rank in groups[one.get("pg_name", "0")], one
        else:
            assert one["comm_src" if one["type"] == SEND else "comm_dst"] == rank, one


class Rank:
    def __init__(self, number, nodes):
        self.number, self.nodes = number, {one["id"]: one for one in nodes}
        self.left = {one["id"]: set(one["after"]) for one in nodes}
        self.children = collections.defaultdict(list)
        for one in nodes:
            for earlier in one["after"]:
                self.children[earlier].append(one["id"])
        self.free = sorted(one["id"] for one in nodes if not one["after"])
        self.busy = set()
        self.ended, self.date = 0, 0


def resource(one):
    if one["is_cpu_op"]:
        return "host"
    return {COMPUTE: "device", RECEIVE: None}.get(one["type"], "communication")


class Player:
    def __init__(self, traces, groups):
        self.ranks = {number: Rank(number, nodes) for number, nodes in traces.items()}
        self.groups, self.events, self.order = groups, [], 0
        self.calls = collections.Counter()
        self.joined = collections.defaultdict(list)
        self.waiting = collections.defaultdict(collections.deque)  # sends and receives without their other end

    def at(self, date, rank, one):
        self.order += 1
        heapq.heappush(self.events, (date, self.order, rank, one["id"]))

    def issue(self, rank, one, date):
        if one["type"] == COMPUTE:
            return self.at(date + one["micros"], rank, one)
        if one["type"] == COLLECTIVE:
            group = one.get("pg_name", "0")
            call = (group, self.calls[rank, group])
            self.calls[rank, group] += 1
            self.joined[call].append((rank, one))
            kinds = {(other["comm_type"], other["comm_size"]) for _, other in self.joined[call]}
            assert len(kinds) == 1, (call, self.joined[call])
            if len(self.joined[call]) == len(self.groups[group]):
                for member, other in self.joined.pop(call):
                    self.at(date, member, other)
            return None
        key = (one["comm_src"], one["comm_dst"], one["comm_tag"], one["comm_size"])
        if one["type"] == SEND:
            self.at(date, rank, one)
        other_end = self.waiting[key, SEND + RECEIVE - one["type"]]
        if not other_end:
            return self.waiting[key, one["type"]].append((rank, one))
        other = other_end.popleft()
        return self.at(date, *(other if one["type"] == SEND else (rank, one)))

    def issue_free(self, number, date):
        rank = self.ranks[number]
        kept = []
        for identity in sorted(rank.free):
            one = rank.nodes[identity]
            needs = resource(one)
            if needs in rank.busy:
                kept.append(identity)
                continue
            if needs:
                rank.busy.add(needs)
            self.issue(number, one, date)
        rank.free = kept

    def end(self, date, number, identity):
        rank = self.ranks[number]
        rank.busy.discard(resource(rank.nodes[identity]))
        rank.ended, rank.date = rank.ended + 1, date
        for child in rank.children[identity]:
            rank.left[child].discard(identity)
            if not rank.left[child]:
                rank.free.append(child)

    def play(self):
        for number in self.ranks:
            self.issue_free(number, 0)
        while self.events:
            date, _, number, identity = heapq.heappop(self.events)
            self.end(date, number, identity)
            self.issue_free(number, date)
        for rank in self.ranks.values():
            assert rank.ended == len(rank.nodes), f"rank {rank.number}: {rank.ended} of {len(rank.nodes)} nodes end"


def main(prefix):
    folder, name = os.path.split(prefix)
    numbers = sorted(int(file.split(".")[-2]) for file in os.listdir(folder) if file.startswith(name + ".") and file.endswith(".et"))
    assert numbers == list(range(len(numbers))), "expected a file for each rank"
    groups = {"0": numbers}
    if os.path.exists(os.path.join(folder, "comm_group.json")):
        with open(os.path.join(folder, "comm_group.json"), encoding="utf-8") as file:
            groups.update(json.load(file))
    traces = {number: messages(f"{prefix}.{number}.et") for number in numbers}
    for number, nodes in traces.items():
        check(number, nodes, groups)
    player = Player(traces, groups)
    player.play()
    for rank in player.ranks.values():
        print(f"rank {rank.number}: {rank.ended} nodes, {rank.date} us")


if __name__ == "__main__":
    main(sys.argv[1])
