"""Managed fields of status writes, as tables."""

from typing import Any

import pytest

from podstatus.apiserver.strategies.managed_fields import manager_name, update_managed_fields
from podstatus.kube.scalars.time import Time

NOW = Time.parse("2026-01-01T00:00:00Z")


def pod(phase: str = "Running", **conditions: str) -> dict[str, Any]:
    entries = [{"type": kind, "status": status} for kind, status in conditions.items()]
    status = {"phase": phase, "conditions": entries}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": status}


def written(*writes: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the managed paths below the status by manager, after these writes."""
    old = pod("Pending")
    for manager, new in writes:
        update = new | {"metadata": old["metadata"]}
        old = update_managed_fields(update, old, manager, NOW)
    entries = old["metadata"]["managedFields"]
    return {entry["manager"]: entry["fieldsV1"]["f:status"] for entry in entries}


def ready(*leaves: str) -> dict[str, Any]:
    return {"f:conditions": {'k:{"type":"Ready"}': {leaf: {} for leaf in leaves}}}


def test_the_first_writer_manages_all_of_it() -> None:
    assert written(("node", pod(Ready="True"))) == {"node": {}}
    assert written(("node", pod(Ready="True")), ("node", pod(Ready="False"))) == {"node": {}}


def test_others_manage_what_they_changed_until_it_is_changed_again() -> None:
    meddled = [("node", pod(Ready="True")), ("kubectl", pod("Failed", Ready="False"))]
    assert written(*meddled) == {"node": {}, "kubectl": {"f:phase": {}, **ready("f:status")}}
    half = ("node", pod("Failed", Ready="True"))
    assert written(*meddled, half) == {"kubectl": {"f:phase": {}}, "node": {}}
    assert written(*meddled, half, ("node", pod(Ready="True"))) == {"node": {}}


def test_what_two_have_written_belongs_to_the_last() -> None:
    writes = [("node", pod()), ("a", pod(x="True", y="True")), ("b", pod(x="False", y="True"))]
    assert written(*writes) == {
        "node": {},
        "a": {"f:conditions": {'k:{"type":"y"}': {"f:status": {}}}},
        "b": {"f:conditions": {'k:{"type":"x"}': {"f:status": {}}}},
    }


def test_who_only_removes_manages_nothing() -> None:
    writes = [("node", pod(Ready="True")), ("a", pod())]
    assert written(*writes) == {"node": {}}


def test_there_are_never_more_than_ten() -> None:
    writes = [(f"m{n}", pod(**{f"c{i}": "True" for i in range(n)})) for n in range(1, 30)]
    assert len(written(*writes)) == 10


@pytest.mark.parametrize(
    ("field_manager", "agent", "name"),
    [
        ("mine", "kubectl/v1.36 (linux)", "mine"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "Mozilla", "Mozilla"),
        ("", "", ""),
        ("a\nb", "", "ab"),
        ("x" * 200, "", "x" * 128),
    ],
)
def test_a_manager_is_named_by_its_field_manager_or_user_agent(
    field_manager: str, agent: str, name: str
) -> None:
    assert manager_name(field_manager, agent) == name
