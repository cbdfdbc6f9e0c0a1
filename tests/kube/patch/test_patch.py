"""Properties of patches between arbitrary statuses."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.go_json import Document, go_equal
from podstatus.kube.patch import NODE, POD, PatchError, Schema, apply_patch, create_two_way_patch

Strategy = st.SearchStrategy[Any]
WORDS = st.sampled_from(["a", "b", "Ready", "é", ""])
SCALARS = WORDS | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5, None])
ODD = st.recursive(
    SCALARS | st.sampled_from(["delete", "replace"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "ip", "$patch", "$retainKeys"]), below)
    ),
    max_leaves=6,
)


def objects(**fields: Strategy) -> Strategy:
    return st.fixed_dictionaries({}, optional=fields).map(dict)


def merged(key: str, keys: list[str] | list[int], **fields: Strategy) -> Strategy:
    """A list of elements with distinct merge keys."""
    element = st.fixed_dictionaries({key: st.sampled_from(keys)}, optional=fields)
    return st.lists(element, max_size=5, unique_by=lambda one: str(one[key])).map(list)


TIMES = st.sampled_from(["2019-01-12T23:27:43Z", "2024-09-21T20:53:07Z"])
CONDITIONS = merged("type", ["Ready", "A", "B", "C"], status=WORDS, lastProbeTime=TIMES)
STATE = objects(running=objects(startedAt=TIMES), waiting=objects(reason=WORDS))
CONTAINERS = merged("name", ["a", "b"], ready=st.booleans(), state=STATE, restartCount=st.just(1))
CLAIMS = merged("name", ["x", "y", "z"], resourceClaimName=WORDS)
IPS = merged("ip", ["10.0.0.1", "fd00::7", "10.9.9.9"])
STATUSES = objects(
    phase=WORDS,
    conditions=CONDITIONS,
    containerStatuses=CONTAINERS,
    podIPs=IPS,
    resourceClaimStatuses=CLAIMS,
    allocatedResources=st.dictionaries(st.sampled_from(["cpu", "memory"]), WORDS).map(dict),
)
FINALIZERS = st.lists(st.sampled_from("abcde"), unique=True).map(sorted)
METADATA = objects(uid=WORDS, finalizers=FINALIZERS, labels=objects(a=WORDS, b=WORDS))
PORTS = merged("containerPort", [80, 443, 8080], protocol=WORDS)
VOLUMES = merged("name", ["a", "b"], emptyDir=objects(medium=WORDS), nfs=objects(path=WORDS))
SPEC = objects(containers=merged("name", ["a", "b"], image=WORDS, ports=PORTS), volumes=VOLUMES)
PODS = st.fixed_dictionaries({}, optional={"metadata": METADATA, "spec": SPEC, "status": STATUSES})
ODD_PODS = st.fixed_dictionaries(
    {}, optional={"metadata": METADATA | ODD, "status": STATUSES | objects(conditions=ODD, ip=ODD)}
)


@given(PODS, PODS)
def test_a_patch_makes_the_new_document_of_the_old_one(old: Document, new: Document) -> None:
    patch = create_two_way_patch(old, new, POD)
    assert go_equal(apply_patch(old, patch, POD), new)


@given(PODS)
def test_a_document_needs_no_patch_to_become_itself(document: Document) -> None:
    assert create_two_way_patch(document, copy.deepcopy(document), POD) == {}


@given(PODS, PODS)
def test_applying_a_patch_twice_changes_nothing_more(old: Document, new: Document) -> None:
    patch = create_two_way_patch(old, new, POD)
    once = apply_patch(old, patch, POD)
    assert go_equal(apply_patch(once, patch, POD), once)


@given(ODD_PODS, ODD_PODS, st.sampled_from([POD, NODE]))
def test_documents_are_never_changed(old: Document, new: Document, schema: Schema) -> None:
    before = copy.deepcopy((old, new))
    for work in (create_two_way_patch, apply_patch):
        try:
            work(old, new, schema)
        except PatchError:
            continue
        finally:
            assert go_equal([old, new], [*before])


@given(ODD_PODS, ODD_PODS)
def test_whatever_the_documents_hold_only_patch_errors_come_out(
    old: Document, new: Document
) -> None:
    for work in (create_two_way_patch, apply_patch):
        try:
            result = work(old, new, POD)
        except PatchError:
            continue
        assert isinstance(result, dict)
