"""Managed fields are left out, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.client.informer.managed_fields import decode_cached, strip_managed_fields
from podstatus.kube.encoding.codec import DecodeError
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod

MANAGED = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"k:{}": {}}}}]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("managedFields"), inner),
    max_leaves=10,
)


def text(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


@given(st.dictionaries(st.text(), values), values, st.dictionaries(st.text(), values))
def test_all_the_rest_stays(metadata: dict[str, Any], managed: Any, rest: dict[str, Any]) -> None:
    document = {"metadata": {**metadata, "managedFields": managed}, "after": rest}
    trimmed = json.loads(strip_managed_fields(text(document)))
    if text(document).count(b'"managedFields":') == 1:
        assert trimmed["metadata"]["managedFields"] is None
    trimmed["metadata"]["managedFields"] = managed
    assert trimmed == document


@pytest.mark.parametrize("other", [MANAGED, [], "kubelet"])
def test_two_fields_of_that_name_are_both_left_alone(other: Any) -> None:
    before = {"spec": {"managedFields": other}, "metadata": {"managedFields": MANAGED}}
    after = {"metadata": {"managedFields": MANAGED}, "spec": {"managedFields": other}}
    for document in (before, after):
        assert strip_managed_fields(text(document)) == text(document)


def test_a_text_that_looks_like_it_is_left_alone() -> None:
    quoted = json.dumps({"managedFields": MANAGED}, separators=(",", ":"))
    document = {"metadata": {"annotations": {"last": quoted}, "managedFields": MANAGED}}
    trimmed = json.loads(strip_managed_fields(text(document)))
    assert trimmed["metadata"] == {"annotations": {"last": quoted}, "managedFields": None}


@pytest.mark.parametrize(
    "data",
    [
        b'{"metadata":{"name":"a"}}',
        b'{"metadata": {"managedFields" : [] }}',
        b'{"spec":{"managedFields":[1]},"metadata":{}}',
        b'{"metadata":{"managedFields":[',
        b'"managedFields":[]',
        b'{"metadata":5,"x":{"managedFields":[]}}',
    ],
)
def test_the_text_is_unchanged_without_or_with_ambiguous_managed_fields(data: bytes) -> None:
    assert strip_managed_fields(data) == data


def pod_text(name: str) -> bytes:
    return text({"metadata": {"name": name, "managedFields": MANAGED}})


def test_an_answer_and_the_event_that_says_the_same_are_decoded_once() -> None:
    pod = decode_cached(pod_text("web") + b"\n", Pod)
    assert decode_cached(pod_text("web"), Pod) is pod
    assert (pod.name, pod.metadata.managed_fields) == ("web", None)


def test_another_text_and_another_kind_are_other_objects() -> None:
    assert decode_cached(pod_text("web"), Pod).name == "web"
    assert decode_cached(pod_text("db"), Pod).name == "db"
    assert isinstance(decode_cached(pod_text("web"), Node), Node)


def test_long_texts_are_not_remembered() -> None:
    long = pod_text("x" * 40_000)
    assert decode_cached(long, Pod) == decode_cached(long, Pod)
    assert decode_cached(long, Pod) is not decode_cached(long, Pod)


def test_what_cannot_be_decoded_is_an_error_each_time() -> None:
    for _ in range(2):
        with pytest.raises(DecodeError):
            decode_cached(b"{", Pod)
