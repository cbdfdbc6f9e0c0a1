"""The protocols that callers code against, and the class that satisfies them."""

import inspect

import pytest

import podstatus as ps
from podstatus.testing.builders import make_pod
from tests.support.status_node import Node

METHODS = sorted(
    name
    for protocol in (ps.PodStatusProvider, ps.Manager)
    for name in vars(protocol)
    if not name.startswith("_")
)


@pytest.mark.parametrize("name", METHODS)
def test_manager_has_the_signature_that_the_protocol_declares(name: str) -> None:
    declared = inspect.signature(getattr(ps.Manager, name))
    assert inspect.signature(getattr(ps.StatusManager, name)) == declared


def phase_of(statuses: ps.PodStatusProvider, uid: str) -> str | None:
    status = statuses.pod_status(uid)
    return None if status is None else status.phase


def mark_failed(manager: ps.Manager, pod: ps.Pod) -> bool:
    return manager.set_pod_status(pod, ps.PodStatus(phase="Failed"))[1]


def test_code_against_the_protocols_works_with_the_manager() -> None:
    pod = make_pod()
    node = Node(pod)
    assert mark_failed(node.manager, pod)
    assert phase_of(node.manager, pod.uid) == "Failed"


def test_code_against_the_provider_works_with_any_reader() -> None:
    class Statuses:
        def pod_status(self, uid: str) -> ps.PodStatus | None:
            return ps.PodStatus(phase="Running") if uid == "a" else None

    assert [phase_of(Statuses(), uid) for uid in "ab"] == ["Running", None]
