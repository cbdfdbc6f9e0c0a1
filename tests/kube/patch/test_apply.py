"""One row per rule of applying a patch; every row was checked against Go."""

import pytest

from podstatus.kube.encoding.go_json import Document, JsonValue, go_equal
from podstatus.kube.patch import (
    POD,
    NestedListError,
    PatchError,
    PatchFormatError,
    apply_patch,
)

# fmt: off
FIELDS: list[tuple[str, Document, Document, Document]] = [
    ("an empty patch", {"kind": "Pod"}, {}, {"kind": "Pod"}),
    ("a field is set", {"kind": "a"}, {"kind": "b", "apiVersion": "v1"},
     {"kind": "b", "apiVersion": "v1"}),
    ("null deletes", {"kind": "a"}, {"kind": None, "odd": None}, {}),
    ("null in the original stays", {"kind": None}, {}, {"kind": None}),
    ("null in the original is replaced", {"status": None}, {"status": {"phase": "x", "ip": None}},
     {"status": {"phase": "x"}}),
    ("objects are merged", {"metadata": {"labels": {"a": "1", "b": "2"}}},
     {"metadata": {"labels": {"a": None, "c": "3"}}},
     {"metadata": {"labels": {"b": "2", "c": "3"}}}),
    ("another kind replaces", {"spec": {"os": "x"}}, {"spec": {"os": {"name": "y", "a": None}}},
     {"spec": {"os": {"name": "y"}}}),
    ("a new object sheds its nulls, in lists too", {},
     {"spec": {"a": [{"b": None, "c": 1}, None], "d": {"e": None}}},
     {"spec": {"a": [{"c": 1}, None], "d": {}}}),
    ("a new object sheds what carries a marker", {},
     {"spec": {"a": [{"$patch": "delete", "name": "x"}, {"b": 1}], "c": {"$patch": "replace"}}},
     {"spec": {"a": [{"b": 1}]}}),
    ("a value that carries a marker goes, and the old one with it", {"kind": 1},
     {"kind": {"$patch": "replace", "a": 1}}, {}),
    ("a null marker is only a null", {}, {"spec": {"$patch": None, "a": 1}}, {"spec": {"a": 1}}),
    ("replace an object, nulls and all", {"spec": {"nodeName": "a"}},
     {"spec": {"$patch": "replace", "hostname": "b", "subdomain": None}},
     {"spec": {"hostname": "b", "subdomain": None}}),
    ("delete an object's fields", {"spec": {"nodeName": "a"}},
     {"spec": {"$patch": "delete", "hostname": "b"}}, {"spec": {}}),
    ("replace the document", {"kind": "a"}, {"$patch": "replace", "odd": {"x": 1}},
     {"odd": {"x": 1}}),
    ("a plain list is replaced, nulls and all", {"spec": {"tolerations": [{"key": "a"}]}},
     {"spec": {"tolerations": [{"key": "b", "value": None}]}},
     {"spec": {"tolerations": [{"key": "b", "value": None}]}}),
    ("a plain list is replaced, its order given", {"spec": {"dnsConfig": {"searches": ["x"]}}},
     {"spec": {"dnsConfig": {"searches": ["b", "a"], "$setElementOrder/searches": ["b", "a"]}}},
     {"spec": {"dnsConfig": {"searches": ["b", "a"]}}}),
    ("a new merged list keeps no nulls", {"status": {}},
     {"status": {"conditions": [{"type": "A", "reason": None}]}},
     {"status": {"conditions": [{"type": "A"}]}}),
    ("a new ordered list keeps its nulls", {"status": {}},
     {"status": {"conditions": [{"type": "A", "reason": None}],
                 "$setElementOrder/conditions": [{"type": "A"}]}},
     {"status": {"conditions": [{"type": "A", "reason": None}]}}),
    ("an order without a list is forgotten", {"status": {}},
     {"status": {"$setElementOrder/conditions": [{"type": "A"}]}}, {"status": {}}),
    ("retained keys", {"spec": {"nodeName": "a", "hostname": "b", "subdomain": "c"}},
     {"spec": {"$retainKeys": ["nodeName", "priority"], "priority": 1, "os": None}},
     {"spec": {"nodeName": "a", "priority": 1}}),
    ("a deletion list for nothing", {"metadata": {}},
     {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, {"metadata": {}}),
    ("a deletion list that is null deletes the list", {"metadata": {"finalizers": ["a"]}},
     {"metadata": {"$deleteFromPrimitiveList/finalizers": None}}, {"metadata": {}}),
    ("a deletion list works on plain lists too", {"spec": {"a": 1, "hostname": ["x"],
     "priority": ["a", "b"]}}, {"spec": {"$deleteFromPrimitiveList/priority": ["a"]}},
     {"spec": {"a": 1, "hostname": ["x"], "priority": ["b"]}}),
    ("a deletion list without a name is ignored", {}, {"$deleteFromPrimitiveList/": ["a"]}, {}),
]

CONDITIONS: list[tuple[str, JsonValue, Document, JsonValue]] = [
    ("merged by key", [{"type": "A", "status": "x", "reason": "r"}, {"type": "B"}],
     {"conditions": [{"type": "A", "status": "y", "reason": None}]},
     [{"type": "A", "status": "y"}, {"type": "B"}]),
    ("an added element keeps its nulls, and comes first", [{"type": "A"}, {"type": "B"}],
     {"conditions": [{"type": "C", "reason": None}]},
     [{"type": "C", "reason": None}, {"type": "A"}, {"type": "B"}]),
    ("patched elements in the patch's order", [{"type": "A"}, {"type": "B"}, {"type": "C"}],
     {"conditions": [{"type": "C"}, {"type": "A"}]},
     [{"type": "B"}, {"type": "C"}, {"type": "A"}]),
    ("deleted by key", [{"type": "A"}, {"type": "B"}, {"type": "A", "status": "x"}],
     {"conditions": [{"type": "A", "$patch": "delete"}]}, [{"type": "B"}]),
    ("deleted to nothing", [{"type": "A"}], {"conditions": [{"type": "A", "$patch": "delete"}]},
     []),
    ("replaced by what else the patch holds", [{"type": "A"}, {"type": "B"}],
     {"conditions": [{"type": "C", "reason": None}, {"$patch": "replace"}, {"type": "A"}]},
     [{"type": "C", "reason": None}, {"type": "A"}]),
    ("an empty patch of an empty list", [], {"conditions": []}, []),
    ("repeated keys: the first takes all, then they stand together",
     [{"type": "A", "status": "1"}, {"type": "B"}, {"type": "A", "status": "2"}],
     {"conditions": [{"type": "A", "reason": "x"}, {"type": "A", "message": "y"}]},
     [{"type": "A", "status": "1", "reason": "x", "message": "y"}, {"type": "A", "status": "2"},
      {"type": "B"}]),
    ("repeated in the patch: the second is merged into the first", [],
     {"conditions": [{"type": "A", "reason": "x"}, {"type": "A", "message": "y"}]},
     [{"type": "A", "reason": "x", "message": "y"}]),
    ("1 and true are two keys", [{"type": 1}], {"conditions": [{"type": True}]},
     [{"type": True}, {"type": 1}]),
    ("order given, server's own elements before what they preceded",
     [{"type": "A"}, {"type": "B"}, {"type": "C"}],
     {"$setElementOrder/conditions": [{"type": "C"}, {"type": "A"}]},
     [{"type": "B"}, {"type": "C"}, {"type": "A"}]),
    ("order names a new element among others", [{"type": "A"}, {"type": "B"}],
     {"conditions": [{"type": "C"}],
      "$setElementOrder/conditions": [{"type": "A"}, {"type": "C"}, {"type": "B"}]},
     [{"type": "A"}, {"type": "C"}, {"type": "B"}]),
    ("a new element goes before the server's own", [{"type": "A"}],
     {"conditions": [{"type": "C"}], "$setElementOrder/conditions": [{"type": "C"}]},
     [{"type": "C"}, {"type": "A"}]),
    ("but behind them in the place of a deleted one", [{"type": "D"}, {"type": "A"}, {"type": "B"}],
     {"conditions": [{"type": "C"}, {"type": "D", "$patch": "delete"}],
      "$setElementOrder/conditions": [{"type": "C"}]},
     [{"type": "A"}, {"type": "B"}, {"type": "C"}]),
    ("a replaced list in the order given", [{"type": "A"}],
     {"conditions": [{"$patch": "replace"}, {"type": "B"}, {"type": "C"}],
      "$setElementOrder/conditions": [{"type": "B"}, {"type": "C"}]},
     [{"type": "B"}, {"type": "C"}]),
    ("a replaced list that the order does not name is turned around", [{"type": "A"}],
     {"conditions": [{"$patch": "replace"}, {"type": "B"}, {"type": "C"}, {"type": "D"}],
      "$setElementOrder/conditions": []},
     [{"type": "D"}, {"type": "C"}, {"type": "B"}]),
    ("an order that names nothing", [{"type": "B"}, {"type": "A"}],
     {"$setElementOrder/conditions": []}, [{"type": "B"}, {"type": "A"}]),
    ("an order that names what is not there", [{"type": "A"}],
     {"$setElementOrder/conditions": [{"type": "X"}, {"type": "A"}]}, [{"type": "A"}]),
]

FINALIZERS: list[tuple[str, JsonValue, Document, JsonValue]] = [
    ("added ones come first", ["a", "b"], {"finalizers": ["c"]}, ["c", "a", "b"]),
    ("known ones keep their place", ["a", "b", "c"], {"finalizers": ["b"]}, ["a", "b", "c"]),
    ("deleted", ["a", "b", "a"], {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}, ["b"]),
    ("added, deleted and ordered", ["a", "b", "c"],
     {"finalizers": ["d"], "$deleteFromPrimitiveList/finalizers": ["b"],
      "$setElementOrder/finalizers": ["c", "d", "a"]}, ["c", "d", "a"]),
    ("order alone", ["a", "b", "c"], {"$setElementOrder/finalizers": ["c", "a"]},
     ["b", "c", "a"]),
    ("repetitions go when lists are merged", ["a", "a", "b"], {"finalizers": []}, ["a", "b"]),
    ("changed in place, an addition is found among the old", ["a", "a", "b"],
     {"finalizers": ["c"]}, ["a", "c", "b"]),
    ("not changed in place, it is not", ["a", "a"], {"finalizers": ["c"]}, ["c", "a"]),
    ("nothing to nothing", [], {"finalizers": []}, []),
]

VOLUMES: list[tuple[str, JsonValue, Document, JsonValue]] = [
    ("only the named keys stay", [{"name": "a", "nfs": {}, "csi": {}}],
     {"volumes": [{"name": "a", "secret": {}, "$retainKeys": ["name", "secret", "csi"]}]},
     [{"name": "a", "csi": {}, "secret": {}}]),
    ("a new element keeps the directive", [{"name": "a"}],
     {"volumes": [{"name": "b", "$retainKeys": ["name"]}]},
     [{"name": "b", "$retainKeys": ["name"]}, {"name": "a"}]),
    ("keys of parallel lists need no name", [{"name": "a", "projected": {}}],
     {"volumes": [{"name": "a", "$retainKeys": ["name"], "csi": None,
                   "$deleteFromPrimitiveList/x": ["y"]}]},
     [{"name": "a"}]),
]
# fmt: on

ROWS = [
    *FIELDS,
    *(
        (f"{key}: {name}", {owner: {key: live}}, {owner: patch}, {owner: {key: result}})
        for owner, key, table in (
            ("status", "conditions", CONDITIONS),
            ("metadata", "finalizers", FINALIZERS),
            ("spec", "volumes", VOLUMES),
        )
        for name, live, patch, result in table
    ),
]


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [pytest.param(*row[1:], id=row[0]) for row in ROWS],
)
def test_patched(original: Document, patch: Document, result: Document) -> None:
    assert go_equal(apply_patch(original, patch, POD), result)


