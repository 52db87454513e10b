"""Writes small Chakra traces in the shape of other writers: python3 tests/chakra_examples.py FOLDER

generator/  as src/generator/generator.py of github.com/mlcommons/chakra: two dependent nodes of 5 us, then an all-reduce
pytorch/    as its converter writes PyTorch's traces: hosts launch kernels, process groups are listed in metadata
bad-*/      traces that cannot be replayed
"""

import os
import sys

METADATA, COMPUTE, SEND, RECEIVE, COLLECTIVE = 1, 4, 5, 6, 7


def varint(value):
    text = b""
    while value >= 0x80:
        text, value = text + bytes([value & 0x7F | 0x80]), value >> 7
    return text + bytes([value])


def integer(field, value):
    return varint(field << 3) + varint(value)


def text(field, content):
    content = content if isinstance(content, bytes) else content.encode()
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(number, kind, name="node", after=(), control=(), micros=0, values=None, **attributes):
    """Attributes: name=(field, value) of AttributeProto."""
    message = integer(1, number) + text(2, name) + integer(3, kind)
    message += b"".join(integer(4, one) for one in control) + b"".join(integer(5, one) for one in after)
    message += integer(7, micros) + (text(8, text(1, values)) if values else b"")
    for key, (field, value) in attributes.items():
        message += text(10, text(1, key) + (text(field, value) if field == 29 else integer(field, value)))
    return message


def write(folder, name, ranks):
    os.makedirs(folder)
    for rank, nodes in enumerate(ranks):
        messages = [text(1, "0.0.4"), *nodes]
        with open(f"{folder}/{name}.{rank}.et", "wb") as file:
            file.write(b"".join(varint(len(one)) + one for one in messages))


DEVICE = {"is_cpu_op": (27, 0)}


def generator():
    return [node(0, COMPUTE, micros=5, **DEVICE), node(1, COMPUTE, after=[0], micros=5, **DEVICE),
            node(2, COLLECTIVE, "ALL_REDUCE", after=[1], comm_type=(9, 0), comm_size=(13, 65536), **DEVICE)]


def pytorch(rank):
    groups = '[\'[{"pg_name": "0", "ranks": []}, {"pg_name": "1", "ranks": [0, 2]}, {"pg_name": "2", "ranks": [1, 3]}]\']'
    pair = {"comm_type": (9, 0), "comm_size": (9, 4096), "pg_name": (29, str(1 + rank % 2)), **DEVICE}
    nodes = [node(1, METADATA, "## process_group:init ##", values=groups),
             node(2, COMPUTE, "aten::linear", control=[1], micros=20),  # a host operation: is_cpu_op is true by default
             node(3, COMPUTE, "gemm", control=[2], micros=100, **DEVICE),
             node(4, COMPUTE, "aten::relu", control=[2], micros=30),
             node(5, COMPUTE, "elementwise", control=[4], after=[3], micros=10, **DEVICE),
             node(6, COLLECTIVE, "ncclDevKernel_AllReduce", after=[5], **pair)]
    if rank == 0:
        nodes.append(node(7, SEND, after=[6], comm_dst=(7, 1), comm_tag=(7, 3), comm_size=(9, 1000), **DEVICE))
    if rank == 1:
        nodes.append(node(7, RECEIVE, after=[6], comm_src=(7, 0), comm_tag=(7, 3), comm_size=(9, 1000), **DEVICE))
    return nodes


def main(folder):
    write(f"{folder}/generator", "two_nodes", [generator()] * 4)
    write(f"{folder}/pytorch", "step", [pytorch(rank) for rank in range(4)])
    write(f"{folder}/bad-order", "a", [[node(1, COMPUTE, after=[2]), node(2, COMPUTE, after=[1])]])
    write(f"{folder}/bad-parent", "a", [[node(1, COMPUTE, after=[9])]])
    write(f"{folder}/bad-group", "a", [[node(1, COLLECTIVE, pg_name=(29, "4"), comm_type=(9, 0), comm_size=(9, 8))]])
    write(f"{folder}/bad-kind", "a", [[node(1, COLLECTIVE, comm_type=(9, 3), comm_size=(9, 8))]])
    write(f"{folder}/bad-type", "a", [[node(1, 8)]])
    write(f"{folder}/bad-peer", "a", [[node(1, SEND, comm_dst=(7, 5), comm_size=(9, 8))]])
    write(f"{folder}/bad-unnamed", "a", [[node(1, COLLECTIVE, comm_size=(9, 8))]] * 2)
    write(f"{folder}/bad-size", "a", [[node(1, COLLECTIVE, comm_type=(9, 0))]] * 2)
    second_dimension = text(10, text(1, "involved_dim") + text(28, text(1, bytes([0, 1]))))
    write(f"{folder}/bad-dimension", "a", [[node(1, COLLECTIVE, comm_type=(9, 0), comm_size=(9, 8)) + second_dimension]] * 2)
    write(f"{folder}/bad-work", "a", [[node(1, COMPUTE, num_ops=(9, 1000), **DEVICE)]])
    write(f"{folder}/bad-sent", "a", [[node(1, SEND, comm_dst=(7, 1), comm_size=(9, 8))], [node(1, COMPUTE, micros=1)]])
    write(f"{folder}/bad-received", "a", [[node(1, SEND, comm_dst=(7, 1), comm_size=(9, 8))],
                                          [node(1, RECEIVE, comm_src=(7, 0), comm_size=(9, 9))]])
    write(f"{folder}/bad-nothing", "a", [[]])
    write(f"{folder}/bad-calls", "a", [generator(), generator()[:2]])
    write(f"{folder}/bad-ranks", "a", [generator()] * 3)
    os.remove(f"{folder}/bad-ranks/a.1.et")


if __name__ == "__main__":
    main(sys.argv[1])
