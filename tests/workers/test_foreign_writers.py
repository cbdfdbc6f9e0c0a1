"""Other clients write to a pod's status: fields that the node owns are corrected."""

import pytest
from msgspec import structs

from podstatus.kube.conditions import find_condition
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodReadinessGate
from tests.support.node_in_memory import NAMESPACE, NodeInMemory, a_pod

BY_MEDDLER = "by another client; the node owns it and has set it back to"


def gated(*gates: str) -> Pod:
    """A pod that runs, with these readiness gates."""
    pod = a_pod("p")
    named = tuple(PodReadinessGate(condition_type=gate) for gate in gates)
    return structs.replace(pod, spec=structs.replace(pod.spec, readiness_gates=named))


def say(node: NodeInMemory, **conditions: str) -> None:
    """Another client sets conditions."""
    said = [{"type": name, "status": status} for name, status in conditions.items()]
    node.api.patch(NAMESPACE, "p", {"status": {"conditions": said}})


def ready(node: NodeInMemory) -> str:
    """The server's Ready condition, as in `False ContainersNotReady: because`."""
    pod = node.pod("p")
    assert pod is not None
    found = find_condition(pod.status.conditions, "Ready")
    assert found is not None
    return " ".join(
        filter(None, (found.status, found.reason and f"{found.reason}:", found.message))
    )


def foreign_write_events(node: NodeInMemory) -> list[str]:
    """Events about foreign writes to the pod."""
    prefix = f"ForeignStatusWrite: Pod {NAMESPACE}/p: "
    events = node.events("node", "ForeignStatusWrite")
    assert all(event.startswith(prefix) for event in events)
    return [event.removeprefix(prefix) for event in events]


def missing(gate: str) -> str:
    return f'corresponding condition of pod readiness gate "{gate}" does not exist.'


def closed(gate: str, status: str = "False") -> str:
    return f'the status of pod readiness gate "{gate}" is not "True", but {status}'


async def test_ready_is_set_back_at_once_and_nothing_else_happens(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(5)
    before = node.calls("start_container", "stop_container")
    say(node, Ready="False")
    await node.passes(0)
    assert ready(node) == "True"
    assert foreign_write_events(node) == [f"Condition Ready was set to False {BY_MEDDLER} True"]
    await node.passes(60)
    assert node.calls("start_container", "stop_container") == before


@pytest.mark.parametrize("gates", [(), ("g",)], ids=["plain", "gated"])
async def test_a_pod_that_others_call_failed_runs_on(gates: tuple[str, ...]) -> None:
    async with NodeInMemory() as node:
        node.create(gated(*gates))
        await node.passes(5)
        conditions = [{"type": gate, "status": "True"} for gate in gates]
        patch = {"status": {"phase": "Failed", "reason": "Evicted", "conditions": conditions}}
        node.api.patch(NAMESPACE, "p", patch)
        await node.passes(0)
        pod = node.pod("p")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason, ready(node)) == ("Running", "", "True")
        assert sorted(foreign_write_events(node)) == [
            f"Field phase was set to Failed {BY_MEDDLER} Running",
            (
                "Field reason was set to Evicted by another client; "
                "the node owns it and has removed it"
            ),
        ]
        await node.passes(60)
        assert node.events("p", "Killing") == []


async def test_a_label_with_a_foreign_phase_does_not_end_the_pod(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(5)
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}}
    node.api.patch(NAMESPACE, "p", patch)
    await node.passes(60)
    assert node.events("p", "Killing") == []
    assert node.looks("p").startswith("Running")


async def test_a_pod_that_is_over_stays_what_it_was(node: NodeInMemory) -> None:
    node.create(a_pod("p", "run=1s, exit=0", policy="Never"))
    await node.passes(10)
    assert node.looks("p").startswith("Succeeded")
    say(node, Ready="True")
    await node.passes(0)
    assert ready(node) == "False PodCompleted:"


async def test_gates_open_and_close_ready_at_once(node: NodeInMemory) -> None:
    node.create(gated("one", "two"))
    await node.passes(5)
    both = f"{missing('one')}, {missing('two')}"
    assert ready(node) == f"False ReadinessGatesNotReady: {both}"
    steps = [
        ({"two": "True"}, f"False ReadinessGatesNotReady: {missing('one')}"),
        ({"one": "False"}, f"False ReadinessGatesNotReady: {closed('one')}"),
        ({"one": "True"}, "True"),
        ({"two": "Unknown"}, f"False ReadinessGatesNotReady: {closed('two', 'Unknown')}"),
        (
            {"one": "False"},
            f"False ReadinessGatesNotReady: {closed('one')}, {closed('two', 'Unknown')}",
        ),
        ({"one": "True", "two": "True"}, "True"),
    ]
    for conditions, expected in steps:
        say(node, **conditions)
        await node.passes(0)
        assert ready(node) == expected
    removed = [{"type": "one", "$patch": "delete"}]
    node.api.patch(NAMESPACE, "p", {"status": {"conditions": removed}})
    await node.passes(0)
    assert ready(node) == f"False ReadinessGatesNotReady: {missing('one')}"
    assert foreign_write_events(node) == []


async def test_a_gate_that_is_open_stays_so_over_a_restart_of_the_agent(node: NodeInMemory) -> None:
    node.create(gated("g"))
    await node.passes(5)
    say(node, g="True")
    await node.passes(0)
    shown = len(node.api.calls)
    await node.restart(after=5)
    await node.passes(30)
    assert ready(node) == "True"
    patches = [call.patch for call in node.api.calls[shown:] if call.verb == "patch"]
    assert not any(b'"False"' in (patch or b"") for patch in patches)
    say(node, g="False")
    await node.passes(0)
    assert ready(node) == f"False ReadinessGatesNotReady: {closed('g')}"


async def test_a_gate_that_moves_without_an_agent_is_followed_later(node: NodeInMemory) -> None:
    node.create(gated("g"))
    await node.passes(5)
    await node.stop()
    say(node, g="True")
    await node.start()
    await node.passes(1)
    assert ready(node) == "True"
    assert foreign_write_events(node) == []
