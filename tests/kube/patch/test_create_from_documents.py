"""One row per rule of creating a patch; every row was checked against Go."""

import pytest

from podstatus.kube.encoding.go_json import Document, JsonValue, go_equal
from podstatus.kube.patch import (
    POD,
    NestedListError,
    PatchError,
    create_two_way_patch,
    encode_document,
)

# fmt: off
FIELDS: list[tuple[str, Document, Document, Document]] = [
    ("nothing changes", {"kind": "Pod"}, {"kind": "Pod"}, {}),
    ("a field is added", {}, {"kind": "Pod"}, {"kind": "Pod"}),
    ("a field changes", {"kind": "Pod"}, {"kind": "pod"}, {"kind": "pod"}),
    ("a field goes", {"kind": "Pod"}, {}, {"kind": None}),
    ("null stays null", {"kind": None}, {"kind": None}, {}),
    ("null becomes a value", {"kind": None}, {"kind": "Pod"}, {"kind": "Pod"}),
    ("a value becomes null", {"kind": "Pod"}, {"kind": None}, {"kind": None}),
    ("true is not 1", {"kind": True}, {"kind": 1}, {"kind": 1}),
    ("0 is not false", {"kind": 0}, {"kind": False}, {"kind": False}),
    ("1 is not 1.0", {"kind": 1}, {"kind": 1.0}, {"kind": 1.0}),
    ("a kind changes", {"spec": {"os": {}}}, {"spec": {"os": []}}, {"spec": {"os": []}}),
    ("an unknown scalar changes", {"odd": 1}, {"odd": 2}, {"odd": 2}),
    ("an unknown object stays", {"odd": {"a": [1]}}, {"odd": {"a": [1]}}, {}),
    ("an unknown list stays", {"odd": [{"a": 1}]}, {"odd": [{"a": 1}]}, {}),
    ("an object is emptied", {"spec": {"os": {"name": "x"}}}, {"spec": {"os": {}}},
     {"spec": {"os": {"name": None}}}),
    ("a map of strings", {"metadata": {"labels": {"a": "1", "b": "2"}}},
     {"metadata": {"labels": {"b": "3", "c": "4"}}},
     {"metadata": {"labels": {"a": None, "b": "3", "c": "4"}}}),
    ("another case", {"SPEC": {"nodename": "a"}}, {"SPEC": {"nodename": "b"}},
     {"SPEC": {"nodename": "b"}}),
    ("a list where Go has a pointer", {"spec": {"priority": [1]}}, {"spec": {"priority": [2]}},
     {"spec": {"priority": [2]}}),
    ("markers are compared like strings", {"$patch": "a"}, {"$patch": "b"}, {"$patch": "b"}),
    ("a marker of one side may be anything", {}, {"$patch": 1}, {"$patch": 1}),
]

CONTAINER_STATUSES: list[tuple[str, JsonValue, JsonValue, Document]] = [
    ("a changed list is replaced as a whole", [{"name": "a", "ready": True}, {"name": "b"}],
     [{"name": "a", "ready": False}, {"name": "b"}],
     {"containerStatuses": [{"name": "a", "ready": False}, {"name": "b"}]}),
    ("true is not 1 inside it either", [{"name": "a", "ready": True}], [{"name": "a", "ready": 1}],
     {"containerStatuses": [{"name": "a", "ready": 1}]}),
    ("an emptied list", [{"name": "a"}], [], {"containerStatuses": []}),
    ("an equal list", [{"name": "a", "x": [None, 1]}], [{"name": "a", "x": [None, 1]}], {}),
]