LIVE: Document = {
    "phase": ["x"],
    "conditions": [{"type": "A"}],
    "containerStatuses": [{"name": "a"}],
    "odd": {"a": 1},
    "odds": [1],
    "podIPs": [{"ip": {}}],
    "hostIPs": [],
    "resourceClaimStatuses": "x",
}

# fmt: off
BROKEN: list[tuple[str, type[PatchError], Document]] = [
    ("unknown object", PatchError, {"odd": {"a": 1}}),
    ("unknown list", PatchError, {"odds": [1]}),
    ("list where Go has a string", PatchError, {"phase": ["y"]}),
    ("unknown marker of an object", PatchError, {"$patch": "merge"}),
    ("marker that is null", PatchError, {"$patch": None}),
    ("unknown marker of an element", PatchError,
     {"conditions": [{"type": "A", "$patch": "merge"}]}),
    ("null marker of an element", PatchError, {"conditions": [{"type": "A", "$patch": None}]}),
    ("element without merge key", PatchError, {"conditions": [{"status": "x"}]}),
    ("deletion without merge key", PatchError, {"conditions": [{"$patch": "delete"}]}),
    ("null merge key of a new element", PatchError,
     {"conditions": [{"type": None}, {"type": None}]}),
    ("scalar element", PatchError, {"conditions": ["A"]}),
    ("null element", PatchError, {"conditions": [None]}),
    ("merge key that is an object", PatchError, {"podIPs": [{"ip": {}}]}),
    ("order that is no list", PatchError, {"$setElementOrder/conditions": None}),
    ("order for a list that is none", PatchError,
     {"$setElementOrder/resourceClaimStatuses": []}),
    ("order for a null in the patch", PatchError,
     {"$setElementOrder/conditions": [], "conditions": None}),
    ("order for a list of objects without merge key", PatchError,
     {"$setElementOrder/containerStatuses": [{"name": "a"}]}),
    ("order without merge key", PatchError, {"$setElementOrder/conditions": [{}]}),
    ("order that lacks an element of the patch", PatchError,
     {"conditions": [{"type": "A"}, {"type": "B"}],
      "$setElementOrder/conditions": [{"type": "A"}]}),
    ("order other than the patch's", PatchError,
     {"conditions": [{"type": "A"}, {"type": "B"}],
      "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}),
    ("order for an empty list", PatchError, {"$setElementOrder/hostIPs": []}),
    ("order for an unknown list", PatchError, {"$setElementOrder/nothing": []}),
    ("order directive without name", PatchFormatError, {"$setElementOrder": []}),
    ("misspelt order directive", PatchFormatError, {"$setElementOrders/conditions": []}),
    ("deletion list without slash", PatchFormatError, {"$deleteFromPrimitiveList": []}),
    ("retained keys that are no list", PatchFormatError, {"$retainKeys": "phase"}),
    ("retained keys that lack one of the patch", PatchFormatError,
     {"$retainKeys": ["phase"], "phase": "x", "reason": "y"}),
    ("retained keys that are objects", PatchError, {"$retainKeys": [{}]}),
    ("list of lists", NestedListError, {"hostIPs": [[]]}),
]
# fmt: on


@pytest.mark.parametrize(("error", "patch"), [pytest.param(*row[1:], id=row[0]) for row in BROKEN])
def test_refused(error: type[PatchError], patch: Document) -> None:
    with pytest.raises(PatchError) as caught:
        apply_patch({"status": LIVE}, {"status": patch}, POD)
    assert type(caught.value) is error
