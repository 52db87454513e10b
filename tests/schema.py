"""Checks shipped files against the JSON Schemas of stepcast, and that wrong files are refused.

Usage: python3 tests/schema.py STEPCAST ROOT
"""

import collections
import copy
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml


class Yaml12Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads scalars as YAML 1.2 does, and as editors and stepcast do: on is a text, 1e9 a number."""


Yaml12Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"^(true|false)$", "tf"),
    ("int", r"^-?(0|[1-9][0-9]*)$", "-0123456789"),
    ("float", r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$", "-0123456789"),
    ("null", r"^(~|null|)$", "~n\0"),
]:
    Yaml12Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def schema_of(stepcast, kind):
    text = subprocess.run([stepcast, "schema", kind], check=True, capture_output=True, text=True).stdout
    schema = json.loads(text)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def kind_of(path, root):
    folder = str(path.relative_to(root).parent)
    for start, kind in [("scenarios", "scenario"), ("platforms", "platform"), ("models/traces", "trace"),
                        ("models/devices", "device"), ("models/compression", "compression"),
                        ("models/measured", None), ("models", "model")]:
        if folder == start or folder.startswith(start + "/"):
            return kind
    return None


def mistakes(document):
    """Copies of a document, each with one mistake."""
    for key in document:
        wrong = copy.deepcopy(document)
        wrong[key + "x"] = wrong.pop(key)
        yield f"{key}x", wrong
        if isinstance(document[key], dict) and key not in ("set", "sweep", "uncertainty"):
            wrong = copy.deepcopy(document)
            wrong[key]["no_such_key"] = 1
            yield f"{key}.no_such_key", wrong


def check_kinds_and_words(schema, root):
    """A kind decides on the keys beside it, and values of sweeps and of set are among the words of their keys."""
    base = yaml.load((root / "scenarios/quickstart.yaml").read_text(), Yaml12Loader)
    cases = [
        ({"strategy": {"bucket": "4 MiB"}}, {"strategy": {"bukcet": "4 MiB"}}),  # the sweep gives the kind
        ({"strategy": {"kind": "zero", "stage": 2}}, {"strategy": {"kind": "pipeline", "stage": 2}}),
        ({"sweep": {"strategy.kind": ["zero"]}}, {"sweep": {"strategy.kind": ["zeroo"]}}),
        ({"sweep": {"strategy.all_reduce": ["ring"]}}, {"sweep": {"strategy.all_reduce": ["rnig"]}}),
        ({"set": {"strategy.overlap": False}}, {"set": {"strategy.overlap": "no"}}),
        ({"set": {"strategy.overlap": None}}, {"set": {"placement": "pakced"}}),
    ]
    for right, wrong in cases:
        assert schema.is_valid({**base, **right}), right
        assert not schema.is_valid({**base, **wrong}), wrong


def main(stepcast, root):
    root = pathlib.Path(root)
    check_kinds_and_words(schema_of(stepcast, "scenario"), root)
    schemas = {}
    failures, files, refused = 0, 0, 0
    tried = collections.Counter()  # (kind, mistake)
    for path in sorted(root.glob("scenarios/**/*.yaml")) + sorted(root.glob("platforms/*.yaml")) + sorted(root.glob("models/**/*.yaml")):
        kind = kind_of(path, root)
        if kind is None:
            continue
        if kind not in schemas:
            schemas[kind] = schema_of(stepcast, kind)
        schema = schemas[kind]
        documents = list(yaml.load_all(path.read_text(), Yaml12Loader))
        files += len(documents)
        for document in documents:
            for error in schema.iter_errors(document):
                failures += 1
                print(f"{path}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        document = documents[0]
        if kind == "trace":
            document["layers"] = document["layers"][:1]  # the others are alike
        for name, wrong in mistakes(document):
            tried[kind, name] += 1
            if tried[kind, name] > 3:  # the same rule of the schema refuses the others
                continue
            if schema.is_valid(wrong):
                failures += 1
                print(f"{path}: {name} is valid by the schema")
            refused += 1
    print(f"{files} files are valid by {len(schemas)} schemas, {refused} mistakes are not")
    if files < 200:
        sys.exit("schema.py: too few files were found")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