CONDITIONS: list[tuple[str, JsonValue, JsonValue, Document]] = [
    ("equal elements", [{"type": "A", "status": "x"}], [{"type": "A", "status": "x"}], {}),
    ("a new list has no order", [], [{"type": "B", "$patch": None}],
     {"conditions": [{"type": "B", "$patch": None}]}),
    ("two empty lists", [], [], {}),
    ("a changed element holds what changed, and its key",
     [{"type": "A", "status": "x", "reason": "r", "message": "m"}, {"type": "B"}],
     [{"type": "A", "status": "y", "message": "m"}, {"type": "B"}],
     {"conditions": [{"type": "A", "status": "y", "reason": None}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}]}),
    ("a new element comes whole", [{"type": "A"}], [{"type": "B", "reason": None}, {"type": "A"}],
     {"conditions": [{"type": "B", "reason": None}],
      "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}),
    ("deletions come last, by key", [{"type": "C"}, {"type": "A"}, {"type": "B"}],
     [{"type": "B", "status": "x"}],
     {"conditions": [{"type": "B", "status": "x"}, {"type": "A", "$patch": "delete"},
                     {"type": "C", "$patch": "delete"}],
      "$setElementOrder/conditions": [{"type": "B"}]}),
    ("what looks like a deletion comes last too", [{"type": "A"}, {"type": "B"}],
     [{"type": "A", "$patch": "delete"}, {"type": "B", "status": "x"}],
     {"conditions": [{"type": "B", "status": "x"}, {"type": "A", "$patch": "delete"}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}]}),
    ("repeated keys are pairs from the last one on",
     [{"type": "A", "status": "x"}, {"type": "A", "status": "y"}],
     [{"type": "A", "status": "z"}, {"type": "A", "status": "y"}],
     {"conditions": [{"type": "A", "status": "z"}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "A"}]}),
    ("an emptied list has no order", [{"type": "A"}], [],
     {"conditions": [{"type": "A", "$patch": "delete"}]}),
    ("a change of order alone", [{"type": "A"}, {"type": "B"}], [{"type": "B"}, {"type": "A"}],
     {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}),
    ("changes have the new order", [{"type": "A"}, {"type": "B"}, {"type": "C"}],
     [{"type": "C", "status": "x"}, {"type": "A", "status": "x"}, {"type": "B"}],
     {"conditions": [{"type": "C", "status": "x"}, {"type": "A", "status": "x"}],
      "$setElementOrder/conditions": [{"type": "C"}, {"type": "A"}, {"type": "B"}]}),
    ("repeated keys are paired from the last one", [{"type": "A", "status": "x"}, {"type": "A"}],
     [{"type": "A", "status": "y"}, {"type": "A"}, {"type": "A", "status": "z"}],
     {"conditions": [{"type": "A", "status": "z"}, {"type": "A", "status": None},
                     {"type": "A", "status": "y"}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "A"}, {"type": "A"}]}),
    ("equal lists with repeated keys", [{"type": "A"}, {"type": "A"}],
     [{"type": "A"}, {"type": "A"}], {}),
    ("keys are paired by their text", [{"type": 1, "status": "x"}], [{"type": "1", "status": "x"}],
     {"conditions": [{"type": "1"}], "$setElementOrder/conditions": [{"type": "1"}]}),
    ("null is a key", [{"type": None}], [{"type": None, "status": "x"}],
     {"conditions": [{"type": None, "status": "x"}],
      "$setElementOrder/conditions": [{"type": None}]}),
    ("scalars in place of objects are merged like scalars", ["a"], ["b"],
     {"conditions": ["b"], "$deleteFromPrimitiveList/conditions": ["a"],
      "$setElementOrder/conditions": ["b"]}),
    ("an element that is a deletion goes to the end", [{"type": "C"}],
     [{"type": "A", "$patch": "delete"}, {"type": "B"}, {"type": "C"}],
     {"conditions": [{"type": "B"}, {"type": "A", "$patch": "delete"}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}, {"type": "C"}]}),
]

FINALIZERS: list[tuple[str, JsonValue, JsonValue, Document]] = [
    ("sorted and equal", ["a", "b"], ["a", "b"], {}),
    ("unsorted and equal still gets an order", ["b", "a"], ["b", "a"],
     {"$setElementOrder/finalizers": ["b", "a"]}),
    ("put into sorted order gets none", ["b", "a"], ["a", "b"], {}),
    ("added and removed", ["a", "b"], ["c", "b"],
     {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"],
      "$setElementOrder/finalizers": ["c", "b"]}),
    ("additions have the new order", ["m"], ["z", "m", "a"],
     {"finalizers": ["z", "a"], "$setElementOrder/finalizers": ["z", "m", "a"]}),
    ("emptied", ["b", "a"], [], {"$deleteFromPrimitiveList/finalizers": ["a", "b"]}),
    ("repetitions deleted once, the last in their place", ["a", "a", "b", "c"], ["x"],
     {"finalizers": ["x"], "$deleteFromPrimitiveList/finalizers": ["a", "c", "b"],
      "$setElementOrder/finalizers": ["x"]}),
    ("one repetition less", ["a", "a"], ["a"],
     {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["a"]}),
    ("one repetition more", ["a"], ["a", "a"],
     {"finalizers": ["a"], "$setElementOrder/finalizers": ["a", "a"]}),
    ("numbers sort as text", [1, 10, 2], [2],
     {"$deleteFromPrimitiveList/finalizers": [1, 10], "$setElementOrder/finalizers": [2]}),
]

