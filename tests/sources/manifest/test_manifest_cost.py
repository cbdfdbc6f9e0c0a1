"""The cost of hostile manifests is bounded.

The time limits detect another order of growth, not a slow machine: each of these took from 20 s
to hours.
"""

import resource
import time
from collections.abc import Callable

import pytest

from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import Manifest, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest.yaml_documents import (
    DecodeBudget,
    DocumentError,
    read_document,
    split_documents,
)

SECONDS = 10.0
MIB = 2**20


def read(text: str) -> Manifest:
    began = time.process_time()
    manifest = read_manifest(
        text.encode(), ManifestOrigin(source="file", location="x.yaml", node_name="n"), Time()
    )
    assert time.process_time() - began < SECONDS
    return manifest


def messages(text: str) -> list[str]:
    return [problem.message for problem in read(text).problems]


def test_a_key_that_is_there_twice_is_found_in_linear_time() -> None:
    keys = ",".join(f'"k{number}":1' for number in range(100_000))
    assert messages(f'{{{keys},"k99999":2}}') == ['key "k99999" already set in map']


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: "{" + ",".join(f'"{n}":1' for n in range(300_000)) + "}", "the manifest has more"),
        (lambda: "x: !!int '" + ":".join(["1"] * MIB) + "'", "a number is too long"),
        (lambda: "x: !!int 0x" + "f" * MIB, "a number is too long"),
        (lambda: "#\n" * MIB + "x", "expected an object of apiVersion v1"),
        (lambda: "[" * MIB, "nested too deeply"),
        (lambda: '{"a":' * MIB, "nested too deeply"),
    ],
    ids=["members", "base 60", "hexadecimal", "comments", "lists", "objects"],
)
def test_large_texts_are_refused_at_a_bounded_cost(make: Callable[[], str], expected: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (message,) = messages(make())
    assert message.startswith(expected)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 * 1024


def read_all(text: str, budget: DecodeBudget) -> list[str]:
    """The problems of a manifest's documents."""
    messages = []
    for written in split_documents(text):
        try:
            read_document(written, budget)
        except DocumentError as error:
            messages.append(str(error))
    return messages


def test_the_documents_of_a_text_have_one_budget() -> None:
    bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\nb: [*a, *a, *a, *a, *a, *a, *a, *a]"
    messages = read_all("\n---\n".join([bomb] * 30), DecodeBudget(1000))
    assert len(messages) == 30 - 1000 // 85
    assert messages[-1] == "aliases expand to too much data; write the values out"


def test_documents_that_are_wrong_at_their_end_count_too() -> None:
    values = "a," * 900
    messages = read_all("\n---\n".join([f"x: [{values} {{]"] * 10), DecodeBudget(1000))
    assert len(messages) == 10
    assert messages[4:] == ["the manifest has more than 1,000 values"] * 6


def test_a_list_has_a_bounded_number_of_objects() -> None:
    items = ",".join(["1"] * 100_000)
    text = f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'
    assert messages(text) == ["items: more than 1000"]


def test_problems_are_bounded_in_number_and_length() -> None:
    reported = messages("---\nx: 1\n" * 900)
    assert len(reported) == 21
    assert reported[-1] == "880 more problems are not shown"
    unknown = "\n".join(f"{'k' * 100}{number}: 1" for number in range(10_000))
    (message,) = messages(f"apiVersion: v1\nkind: Pod\n{unknown}")
    assert message.startswith("strict decoding error: unknown field")
    assert len(message) < 5000