VOLUMES: list[tuple[str, JsonValue, JsonValue, Document]] = [
    ("an equal element names no keys", [{"name": "a", "nfs": {}}], [{"name": "a", "nfs": {}}], {}),
    ("a changed element names what stays, sorted", [{"name": "a", "nfs": {"path": "x"}}],
     [{"name": "a", "secret": {}, "emptyDir": {}, "csi": None}],
     {"volumes": [{"name": "a", "nfs": None, "secret": {}, "emptyDir": {}, "csi": None,
                   "$retainKeys": ["emptyDir", "name", "secret"]}],
      "$setElementOrder/volumes": [{"name": "a"}]}),
    ("objects inside name no keys", [{"name": "a", "nfs": {"path": "x"}}],
     [{"name": "a", "nfs": {"path": "y"}}],
     {"volumes": [{"name": "a", "nfs": {"path": "y"}, "$retainKeys": ["name", "nfs"]}],
      "$setElementOrder/volumes": [{"name": "a"}]}),
    ("a new element names no keys", [{"name": "a"}], [{"name": "a"}, {"name": "b"}],
     {"volumes": [{"name": "b"}], "$setElementOrder/volumes": [{"name": "a"}, {"name": "b"}]}),
]

# fmt: on
ROWS = [
    *FIELDS,
    *(
        (
            f"{key}: {name}",
            {owner: {key: old}},
            {owner: {key: new}},
            {owner: patch} if patch else {},
        )
        for owner, key, table in (
            ("status", "containerStatuses", CONTAINER_STATUSES),
            ("status", "conditions", CONDITIONS),
            ("metadata", "finalizers", FINALIZERS),
            ("spec", "volumes", VOLUMES),
        )
        for name, old, new, patch in table
    ),
]


@pytest.mark.parametrize(
    ("original", "modified", "patch"),
    [pytest.param(*row[1:], id=row[0]) for row in ROWS],
)
def test_patch_says(original: Document, modified: Document, patch: Document) -> None:
    assert go_equal(create_two_way_patch(original, modified, POD), patch)


# fmt: off
BROKEN: list[tuple[str, JsonValue, JsonValue]] = [
    ("an unknown object changes", {"odd": {"a": 1}}, {"odd": {"a": 2}}),
    ("an unknown list changes", {"odd": [1]}, {"odd": [2]}),
    ("true becomes 1 in an unknown object", {"odd": {"a": True}}, {"odd": {"a": 1}}),
    ("a list changes where Go has a string", {"phase": [1]}, {"phase": [2]}),
    ("an object changes below a map", {"allocatedResources": {"a": {"b": {"c": 1}}}},
     {"allocatedResources": {"a": {"b": {"c": 2}}}}),
    ("a merge key is missing", {"conditions": [{"type": "A"}]}, {"conditions": [{"status": "x"}]}),
    ("a merge key was missing", {"conditions": [{}]}, {"conditions": [{}]}),
    ("elements are mixed", {"conditions": [{"type": "A"}]}, {"conditions": [{"type": "A"}, 1]}),
    ("an element is null", {"podIPs": [None]}, {"podIPs": [None]}),
    ("a merge key is an object", {"podIPs": [{"ip": {}}]}, {"podIPs": [{"ip": {}}]}),
    ("a marker is no string", {"$patch": 1}, {"$patch": 1}),
]
# fmt: on


@pytest.mark.parametrize(
    ("original", "modified"),
    [pytest.param(*row[1:], id=row[0]) for row in BROKEN],
)
def test_no_patch_when(original: JsonValue, modified: JsonValue) -> None:
    with pytest.raises(PatchError):
        create_two_way_patch({"status": original}, {"status": modified}, POD)


def test_lists_of_lists_are_an_error_of_their_own() -> None:
    document: Document = {"status": {"conditions": [[]]}}
    with pytest.raises(NestedListError):
        create_two_way_patch(document, document, POD)


def test_a_patch_shares_new_values_instead_of_copying_them() -> None:
    new: Document = {"name": "a", "state": {"running": {}}}
    patch = create_two_way_patch({"status": {}}, {"status": {"containerStatuses": [new]}}, POD)
    assert encode_document(patch) == (
        b'{"status":{"containerStatuses":[{"name":"a","state":{"running":{}}}]}}'
    )
    assert patch["status"]["containerStatuses"][0] is new  # type: ignore[index,call-overload]
